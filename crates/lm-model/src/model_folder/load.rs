//! Loading of the weights, the tokenizer and the template.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use lm_kernels::{Device, WeightFormat};
use lm_tokenizer::Tokenizer;

use super::pack_cache::PackCacheEntry;
use super::quantized_file::QuantizedFile;
use super::{ChatTemplateSource, LoadOptions, LoadedModel, ModelFolder};
use crate::architectures::Architecture;
use crate::causal_lm::CausalLm;
use crate::checkpoint::Checkpoint;
use crate::config::{GenerationConfig, ModelConfig};
use crate::decoder::Decoder;
use crate::embedding_config::{CrossEncoderConfig, EmbeddingConfig};
use crate::encoders::EncoderPart;
use crate::error::{Error, Result};
use crate::loader::{
    Adapter, AdapterFolder, InputRecords, LoadPhase, LoadProgress, Storage, WeightLoader, checksum,
};
use crate::media::{AudioEncoder, VisionEncoder};
use crate::spec::DecoderSpec;

/// The parts of a model that are built from its weights.
struct Weights {
    model: Decoder,
    adapters: Vec<Adapter>,
    audio_adapter: Option<Adapter>,
    vision: Option<Arc<dyn VisionEncoder>>,
    audio: Option<Arc<dyn AudioEncoder>>,
}

/// The parts of a model without its weights.
struct Texts {
    tokenizer: Tokenizer,
    chat_template: Option<ChatTemplateSource>,
    generation_config: GenerationConfig,
    embedding: EmbeddingConfig,
    cross_encoder: CrossEncoderConfig,
}

impl ModelFolder {
    /// Loads the model. All tensors are checked before the first one is packed; tokenizer and template are
    /// read in parallel.
    ///
    /// Matrices (embedding and output head included) are packed in the requested format, one by one, from the
    /// file's bytes; norms and biases are f32. `progress` is called at each phase and after each tensor.
    ///
    /// # Errors
    /// When a file is missing or not valid, tensors and config do not match, or the device is not compiled
    /// in.
    pub fn load(&self, options: &LoadOptions, progress: &mut dyn FnMut(LoadProgress)) -> Result<LoadedModel> {
        self.load_parts(options, None, progress)
    }

