//! Textual metadata of a file: model name, tokenizer, chat templates, generation config.

use std::collections::BTreeMap;

use lm_formats::{
    Error as FormatError, GgufEntries, GgufEntry, ModelFiles, file_names, parse_json, read_required,
};
use lm_tokenizer::{TokenId, Tokenizer};
use serde_json::{Map, Value};

use super::super::texts::{END_KEYS, SAMPLING_KEYS, TEMPLATE_KEY};
use crate::config::GenerationConfig;
use crate::error::{Error, Result};
use crate::gguf::{FILE_TYPE, MODEL};

/// Special tokens: names in tokenizer_config.json and in GGUF keys.
///
/// # Source
/// `Keys.Tokenizer` of the package `gguf` 0.19, its spelling included.
const SPECIAL_TOKENS: &[(&str, &str)] = &[
    ("bos", "bos"),
    ("cls", "cls"),
    ("mask", "mask"),
    ("pad", "padding"),
    ("sep", "seperator"),
    ("unk", "unknown"),
];

/// Texts of a model's folder.
pub(crate) struct Texts<'a> {
    pub(crate) files: &'a dyn ModelFiles,
    pub(crate) name: &'a str,
    pub(crate) licence: Option<String>,
    pub(crate) generation: GenerationConfig,
}

impl Texts<'_> {
    /// Builds the model's name and its sampling parameters.
    pub(super) fn general(&self) -> GgufEntries {
        let mut keys = GgufEntries::default();
        let text = |text: &str| GgufEntry::Text(text.to_owned());
        keys.put(FILE_TYPE, text(MODEL));
        keys.put("general.name", text(self.name));
        if let Some(licence) = &self.licence {
            keys.put("general.license", text(licence));
        }
        let GenerationConfig { temperature, top_k, top_p, min_p, repetition_penalty, do_sample, .. } =
            self.generation;
        // Files have no key for greedy decoding (`do_sample` false).
        if do_sample != Some(false) {
            for (key, name) in SAMPLING_KEYS {
                let value = match *name {
                    "min_p" => min_p,
                    "repetition_penalty" => repetition_penalty,
                    "temperature" => temperature,
                    "top_p" => top_p,
                    _ => None,
                };
                value.into_iter().for_each(|value| keys.put(*key, GgufEntry::Float(value)));
            }
            if let Some(top_k) = top_k.and_then(|top_k| i32::try_from(top_k).ok()) {
                keys.put("general.sampling.top_k", GgufEntry::Int(top_k));
            }
        }
        keys
    }

    /// Builds the tokenizer with its special ids, and the chat templates.
    pub(super) fn tokenizer(
        &self,
        architecture: &str,
        rows: usize,
        tokenizer: &Tokenizer,
    ) -> Result<GgufEntries> {
        let json = read_required(self.files, file_names::TOKENIZER)?;
        let mut keys = Tokenizer::gguf_entries(&json, architecture, rows)?;
        let config: Map<String, Value> = match self.files.read(file_names::TOKENIZER_CONFIG)? {
            Some(json) => parse_json(file_names::TOKENIZER_CONFIG, &json)?,
            None => Map::new(),
        };
        let model: Value = parse_json(file_names::CONFIG, &read_required(self.files, file_names::CONFIG)?)?;
        let id = |name: &str| {
            let text = token_text(&config, &format!("{name}_token"));
            let of_text = text.and_then(|text| tokenizer.token_id(text));
            let key = format!("{name}_token_id");
            let of_model = |model: &Value| model.get(&key)?.as_u64()?.try_into().ok();
            let id = of_text.or_else(|| of_model(&model)).or_else(|| of_model(model.get("text_config")?));
            id.filter(|&id| (id as usize) < rows) // As llama.cpp's converter does; no token has the others.
        };
        for (name, key) in SPECIAL_TOKENS {
            if let Some(id) = id(name) {
                keys.put(format!("tokenizer.ggml.{key}_token_id"), GgufEntry::Size(id));
            }
        }
        for (kind, id) in END_KEYS.iter().zip(end_ids(architecture, tokenizer.end_ids(), id("eos"))?) {
            keys.put(format!("tokenizer.ggml.{kind}_token_id"), GgufEntry::Size(id));
        }
        for kind in ["bos", "eos"] {
            if let Some(add) = config.get(&format!("add_{kind}_token")).and_then(Value::as_bool) {
                keys.put(format!("tokenizer.ggml.add_{kind}_token"), GgufEntry::Bool(add));
            }
        }
        self.put_templates(&config, &mut keys)?;
        Ok(keys)
    }

    /// Adds the chat templates in transformers' order of precedence: separate files, else
    /// tokenizer_config.json.
    fn put_templates(&self, config: &Map<String, Value>, keys: &mut GgufEntries) -> Result<()> {
        let mut templates: BTreeMap<String, String> = BTreeMap::new();
        let of_json = |template: Option<&Value>| named_templates(template);
        if let Some(template) = self.files.read(file_names::CHAT_TEMPLATE)? {
            templates.insert("default".to_owned(), text(file_names::CHAT_TEMPLATE, &template)?);
            for file in self.files.list(file_names::ADDITIONAL_CHAT_TEMPLATES)? {
                let Some(name) = file.strip_suffix(".jinja") else { continue };
                let path = format!("{}/{file}", file_names::ADDITIONAL_CHAT_TEMPLATES);
                templates.insert(name.to_owned(), text(&path, &read_required(self.files, &path)?)?);
            }
        } else if let Some(json) = self.files.read(file_names::CHAT_TEMPLATE_JSON)? {
            let json: Map<String, Value> = parse_json(file_names::CHAT_TEMPLATE_JSON, &json)?;
            templates = of_json(json.get("chat_template"));
        } else {
            templates = of_json(config.get("chat_template"));
        }
        if let Some(template) = templates.remove("default") {
            keys.put(TEMPLATE_KEY, GgufEntry::Text(template));
        }
        if !templates.is_empty() {
            keys.put("tokenizer.chat_templates", GgufEntry::Texts(templates.keys().cloned().collect()));
        }
        for (name, template) in templates {
            keys.put(format!("{TEMPLATE_KEY}.{name}"), GgufEntry::Text(template));
        }
        Ok(())
    }
}

