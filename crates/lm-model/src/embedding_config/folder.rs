//! Files of sentence-transformers in a model folder.

use std::collections::BTreeMap;

use lm_formats::{
    Error as FormatError, ModelFiles, file_names, is_plain_name, parse_json, parse_optional, read_required,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::dense::Dense;
use super::{EmbeddingConfig, EmbeddingLayer};
use crate::config::{ModelConfig, shown};
use crate::error::{Error, Result};
use crate::spec::Pooling;

/// Name of the pooled vector among the values that modules pass on.
pub(super) const VECTOR: &str = "sentence_embedding";
/// Maximum number of modules; real models have up to 5.
const MAX_MODULES: usize = 16;
/// Modules, by the last part of their type.
const KNOWN_MODULES: &str = "Transformer, Pooling, then Dense and Normalize";
/// Value of `model_type` of a model of embeddings.
const EMBEDDINGS: &str = "SentenceTransformer";
/// Tasks of a transformer: embeddings, and the logits of a cross-encoder.
const TASKS: [&str; 2] = ["feature-extraction", "sequence-classification"];

/// Modes of pooling: the word of `pooling_mode`, the older key with a boolean, and ours.
const MODES: [(&str, &str, Option<Pooling>); 6] = [
    ("cls", "pooling_mode_cls_token", Some(Pooling::Cls)),
    ("max", "pooling_mode_max_tokens", None),
    ("mean", "pooling_mode_mean_tokens", Some(Pooling::Mean)),
    ("mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", None),
    ("weightedmean", "pooling_mode_weightedmean_tokens", None),
    ("lasttoken", "pooling_mode_lasttoken", Some(Pooling::Last)),
];

/// Key of a GGUF file's pooling, which it shares with the config.json that stands for its metadata.
pub(crate) const POOLING_TYPE: &str = "pooling_type";
/// Its values: none, mean, first token, last token, and the logits of a classifier.
const POOLING_TYPES: [Pooling; 5] = [Pooling::Mean, Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Cls];

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize, Default)]
struct Prompts {
    model_type: Option<String>,
    prompts: Option<BTreeMap<String, String>>,
    default_prompt_name: Option<String>,
}

#[derive(Deserialize, Default)]
struct TransformerSettings {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
    transformer_task: Option<String>,
}

/// Settings of the tokenizer; an absent maximum is written as 1e30.
#[derive(Deserialize, Default)]
struct TokenizerSettings {
    model_max_length: Option<f64>,
    truncation_side: Option<String>,
}

impl EmbeddingConfig {
    /// Reads the files of sentence-transformers; the default if there is no `modules.json`, and for a model
    /// of another kind, such as a reranker. `positions` is the number of an encoder's positions: longer texts
    /// are cut off there.
    pub(crate) fn read(
        files: &dyn ModelFiles,
        config: &ModelConfig,
        positions: Option<usize>,
    ) -> Result<Self> {
        let prompts: Prompts = parse_optional(files, file_names::SENTENCE_TRANSFORMERS)?.unwrap_or_default();
        let modules = modules(files)?;
        if modules.is_empty() || prompts.model_type.as_deref().is_some_and(|kind| kind != EMBEDDINGS) {
            return Ok(Self { pooling: of_gguf(config)?, ..Self::default() });
        }
        let mut found =
            Self { layers: Vec::new(), max_tokens: max_tokens(files, config)?, ..Self::default() };
        found.max_tokens = found.max_tokens.into_iter().chain(positions).min();
        for (index, module) in modules.iter().enumerate() {
            found.add_module(files, index, module, config.hidden_size)?;
        }
        if modules.len() < 2 {
            return Err(unsupported(file_names::MODULES, "1.type", &"absent", KNOWN_MODULES));
        }
        found.prompts = prompts.prompts.unwrap_or_default();
        found.default_prompt_name = prompts.default_prompt_name;
        found.check_default_prompt()?;
        Ok(found)
    }

    fn add_module(
        &mut self,
        files: &dyn ModelFiles,
        index: usize,
        module: &Module,
        hidden_size: usize,
    ) -> Result<()> {
        match (index, module.name()) {
            (0, Some("Transformer")) if module.path.is_empty() => return Ok(()),
            (0, Some("Transformer")) => {
                let known = "an empty one: the model's files beside modules.json";
                return Err(unsupported(file_names::MODULES, "0.path", &module.path, known));
            }
            (1, Some("Pooling")) => {
                (self.pooling, self.include_prompt) = pooling(files, module.folder(index)?)?
            }
            (2.., Some("Dense")) => {
                let dense = Dense::read(files, module.folder(index)?, self.size(hidden_size))?;
                self.layers.push(EmbeddingLayer::Dense(dense));
            }
            (2.., Some("Normalize")) => {
                check_normalize(files, module.folder(index)?)?;
                self.layers.push(EmbeddingLayer::Normalize);
            }
            _ => {
                let key = format!("{index}.type");
                return Err(unsupported(file_names::MODULES, &key, &module.kind, KNOWN_MODULES));
            }
        }
        Ok(())
    }

    fn check_default_prompt(&self) -> Result<()> {
        match &self.default_prompt_name {
            Some(name) if !self.prompts.contains_key(name) => Err(invalid(
                file_names::SENTENCE_TRANSFORMERS,
                "default_prompt_name",
                name,
                "the name of a prompt",
            )),
            _ => Ok(()),
        }
    }
}

impl Module {
    /// Name of a module of the library itself; `None` for code of the model's own.
    fn name(&self) -> Option<&str> {
        self.kind.strip_prefix("sentence_transformers.")?.rsplit('.').next()
    }

