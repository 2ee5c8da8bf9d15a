//! The files that a chat template is made from.

use super::files::{ModelFiles, check_size, parse_optional};
use crate::Result;

pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const SPECIAL_TOKENS: &str = "special_tokens_map.json";
/// The folder of further templates, each a file `NAME.jinja`.
pub(crate) const MORE_TEMPLATES: &str = "additional_chat_templates";
/// The chat template alone.
pub(crate) const CHAT_TEMPLATE: &str = "chat_template.jinja";
/// Most bytes of all these files together; real ones have some thousands, `tokenizer_config.json` up to 2 MB.
const MAX_BYTES: usize = 64 << 20;
/// Files that hold a chat template, or the strings of the tokens it writes.
const FILES: [&str; 4] = [CHAT_TEMPLATE, "chat_template.json", TOKENIZER_CONFIG, SPECIAL_TOKENS];

/// The files of a model that say what its chat template is, as they are: names inside the folder, and bytes.
///
/// What they mean is known to who renders templates; here they only travel with the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatTemplateSource {
    /// The files that are there, by name; `additional_chat_templates/NAME.jinja` for further templates.
    pub files: Vec<(String, Vec<u8>)>,
}

impl ChatTemplateSource {
    pub(super) fn read(files: &dyn ModelFiles) -> Result<Self> {
        let mut names: Vec<String> = FILES.map(str::to_owned).into();
        let more = files.list(MORE_TEMPLATES)?.into_iter().filter(|name| name.ends_with(".jinja"));
        names.extend(more.map(|name| format!("{MORE_TEMPLATES}/{name}")));
        let (mut found, mut left) = (Vec::new(), MAX_BYTES);
        for name in names {
            if let Some(bytes) = files.read(&name)? {
                check_size(left, &name, &bytes)?;
                left -= bytes.len();
                found.push((name, bytes.to_vec()));
            }
        }
        Ok(Self { files: found })
    }

    /// The files' names and bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }
}

/// The string of `eos_token`, from `tokenizer_config.json` or else `special_tokens_map.json`.
pub(super) fn eos_token(files: &dyn ModelFiles) -> Result<Option<String>> {
    for file in [TOKENIZER_CONFIG, SPECIAL_TOKENS] {
        let entries: serde_json::Map<String, serde_json::Value> =
            parse_optional(files, file)?.unwrap_or_default();
        // Written as the string, or as an object with the rules of the added token.
        let text =
            entries.get("eos_token").and_then(|token| token.as_str().or(token.get("content")?.as_str()));
        if let Some(text) = text {
            return Ok(Some(text.to_owned()));
        }
    }
    Ok(None)
}