/// Parses one template, or a list of named ones.
fn named_templates(template: Option<&Value>) -> BTreeMap<String, String> {
    let named = |entry: &Value| {
        Some((entry.get("name")?.as_str()?.to_owned(), entry.get("template")?.as_str()?.to_owned()))
    };
    match template {
        Some(Value::String(template)) => [("default".to_owned(), template.clone())].into(),
        Some(Value::Array(list)) => list.iter().filter_map(named).collect(),
        _ => BTreeMap::new(),
    }
}

/// Returns the end-of-generation ids, the `eos` token's first; a file has keys for three.
fn end_ids(architecture: &str, all: &[TokenId], eos: Option<TokenId>) -> Result<Vec<TokenId>> {
    let mut ids = all.to_vec();
    ids.sort_by_key(|id| Some(*id) != eos);
    if ids.len() > END_KEYS.len() {
        return Err(Error::NoGgufForm {
            architecture: architecture.to_owned(),
            what: "eos_token_id".to_owned(),
            value: format!("{all:?}"),
            read: format!("{:?}", &ids[..END_KEYS.len()]),
        });
    }
    Ok(ids)
}

/// Text of a special token: a string, or an object in the form of an added token.
fn token_text<'a>(config: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    let token = config.get(key)?;
    token.as_str().or(token.get("content")?.as_str())
}

fn text(file: &str, bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|error| FormatError::InvalidValue {
        file: file.to_owned(),
        key: format!("byte {}", error.valid_up_to()),
        value: "no UTF-8".to_owned(),
        expected: "text".to_owned(),
    });
    Ok(text?.to_owned())
}
