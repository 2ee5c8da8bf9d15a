//! Texts of a GGUF model as files of a Hugging Face folder: chat templates, special tokens, generation
//! config.

use lm_formats::{GgufMetadata, Result, file_names, is_plain_name};
use serde_json::{Map, Value, json};

use crate::gguf::decimal;

pub(super) const TEMPLATE_KEY: &str = "tokenizer.chat_template";
/// Keys of the end-of-generation ids: of a text, a turn, a message.
pub(super) const END_KEYS: [&str; 3] = ["eos", "eot", "eom"];
/// Sampling parameters of the generation config: GGUF key, JSON key.
pub(super) const SAMPLING_KEYS: &[(&str, &str)] = &[
    ("general.sampling.min_p", "min_p"),
    ("general.sampling.penalty_repeat", "repetition_penalty"),
    ("general.sampling.temp", "temperature"),
    ("general.sampling.top_p", "top_p"),
];

const TOP_K_KEY: &str = "general.sampling.top_k";

/// Returns the text of a file that the metadata provides; `None` for other files.
pub(super) fn file(metadata: &GgufMetadata, name: &str) -> Result<Option<String>> {
    match name {
        // An empty text is no template.
        file_names::CHAT_TEMPLATE => {
            Ok(metadata.str(TEMPLATE_KEY)?.filter(|text| !text.trim().is_empty()).map(str::to_owned))
        }
        file_names::GENERATION_CONFIG => Ok(Some(generation_config(metadata)?.to_string())),
        file_names::TOKENIZER_CONFIG => Ok(Some(tokenizer_config(metadata)?.to_string())),
        _ => {
            let template = name
                .strip_prefix(file_names::ADDITIONAL_CHAT_TEMPLATES)
                .and_then(|name| name.strip_prefix('/')?.strip_suffix(".jinja"));
            let Some(template) = template else { return Ok(None) };
            Ok(metadata.str(&format!("{TEMPLATE_KEY}.{template}"))?.map(str::to_owned))
        }
    }
}

/// File names of the additional chat templates in their folder.
pub(super) fn list(metadata: &GgufMetadata, folder: &str) -> Result<Vec<String>> {
    if folder != file_names::ADDITIONAL_CHAT_TEMPLATES {
        return Ok(Vec::new());
    }
    let name = |key: &str| Some(format!("{}.jinja", key.strip_prefix(TEMPLATE_KEY)?.strip_prefix('.')?));
    // The names may become files of a folder, so they must be plain.
    Ok(metadata.keys().filter_map(|(key, _)| name(key)).filter(|name| is_plain_name(name)).collect())
}

fn generation_config(metadata: &GgufMetadata) -> Result<Value> {
    let mut config = Map::new();
    let mut end_ids = Vec::new();
    for kind in END_KEYS {
        end_ids.extend(metadata.token_id(kind)?);
    }
    end_ids.dedup();
    if !end_ids.is_empty() {
        config.insert("eos_token_id".to_owned(), json!(end_ids));
    }
    for (from, to) in SAMPLING_KEYS {
        if let Some(number) = recommended(from, metadata.float(from)).and_then(decimal) {
            config.insert((*to).to_owned(), number.into());
        }
    }
    if let Some(top_k) = recommended(TOP_K_KEY, metadata.size(TOP_K_KEY)) {
        config.insert("top_k".to_owned(), top_k.into());
    }
    // Files have no key for it: a file with sampling parameters is one to sample from, one without recommends
    // nothing.
    let samples =
        SAMPLING_KEYS.iter().map(|(_, to)| *to).chain(["top_k"]).any(|key| config.contains_key(key));
    config.insert("do_sample".to_owned(), if samples { true.into() } else { Value::Null });
    Ok(config.into())
}

/// A recommended sampling parameter; one of another type is passed over with a warning.
fn recommended<T>(key: &str, value: Result<Option<T>>) -> Option<T> {
    value.unwrap_or_else(|error| {
        tracing::warn!(key, %error, "the recommended sampling parameter is passed over");
        None
    })
}

/// Texts of the special tokens that chat templates use.
fn tokenizer_config(metadata: &GgufMetadata) -> Result<Value> {
    let mut config = Map::new();
    for kind in ["bos", "eos", "padding", "unknown"] {
        let Some(id) = metadata.token_id(kind)? else { continue };
        let tokens = metadata.strings("tokenizer.ggml.tokens")?;
        let Some(token) = tokens.and_then(|mut tokens| tokens.nth(id)).transpose()? else { continue };
        let kind = match kind {
            "padding" => "pad",
            "unknown" => "unk",
            same => same,
        };
        config.insert(format!("{kind}_token"), token.into());
    }
    Ok(config.into())
}
