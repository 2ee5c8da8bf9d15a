//! A model as a folder of files, on disk or embedded in the program.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::{CausalLm, Device, KvDtype, Result, TokenId, Tokenizer, WeightFormat};

/// A Hugging Face model folder.
#[derive(Debug)]
pub struct ModelFolder {}

impl ModelFolder {
    /// Opens a directory.
    pub fn open(_path: impl AsRef<Path>) -> Result<Self> {
        todo!()
    }

    /// A folder whose files are part of the program; `name` is how messages call it.
    pub fn embedded(_name: &'static str, _files: &'static [(&'static str, &'static [u8])]) -> Self {
        todo!()
    }

    /// Loads weights and tokenizer.
    pub fn load(
        &self,
        _options: &LoadOptions,
        _progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<LoadedModel> {
        todo!()
    }
}

/// Where and how a model is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Device of weights and cache. Default: the CPU.
    pub device: Device,
    /// Format of the linear weights; `None` keeps what the files hold.
    pub quantization: Option<WeightFormat>,
    /// Storage of keys and values. Default: f16.
    pub kv_dtype: KvDtype,
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// What is being done.
    pub phase: LoadPhase,
    /// Bytes of the files dealt with.
    pub done_bytes: u64,
    /// Bytes of all weights in the files.
    pub total_bytes: u64,
}

/// The parts of a load, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPhase {
    /// Reading the config, the tokenizer and the tensors' headers.
    Opening,
    /// Packing the weights for the device.
    Weights,
    /// Everything is loaded.
    Done,
}

/// A model ready to run.
#[derive(Clone)]
pub struct LoadedModel {
    /// The model.
    pub model: Arc<dyn CausalLm>,
    /// Its tokenizer, with end ids and logits width set.
    pub tokenizer: Arc<Tokenizer>,
    /// Its chat template, where the folder has one.
    pub chat_template: Option<ChatTemplateSource>,
    /// Its advice for generation.
    pub generation_config: GenerationConfig,
    /// Name of the folder.
    pub name: String,
}

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

/// What a model's authors advise for generation. Absent values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationConfig {
    /// Ids that end a reply.
    pub eos_token_ids: Vec<TokenId>,
    /// Whether to sample at all.
    pub do_sample: Option<bool>,
    /// Softmax temperature.
    pub temperature: Option<f32>,
    /// Most likely tokens kept.
    pub top_k: Option<usize>,
    /// Probability mass kept.
    pub top_p: Option<f32>,
    /// Least probability relative to the best token.
    pub min_p: Option<f32>,
    /// Divisor of the logits of tokens already seen.
    pub repetition_penalty: Option<f32>,
}
