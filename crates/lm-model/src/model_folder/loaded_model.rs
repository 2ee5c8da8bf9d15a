//! Options of a load, and the loaded model.

use std::path::PathBuf;
use std::sync::Arc;

use lm_kernels::{Device, KvDtype, WeightFormat};
use lm_tokenizer::Tokenizer;

use super::ChatTemplateSource;
use crate::causal_lm::CausalLm;
use crate::config::GenerationConfig;
use crate::embedding_config::{CrossEncoderConfig, EmbeddingConfig};
use crate::loader::{Adapter, AdapterLoader};
use crate::media::{AudioEncoder, VisionEncoder};

/// Options of [`ModelFolder::load`](crate::ModelFolder::load).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Device of weights and cache. Default: the CPU.
    pub device: Device,
    /// Device of the encoder of images. Default: the model's, `device`.
    pub vision: Option<Device>,
    /// Device of the encoder of audio. Default: the model's, `device`.
    pub audio: Option<Device>,
    /// Format of the matrices; `None` keeps the stored format.
    pub quantization: Option<WeightFormat>,
    /// Storage type of keys and values. Default: f16.
    pub kv_dtype: KvDtype,
    /// Folder that caches quantised weights for the next load of the same files; created if absent. Default:
    /// none.
    ///
    /// It is used if `quantization` is Q8 or Q4 and the model is a folder of floats on disk. An entry is as
    /// large as the quantised weights; a corrupt entry, or one whose source files have changed, is replaced.
    /// If the cache cannot be used, the load proceeds without it and logs a warning.
    pub pack_cache: Option<PathBuf>,
    /// Folders of LoRA adapters in PEFT's format (`adapter_config.json`, `adapter_model.safetensors`) to load
    /// in addition to the weights, which stay unchanged: [`LoadedModel::adapters`]. Default: none.
    /// [`AdapterLoader`] loads others later.
    pub adapters: Vec<PathBuf>,
}

/// Loaded model, ready to run.
#[derive(Clone)]
pub struct LoadedModel {
    /// The model.
    pub model: Arc<dyn CausalLm>,
    /// Its tokenizer, with end-of-sequence ids and logits width set.
    pub tokenizer: Arc<Tokenizer>,
    /// Files of its chat template, if the folder has any.
    pub chat_template: Option<ChatTemplateSource>,
    /// Its recommended generation parameters.
    pub generation_config: GenerationConfig,
    /// Computation of its embeddings.
    pub embedding: Arc<EmbeddingConfig>,
    /// Settings of its classifier as a cross-encoder.
    pub cross_encoder: CrossEncoderConfig,
    /// Name of the folder.
    pub name: String,
    /// Adapters of [`LoadOptions::adapters`], in their order.
    pub adapters: Vec<Adapter>,
    /// Loader of further adapters; `None` if the model does not support adapters.
    pub adapter_loader: Option<AdapterLoader>,
    /// Encoder of images; `None` if the model does not read images.
    pub vision: Option<Arc<dyn VisionEncoder>>,
    /// Encoder of audio; `None` if the model does not read audio.
    pub audio: Option<Arc<dyn AudioEncoder>>,
    /// Adapter for audio in the model's own folder (Granite Speech), only for sequences with rows of audio.
    pub audio_adapter: Option<Adapter>,
}