    /// Folder of the module, inside the model's.
    fn folder(&self, index: usize) -> Result<&str> {
        if is_plain_name(&self.path) {
            return Ok(&self.path);
        }
        let key = format!("{index}.path");
        Err(invalid(file_names::MODULES, &key, &self.path, "the name of a folder inside the model's"))
    }
}

/// Pooling of a GGUF file; the default for one that names none, and for a folder.
fn of_gguf(config: &ModelConfig) -> Result<Pooling> {
    let Some(number) = config.keys.get(POOLING_TYPE) else { return Ok(Pooling::default()) };
    let row = number.as_u64().and_then(|number| POOLING_TYPES.get(usize::try_from(number).ok()?));
    row.copied().ok_or_else(|| {
        let known = "0 (none), 1 (mean), 2 (cls), 3 (last), 4 (rank)";
        unsupported(file_names::CONFIG, POOLING_TYPE, number, known)
    })
}

/// Names of the files of sentence-transformers that a model may have.
pub(crate) fn files(files: &dyn ModelFiles) -> Result<Vec<String>> {
    let names = [file_names::MODULES, file_names::SENTENCE_TRANSFORMERS, file_names::SENTENCE_BERT];
    let mut names: Vec<String> = names.map(str::to_owned).into();
    for Module { path, .. } in modules(files)?.into_iter().filter(|module| is_plain_name(&module.path)) {
        names.extend([file_names::CONFIG, file_names::WEIGHTS].map(|name| format!("{path}/{name}")));
    }
    Ok(names)
}

fn modules(files: &dyn ModelFiles) -> Result<Vec<Module>> {
    let modules: Vec<Module> = parse_optional(files, file_names::MODULES)?.unwrap_or_default();
    match modules.len() {
        ..=MAX_MODULES => Ok(modules),
        len => {
            let expected = format!("at most {MAX_MODULES} modules");
            Err(invalid(file_names::MODULES, "length", &len, &expected))
        }
    }
}

/// Pooling in a folder, and true if the prompt takes part in it.
fn pooling(files: &dyn ModelFiles, folder: &str) -> Result<(Pooling, bool)> {
    let file = format!("{folder}/{}", file_names::CONFIG);
    let settings: Map<String, Value> = parse_json(&file, &read_required(files, &file)?)?;
    let is_set = |key: &str| settings.get(key).and_then(Value::as_bool) == Some(true);
    let modes: Vec<String> = match settings.get("pooling_mode") {
        Some(Value::String(mode)) => vec![mode.clone()],
        Some(Value::Array(modes)) => {
            modes.iter().map(|mode| mode.as_str().map_or_else(|| mode.to_string(), str::to_owned)).collect()
        }
        Some(other) => vec![other.to_string()],
        None => MODES.iter().filter(|(_, key, _)| is_set(key)).map(|(mode, ..)| (*mode).to_owned()).collect(),
    };
    let found = match &modes[..] {
        [] => Some(Pooling::Mean),
        [mode] => MODES.iter().find(|(known, ..)| known == mode).and_then(|row| row.2),
        _ => None,
    };
    let known = || {
        let known: Vec<&str> = MODES.iter().filter(|row| row.2.is_some()).map(|row| row.0).collect();
        format!("one of {}", known.join(", "))
    };
    let pooling = found.ok_or_else(|| unsupported(&file, "pooling_mode", &modes.join(", "), &known()))?;
    Ok((pooling, settings.get("include_prompt").and_then(Value::as_bool) != Some(false)))
}

fn check_normalize(files: &dyn ModelFiles, folder: &str) -> Result<()> {
    let file = format!("{folder}/{}", file_names::CONFIG);
    let settings: Map<String, Value> = parse_optional(files, &file)?.unwrap_or_default();
    for key in ["module_input_name", "module_output_name"] {
        if let Some(name) = settings.get(key).and_then(Value::as_str).filter(|name| *name != VECTOR) {
            return Err(unsupported(&file, key, &name, VECTOR));
        }
    }
    Ok(())
}

/// Maximum number of tokens: that of the module, or else the tokenizer's if it is below the context.
pub(super) fn max_tokens(files: &dyn ModelFiles, config: &ModelConfig) -> Result<Option<usize>> {
    let file = file_names::SENTENCE_BERT;
    let settings: TransformerSettings = parse_optional(files, file)?.unwrap_or_default();
    if settings.do_lower_case {
        return Err(unsupported(file, "do_lower_case", &true, "false"));
    }
    if let Some(task) = settings.transformer_task.filter(|task| !TASKS.contains(&task.as_str())) {
        return Err(unsupported(file, "transformer_task", &task, &TASKS.join(", ")));
    }
    let tokenizer: TokenizerSettings =
        parse_optional(files, file_names::TOKENIZER_CONFIG)?.unwrap_or_default();
    let of_tokenizer = tokenizer.model_max_length.filter(|&max| max >= 1.0).map(|max| max as usize);
    let shorter = of_tokenizer.filter(|&max| max < config.max_position_embeddings);
    let max_tokens = settings.max_seq_length.or(shorter);
    match tokenizer.truncation_side {
        Some(side) if max_tokens.is_some() && side != "right" => {
            Err(unsupported(file_names::TOKENIZER_CONFIG, "truncation_side", &side, "right"))
        }
        _ => Ok(max_tokens),
    }
}

pub(super) fn unsupported(file: &str, key: &str, value: &impl ToString, known: &str) -> Error {
    let (file, key, known) = (file.to_owned(), key.to_owned(), known.to_owned());
    FormatError::UnsupportedValue { file, key, value: shown(value), known }.into()
}

pub(super) fn invalid(file: &str, key: &str, value: &impl ToString, expected: &str) -> Error {
    let (file, key, expected) = (file.to_owned(), key.to_owned(), expected.to_owned());
    FormatError::InvalidValue { file, key, value: shown(value), expected }.into()
}
