//! The chat templates of a Hugging Face folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::prompt_template::PromptTemplate;

const TEMPLATE: &str = "chat_template.jinja";
/// File of multimodal models from before `chat_template.jinja`.
const PROCESSOR_TEMPLATE: &str = "chat_template.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const SPECIAL_TOKENS: &str = "special_tokens_map.json";
/// Folder of additional templates, each file named after its template.
const ADDITIONAL_TEMPLATES: &str = "additional_chat_templates";
/// Name of the default template.
const DEFAULT: &str = "default";
/// Name of the template for conversations with tools, in models with several templates.
const TOOL_USE: &str = "tool_use";

/// Maximum size of a file. Real files have less than 1 MiB; a `tokenizer_config.json` with all added tokens,
/// a few MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of additional templates.
const MAX_ADDITIONAL_TEMPLATES: usize = 64;

/// Selects a template of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TemplateChoice<'a> {
    /// The template for conversations without tools.
    #[default]
    Default,
    /// The template for conversations with tools: `tool_use` if the model has it, else the default template.
    Tools,
    /// The template with this name.
    Named(&'a str),
}

/// The chat templates of a model and the special tokens they write.
///
/// Templates are read from a Hugging Face folder: `chat_template.jinja` with
/// `additional_chat_templates/*.jinja`, else `chat_template.json`, else `chat_template` of
/// `tokenizer_config.json`, which is one template or a list of named ones. The special tokens are the
/// `…_token` strings of `tokenizer_config.json` and `special_tokens_map.json`.
///
/// ```
/// use lm_template::{ChatTemplates, TemplateChoice};
///
/// let config = br#"{"bos_token": {"content": "<s>"}, "chat_template": [
///     {"name": "default", "template": "{{ bos_token }}{{ messages[0].content }}"},
///     {"name": "tool_use", "template": "{{ tools }}"}]}"#;
/// let templates = ChatTemplates::from_files([("tokenizer_config.json", &config[..])])?;
/// assert_eq!(templates.names().collect::<Vec<_>>(), ["default", "tool_use"]);
/// assert_eq!(templates.get(TemplateChoice::Tools)?.source(), "{{ tools }}");
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatTemplates {
    /// Name and source; the name is [`DEFAULT`] for a model's only, unnamed template.
    templates: Vec<(String, String)>,
    special_tokens: Map<String, Value>,
}

impl ChatTemplates {
    /// Reads the templates of a folder. Other files are not opened.
    ///
    /// # Errors
    /// [`Error::FileUnreadable`], [`Error::FileTooLarge`] (above 64 MiB) and [`Error::FileInvalid`], with the
    /// file.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        unreadable(folder, folder.read_dir())?;
        let mut names: Vec<String> =
            [TEMPLATE, PROCESSOR_TEMPLATE, TOKENIZER_CONFIG, SPECIAL_TOKENS].map(str::to_owned).into();
        names.extend(additional_templates(folder)?);
        let mut files = Vec::new();
        for name in names {
            if let Some(bytes) = read_file(&folder.join(&name))? {
                files.push((name, bytes));
            }
        }
        Self::from_files(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
    }

    /// Reads the templates from files in memory: names relative to the folder (with `/`) and bytes. Files
    /// with other names are ignored.
    ///
    /// # Errors
    /// [`Error::FileInvalid`], with the file.
    pub fn from_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self> {
        let files: Vec<_> = files.into_iter().collect();
        let find = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, bytes)| *bytes);
        let mut templates = Vec::new();
        if let Some(bytes) = find(TEMPLATE) {
            templates.push((DEFAULT.to_owned(), text(TEMPLATE, bytes)?));
        }
        for (file, bytes) in &files {
            if let Some(name) = additional_template_name(file) {
                templates.push((name.to_owned(), text(file, bytes)?));
            }
        }
        for file in [PROCESSOR_TEMPLATE, TOKENIZER_CONFIG] {
            if let Some(bytes) = find(file).filter(|_| templates.is_empty()) {
                templates = in_config(file, bytes)?;
            }
        }
        let mut special_tokens = Map::new();
        for file in [SPECIAL_TOKENS, TOKENIZER_CONFIG] {
            let entries: Map<String, Value> =
                find(file).map_or(Ok(Map::new()), |bytes| parse(file, bytes))?;
            special_tokens.extend(entries.into_iter().filter_map(special_token));
        }
        Ok(Self { templates, special_tokens })
    }

    /// Names of the templates, in file order; empty if the model has no template.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.templates.iter().map(|(name, _)| name.as_str())
    }

    /// The special tokens (`bos_token`, …) as strings.
    pub fn special_tokens(&self) -> &Map<String, Value> {
        &self.special_tokens
    }

    /// Compiles a template, with the model's special tokens as its variables.
    ///
    /// # Errors
    /// [`Error::UnknownTemplate`] when the model has no such template, and those of [`PromptTemplate::new`].
    pub fn get(&self, choice: TemplateChoice<'_>) -> Result<PromptTemplate> {
        Ok(PromptTemplate::new(self.source(choice)?)?.with_context(self.special_tokens.clone()))
    }

    /// Source of a template.
    ///
    /// # Errors
    /// [`Error::UnknownTemplate`] when the model has no such template.
    pub fn source(&self, choice: TemplateChoice<'_>) -> Result<&str> {
        let find = |name: &str| self.templates.iter().find(|(found, _)| found == name);
        let (wanted, found) = match choice {
            TemplateChoice::Default => (DEFAULT, find(DEFAULT)),
            TemplateChoice::Tools => (TOOL_USE, find(TOOL_USE).or_else(|| find(DEFAULT))),
            TemplateChoice::Named(name) => (name, find(name)),
        };
        let unknown = || Error::UnknownTemplate {
            name: wanted.to_owned(),
            known: self.names().map(str::to_owned).collect(),
        };
        found.map(|(_, source)| source.as_str()).ok_or_else(unknown)
    }
}

