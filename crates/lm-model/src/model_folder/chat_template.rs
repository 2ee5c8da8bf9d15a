//! Files that define a chat template.

use lm_formats::{ModelFiles, check_size, file_names, parse_optional};

use crate::error::Result;

/// Maximum size of all these files together; real ones have some thousand bytes, `tokenizer_config.json` up
/// to 2 MB.
const MAX_BYTES: usize = 64 << 20;
/// Files that contain a chat template, or the strings of the special tokens it uses.
const FILES: [&str; 4] = [
    file_names::CHAT_TEMPLATE,
    file_names::CHAT_TEMPLATE_JSON,
    file_names::TOKENIZER_CONFIG,
    file_names::SPECIAL_TOKENS_MAP,
];

/// Unparsed files that define a model's chat template: names inside the folder, and bytes.
///
/// The template renderer interprets them; this crate only passes them on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatTemplateSource {
    /// The existing files, by name; `additional_chat_templates/NAME.jinja` for additional templates.
    pub files: Vec<(String, Vec<u8>)>,
}

impl ChatTemplateSource {
    pub(super) fn read(files: &dyn ModelFiles) -> Result<Self> {
        let mut names: Vec<String> = FILES.map(str::to_owned).into();
        let more = files
            .list(file_names::ADDITIONAL_CHAT_TEMPLATES)?
            .into_iter()
            .filter(|name| name.ends_with(".jinja"));
        names.extend(more.map(|name| format!("{}/{name}", file_names::ADDITIONAL_CHAT_TEMPLATES)));
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

    /// Iterates over the names and bytes of the files.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }
}

/// The string of `eos_token`, from `tokenizer_config.json` or else `special_tokens_map.json`.
pub(super) fn eos_token(files: &dyn ModelFiles) -> Result<Option<String>> {
    for file in [file_names::TOKENIZER_CONFIG, file_names::SPECIAL_TOKENS_MAP] {
        let entries: serde_json::Map<String, serde_json::Value> =
            parse_optional(files, file)?.unwrap_or_default();
        // The token is a string, or an object in the form of an added token.
        let text =
            entries.get("eos_token").and_then(|token| token.as_str().or(token.get("content")?.as_str()));
        if let Some(text) = text {
            return Ok(Some(text.to_owned()));
        }
    }
    Ok(None)
}
