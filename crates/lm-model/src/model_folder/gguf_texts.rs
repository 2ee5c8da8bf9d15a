//! Files of a folder that the metadata of a GGUF model becomes: tokenizer, generation config, model card.

use std::fmt::Write;

use lm_formats::{file_names, parse_json};
use lm_tokenizer::{TextSegment, TokenId, Tokenizer};
use serde_json::{Map, Value, json};

use super::ModelFolder;
use crate::error::{Error, Result};
use crate::gguf_model::{Difference, ids_difference, tokenizer_difference};

impl ModelFolder {
    /// Returns the files that a folder has and a GGUF model has in its metadata, each with its name; none for
    /// a folder.
    ///
    /// # Errors
    /// [`Error::NoTokenizerJson`] when the tokenizer differs after reading it back.
    pub(super) fn texts_of_gguf(&self) -> Result<Vec<(&'static str, String)>> {
        if !self.is_gguf() {
            return Ok(Vec::new());
        }
        let tokenizer = self.tokenizer()?;
        let mut texts = vec![
            (file_names::TOKENIZER, tokenizer_json(&tokenizer)?),
            (file_names::GENERATION_CONFIG, self.generation_config_with(tokenizer.end_ids())?),
        ];
        texts.extend(self.card()?.map(|card| (file_names::MODEL_CARD, card)));
        Ok(texts)
    }

    /// Generation config with all end-of-sequence ids: of those in a chat format, files name only some.
    fn generation_config_with(&self, end_ids: &[TokenId]) -> Result<String> {
        let mut config: Map<String, Value> = match self.files.read(file_names::GENERATION_CONFIG)? {
            Some(json) => parse_json(file_names::GENERATION_CONFIG, &json)?,
            None => Map::new(),
        };
        config.insert("eos_token_id".to_owned(), json!(end_ids));
        Ok(format!("{:#}\n", Value::Object(config)))
    }

    /// Model card with the licence and the name; `None` if the file has neither.
    fn card(&self) -> Result<Option<String>> {
        let (licence, name) = (self.licence()?, self.stored_name()?);
        let mut card = String::new();
        if let Some(licence) = &licence {
            let _ = write!(card, "---\nlicense: {licence}\n---\n");
        }
        if let Some(name) = &name {
            let _ = writeln!(card, "# {name}");
        }
        Ok(Some(card).filter(|card| !card.is_empty()))
    }
}

/// Writes a `tokenizer.json`, and compares the tokenizer that is read back.
fn tokenizer_json(tokenizer: &Tokenizer) -> Result<String> {
    let json = tokenizer.to_json()?;
    let read = Tokenizer::from_json(json.as_bytes())?;
    let difference = match tokenizer_difference(tokenizer, &read)? {
        None => special_tokens_difference(tokenizer, &read)?,
        difference => difference,
    };
    match difference {
        None => Ok(json),
        Some((what, value, read)) => Err(Error::NoTokenizerJson { what, value, read }),
    }
}

/// Returns the difference of the tokens around a separate text.
fn special_tokens_difference(model: &Tokenizer, read: &Tokenizer) -> Result<Option<Difference>> {
    let text = TextSegment::Template("a");
    let [model, read] = [model, read].map(|tokenizer| tokenizer.encode_with_special_tokens(text));
    let difference = ids_difference(&model?, &read?);
    Ok(difference.map(|(_, model, read)| ("a text with its special tokens".to_owned(), model, read)))
}