/// Returns `NAME` of `additional_chat_templates/NAME.jinja`.
fn additional_template_name(file: &str) -> Option<&str> {
    file.strip_prefix(ADDITIONAL_TEMPLATES)?.strip_prefix('/')?.strip_suffix(".jinja")
}

/// Reads `chat_template` of a JSON file: a template, a list of named templates, or nothing.
fn in_config(file: &str, bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let mut config: Map<String, Value> = parse(file, bytes)?;
    let wrong = || Error::FileInvalid {
        file: file.to_owned(),
        reason: "`chat_template` is neither text nor a list of `name` and `template`".to_owned(),
    };
    let named = |mut template: Value| match (template["name"].take(), template["template"].take()) {
        (Value::String(name), Value::String(source)) => Ok((name, source)),
        _ => Err(wrong()),
    };
    match config.remove("chat_template") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(source)) => Ok(vec![(DEFAULT.to_owned(), source)]),
        Some(Value::Array(templates)) if templates.iter().all(Value::is_object) => {
            templates.into_iter().map(named).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Reads a special token: a string, or an object (added token) with the string in `content`.
fn special_token((key, value): (String, Value)) -> Option<(String, Value)> {
    let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
    key.ends_with("_token").then(|| (key, text.into()))
}

fn text(file: &str, bytes: &[u8]) -> Result<String> {
    let invalid = |error: std::str::Utf8Error| Error::FileInvalid {
        file: file.to_owned(),
        reason: format!("it is not UTF-8: {error}"),
    };
    std::str::from_utf8(bytes).map(str::to_owned).map_err(invalid)
}

fn parse<T: DeserializeOwned>(file: &str, bytes: &[u8]) -> Result<T> {
    let invalid =
        |error: serde_json::Error| Error::FileInvalid { file: file.to_owned(), reason: error.to_string() };
    serde_json::from_slice(bytes).map_err(invalid)
}

/// Files of additional templates, sorted.
fn additional_templates(folder: &Path) -> Result<Vec<String>> {
    let path = folder.join(ADDITIONAL_TEMPLATES);
    let entries = match path.read_dir() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => unreadable(&path, entries)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = unreadable(&path, entry)?.file_name();
        names.extend(name.to_str().map(|name| format!("{ADDITIONAL_TEMPLATES}/{name}")));
    }
    names.retain(|name| additional_template_name(name).is_some());
    if names.len() > MAX_ADDITIONAL_TEMPLATES {
        let reason =
            format!("it holds {} templates, at most {MAX_ADDITIONAL_TEMPLATES} are read", names.len());
        return Err(Error::FileInvalid { file: path.display().to_string(), reason });
    }
    names.sort_unstable();
    Ok(names)
}

/// Reads a file; `None` if it does not exist.
fn read_file(path: &Path) -> Result<Option<Vec<u8>>> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => unreadable(path, metadata)?,
    };
    if !metadata.is_file() {
        // Opening a pipe or a device blocks until its other end opens.
        unreadable(path, Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")))?;
    }
    let mut bytes = Vec::new();
    unreadable(path, unreadable(path, File::open(path))?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::FileTooLarge { file: path.display().to_string(), limit: MAX_FILE_BYTES });
    }
    Ok(Some(bytes))
}

fn unreadable<T>(path: &Path, result: io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::FileUnreadable {
        file: path.display().to_string(),
        reason: error.to_string(),
    })
}