    /// [`load`](Self::load), with records of the inputs of the decoder's matrices if requested.
    pub(super) fn load_parts(
        &self,
        options: &LoadOptions,
        records: Option<&mut InputRecords>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<LoadedModel> {
        progress(LoadProgress { phase: LoadPhase::Opening, done_bytes: 0, total_bytes: 0 });
        let config = self.config()?;
        thread::scope(|scope| {
            let read = || self.texts();
            let texts = thread::Builder::new().name("lm-tokenizer".into()).spawn_scoped(scope, read);
            let model = self.load_weights(config, options, records, progress);
            let texts = match texts {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => read(), // No thread is available.
            };
            let Texts { tokenizer, chat_template, generation_config, embedding, cross_encoder } = texts?;
            let Weights { model, adapters, audio_adapter, vision, audio } = model?;
            let tokenizer = Arc::new(tokenizer);
            Ok(LoadedModel {
                adapter_loader: Some(model.adapter_loader().clone()),
                adapters,
                audio_adapter,
                model: Arc::new(model),
                tokenizer,
                chat_template,
                generation_config,
                embedding: Arc::new(embedding),
                cross_encoder,
                vision,
                audio,
                name: self.name.clone(),
            })
        })
    }

    /// Reads everything except the weights.
    fn texts(&self) -> Result<Texts> {
        let tokenizer = self.tokenizer()?;
        let chat_template = self.chat_template()?;
        let generation_config =
            GenerationConfig { eos_token_ids: tokenizer.end_ids().to_vec(), ..self.generation_config()? };
        let (embedding, cross_encoder) = (self.embedding_config()?, self.cross_encoder_config()?);
        Ok(Texts { tokenizer, chat_template, generation_config, embedding, cross_encoder })
    }

    fn load_weights(
        &self,
        config: ModelConfig,
        options: &LoadOptions,
        records: Option<&mut InputRecords>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Weights> {
        let (architecture, spec, stored) = self.decoder_and_weights(&config)?;
        let (vision, audio) = (self.vision(&config, &stored)?, self.audio(&config, &stored)?);
        let own_samples = vision.as_ref().map_or_else(Vec::new, EncoderPart::own_samples);
        let checksum =
            checksum(&[format!("{spec:?}").into_bytes(), stored.samples(), own_samples].concat(), |_| {});
        let mut adapters: Vec<_> =
            options.adapters.iter().map(|path| AdapterFolder::open(path)).collect::<Result<_>>()?;
        // That of a model with an audio part is the last one.
        if audio.is_some() {
            adapters.extend(AdapterFolder::of_model(&*self.files, &self.name)?);
        }
        let storage = storage(&config, options.quantization)?;
        let cached = self.cached(storage, options, (&stored, architecture, &spec), progress)?;
        let (checkpoint, storage) =
            cached.as_ref().map_or((&stored, storage), |(checkpoint, storage)| (checkpoint, *storage));
        let vision_bytes = vision.as_ref().map_or(0, |vision| vision.stored_bytes);
        let audio_bytes = audio.as_ref().map_or(0, |audio| audio.stored_bytes);
        let own_bytes = vision.as_ref().map_or(0, EncoderPart::own_bytes);
        let mut done_bytes = 0;
        let mut of_decoder = |part: LoadProgress| {
            done_bytes = part.done_bytes;
            progress(LoadProgress { total_bytes: part.total_bytes + vision_bytes + audio_bytes, ..part });
        };
        let device = options.device.resolved();
        let of_encoder = |given: Option<Device>| given.map_or(device, Device::resolved);
        let mut loader =
            WeightLoader::new(checkpoint, architecture, &spec, device, storage, &adapters, &mut of_decoder)?;
        if let Some(records) = records {
            loader.record_inputs(records);
        }
        let mut model = Decoder::load(config.model_type, spec, device, options.kv_dtype, checksum, loader)?;
        let mut of_vision = |part: LoadProgress| {
            progress(LoadProgress { total_bytes: part.total_bytes + audio_bytes, ..part });
        };
        let vision = vision
            .map(|part| part.load(&stored, of_encoder(options.vision), done_bytes, &mut of_vision))
            .transpose()?;
        let done_bytes = done_bytes + vision_bytes;
        let audio = audio
            .map(|part| part.load(&stored, of_encoder(options.audio), done_bytes, &mut *progress))
            .transpose()?;
        let encoder_bytes = vision.iter().map(|part| part.1).chain(audio.iter().map(|part| part.1));
        encoder_bytes.for_each(|bytes| model.count_weights(bytes));
        let adapters = adapters.iter().map(|folder| model.adapter_loader().load_folder(folder));
        let mut adapters: Vec<_> = adapters.collect::<Result<_>>()?;
        let audio_adapter = adapters.drain(options.adapters.len()..).next();
        let bytes = own_bytes + checkpoint.infos().map(|tensor| tensor.bytes as u64).sum::<u64>();
        progress(LoadProgress { phase: LoadPhase::Done, done_bytes: bytes, total_bytes: bytes });
        tracing::info!(
            model = self.name,
            parameters = model.info().parameters,
            weight_bytes = model.info().weight_bytes,
            "model loaded"
        );
        let (vision, audio) = (vision.map(|part| part.0), audio.map(|part| part.0));
        Ok(Weights { model, adapters, audio_adapter, vision, audio })
    }

    /// Returns the quantised weights from the pack cache, after writing them if needed; `None` for weights
    /// that are not quantised on loading, and without a usable cache.
    fn cached(
        &self,
        storage: Storage,
        options: &LoadOptions,
        (stored, architecture, spec): (&Checkpoint, &'static Architecture, &DecoderSpec),
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Option<(Checkpoint, Storage)>> {
        let Storage::Dense(Some(format @ (WeightFormat::Q8 | WeightFormat::Q4))) = storage else {
            return Ok(None);
        };
        let Some(cache) = &options.pack_cache else { return Ok(None) };
        let plan = QuantizedFile::plan(stored, architecture, spec, format, None)?;
        Ok(self.open_or_write(cache, &plan, progress).map(|checkpoint| (checkpoint, Storage::Blocks(format))))
    }

    /// Opens the entry of the pack cache, which is written first if needed; `None` if the cache cannot be
    /// used.
    fn open_or_write(
        &self,
        cache: &Path,
        plan: &QuantizedFile<'_>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Option<Checkpoint> {
        let folder = self.files.folder()?;
        let entry = PackCacheEntry::new(cache, folder, plan);
        match entry.and_then(|entry| entry.open_or_write(plan, progress)) {
            Ok(checkpoint) => Some(checkpoint),
            Err(error) => {
                let reason = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, reason, "loading without the pack cache");
                None
            }
        }
    }
}

/// Storage of the weights of a model with this config, if the caller requests a format.
///
/// # Errors
/// When the model is quantised in another one.
fn storage(config: &ModelConfig, requested: Option<WeightFormat>) -> Result<Storage> {
    match (config.stored_format()?, requested) {
        (Some(stored), Some(requested)) if stored != requested => {
            Err(Error::AlreadyQuantized { stored, requested })
        }
        (Some(stored), _) => Ok(Storage::Blocks(stored)),
        (None, format) => Ok(Storage::Dense(format)),
    }
}
