//! The chat template as the folder holds it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::files::{ModelFiles, parse_optional, parse_text};
use crate::{Error, Result};

const TEMPLATE_FILE: &str = "chat_template.jinja";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const SPECIAL_TOKENS: &str = "special_tokens_map.json";

/// A chat template as written, and what it needs besides the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatTemplateSource {
    /// Jinja source of the default template.
    pub template: String,
    /// Further templates by name (`tool_use`, ...), in the file's order.
    pub named: Vec<(String, String)>,
    /// Special token strings for the template's context: `bos_token`, `eos_token`, ...
    pub special_tokens: BTreeMap<String, String>,
}

/// `chat_template` of `tokenizer_config.json`: one template or several with names.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(String),
    Named(Vec<NamedTemplate>),
}

#[derive(Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

impl ChatTemplateSource {
    pub(super) fn read(files: &dyn ModelFiles) -> Result<Option<Self>> {
        let (template, named) = match files.read(TEMPLATE_FILE)? {
            Some(bytes) => (parse_text(TEMPLATE_FILE, &bytes)?, Vec::new()),
            None => match read_tokenizer_config(files)? {
                Some(templates) => templates,
                None => return Ok(None),
            },
        };
        Ok(Some(Self { template, named, special_tokens: special_tokens(files)? }))
    }
}

type Templates = (String, Vec<(String, String)>);

fn read_tokenizer_config(files: &dyn ModelFiles) -> Result<Option<Templates>> {
    #[derive(Deserialize)]
    struct TokenizerConfig {
        chat_template: Option<Written>,
    }
    let config: Option<TokenizerConfig> = parse_optional(files, TOKENIZER_CONFIG)?;
    match config.and_then(|config| config.chat_template) {
        None => Ok(None),
        Some(Written::One(template)) => Ok(Some((template, Vec::new()))),
        Some(Written::Named(templates)) => split_named(templates).map(Some),
    }
}

fn split_named(templates: Vec<NamedTemplate>) -> Result<Templates> {
    let names = templates.iter().map(|named| named.name.clone()).collect::<Vec<_>>();
    let (default, named): (Vec<_>, Vec<_>) = templates
        .into_iter()
        .map(|named| (named.name, named.template))
        .partition(|(name, _)| name == "default");
    match <[_; 1]>::try_from(default) {
        Ok([(_, template)]) => Ok((template, named)),
        Err(_) => Err(Error::InvalidValue {
            file: TOKENIZER_CONFIG.into(),
            key: "chat_template".into(),
            value: format!("a list of templates named {names:?}"),
            expected: "one of them named default".into(),
        }),
    }
}

/// The strings of `bos_token` and its like, from `tokenizer_config.json` or else `special_tokens_map.json`.
pub(super) fn special_tokens(files: &dyn ModelFiles) -> Result<BTreeMap<String, String>> {
    let mut tokens = BTreeMap::new();
    for file in [SPECIAL_TOKENS, TOKENIZER_CONFIG] {
        let entries: Map<String, Value> = parse_optional(files, file)?.unwrap_or_default();
        for (key, value) in entries {
            // Written as the string, or as an object with the rules of the added token.
            let text = value.as_str().or_else(|| value.get("content")?.as_str());
            if let Some(text) = text.filter(|_| key.ends_with("_token")) {
                tokens.insert(key, text.to_owned());
            }
        }
    }
    Ok(tokens)
}
