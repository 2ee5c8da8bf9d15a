use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lm_kernels::{CacheLayout, Device, KvPool, LayerCache, PAGE_LEN, WeightFormat};
use lm_tokenizer::{TokenId, Tokenizer};

use super::noise::Noise;
use super::random::{HEAD_DIM, Random};
use super::script::{Reply, Script};
use crate::batch::{Batch, Embeddings, Logits, SequenceInput};
use crate::causal_lm::{CausalLm, ModelInfo};
use crate::decoder::layout::logit_rows;
use crate::decoder::validate::{BatchLimits, check_batch, check_embeddings};
use crate::error::{Error, Result};
use crate::spec::Direction;
use crate::spec::ModelOutput;

const HIDDEN_SIZE: usize = HEAD_DIM;
const CONTEXT_LEN: usize = 4096;
/// In place of a scripted id: outside every vocabulary, and not a NaN, whose bits a copy may change.
const NO_ID: u32 = u32::MAX >> 2;
/// Logit of the scripted id; all others are 0.
const CERTAIN_LOGIT: f32 = 30.0;

/// [`CausalLm`] without weights that validates its input as a real one does.
///
/// ```
/// use lm_model::{Batch, CausalLm, SequenceInput, testing};
///
/// let tokenizer = testing::tokenizer();
/// let model = testing::FakeLm::scripted(&tokenizer, ["hi"]);
/// let mut cache = model.new_cache(1)?;
/// let prompt = SequenceInput::ids(tokenizer.encode("hello?")?, 0, [0]);
/// let logits = model.forward(&Batch { sequences: vec![prompt] }, &mut cache)?;
/// let row = logits.sequence(0).row(0);
/// let best = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
/// assert_eq!(tokenizer.token_bytes(best as u32), b"h");
/// # Ok::<(), lm_model::Error>(())
/// ```
#[derive(Debug)]
pub struct FakeLm {
    info: ModelInfo,
    behaviour: Behaviour,
    calls: Mutex<Vec<Vec<Range<usize>>>>,
}

#[derive(Debug)]
enum Behaviour {
    Scripted(Mutex<Script>, Others),
    Random(Random),
    Noise(Noise),
}

/// Logit of the tokens that a script does not have next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Others {
    /// 0: a constraint that masks the scripted token gets another one.
    Possible,
    /// Negative infinity.
    Impossible,
}

impl FakeLm {
    /// Width of a key or value head of a random model; its layers have one head.
    pub const HEAD_DIM: usize = HEAD_DIM;

    /// Creates a model whose greedy continuation of each prompt is the next of `replies`.
    ///
    /// A call that requests logits starts the next reply, unless its rows continue a started one: the id that
    /// this reply returned last, in the slot after it, and optionally the next ids of the script. A prompt
    /// that ends with the first ids of its reply has them forced: the reply continues after them. A finished
    /// reply, and a prompt after the last reply, return the end-of-sequence id. Rows after the first one with
    /// logits are draft tokens: their logits are zeros where the drafts depart from the script. A call that
    /// does not request its last row returns only zeros.
    ///
    /// # Panics
    /// When the tokenizer has no end-of-sequence ids, or cannot encode a reply.
    pub fn scripted<R: Into<Reply>>(tokenizer: &Tokenizer, replies: impl IntoIterator<Item = R>) -> Self {
        let script = Script::new(tokenizer, replies.into_iter().map(Into::into).collect());
        Self::new(tokenizer.logits_width(), Behaviour::Scripted(Mutex::new(script), Others::Possible))
    }

    /// Restricts a scripted model to its script: the logits of all other tokens are negative infinity, so
    /// that a constraint that masks the scripted token fails the generation.
    ///
    /// # Panics
    /// When the model is not scripted.
    #[must_use]
    pub fn strictly(mut self) -> Self {
        match &mut self.behaviour {
            Behaviour::Scripted(_, others) => *others = Others::Impossible,
            Behaviour::Random(_) | Behaviour::Noise(_) => panic!("this model has no script"),
        }
        self
    }

    /// Creates a model of `logits_width` ids whose logits are a fixed function of `seed` and of all ids and
    /// positions up to the row.
    ///
    /// Earlier rows are read from the cache, so a wrong page changes the logits.
    pub fn random(seed: u64, logits_width: usize) -> Self {
        Self::new(logits_width, Behaviour::Random(Random::new(seed)))
    }

    /// Creates a model of `logits_width` ids whose logits are normally distributed with variance 1 and depend
    /// only on `seed` and on the last id and its position. It has no cache, and a row costs only a copy: for
    /// tests with vocabularies of real size.
    pub fn noise(seed: u64, logits_width: usize) -> Self {
        Self::new(logits_width, Behaviour::Noise(Noise::new(seed, logits_width)))
    }

    /// Replaces the single full-attention layer of a random model by these layers. All of them affect the
    /// logits.
    ///
    /// # Panics
    /// When the model is not random, or a KV layer does not have exactly one head of [`FakeLm::HEAD_DIM`].
    #[must_use]
    pub fn with_layers<L: Into<LayerCache>>(mut self, layers: impl IntoIterator<Item = L>) -> Self {
        match &mut self.behaviour {
            Behaviour::Random(random) => random.set_layers(CacheLayout::new(layers)),
            Behaviour::Scripted(..) | Behaviour::Noise(_) => panic!("this model keeps nothing"),
        }
        self
    }

    /// Sets the context length; the default is 4,096.
    #[must_use]
    pub fn with_context_len(mut self, context_len: usize) -> Self {
        self.info.context_len = context_len;
        self
    }

    /// Slots that each sequence of each successful call has written so far.
    pub fn calls(&self) -> Vec<Vec<Range<usize>>> {
        lock(&self.calls).clone()
    }

    fn new(logits_width: usize, behaviour: Behaviour) -> Self {
        let info = ModelInfo {
            architecture: "fake".into(),
            context_len: CONTEXT_LEN,
            hidden_size: HIDDEN_SIZE,
            num_layers: 0,
            logits_width,
            checksum: 0,
            parameters: 0,
            weight_bytes: 0,
            layer_parameters: 0,
            attention: Vec::new(),
            decode_bytes: 0,
            output: ModelOutput::Tokens,
            direction: Direction::Causal,
            device: Device::Cpu,
            format: WeightFormat::F32,
            formats: vec![WeightFormat::F32],
        };
        Self { info, behaviour, calls: Mutex::default() }
    }

    /// Hidden states of the requested rows of a scripted model: in the first place the scripted ids from the
    /// first requested row on if the last row is requested, [`NO_ID`] elsewhere.
    fn scripted_rows(script: &mut Script, input: &SequenceInput) -> Vec<f32> {
        let wanted = input.logits.indices(input.rows());
        let first = wanted.iter().copied().min().unwrap_or(0);
        let ids = match wanted.iter().any(|&row| row + 1 == input.rows()) {
            true => script.next_ids(input, first),
            false => vec![None; input.rows() - first],
        };
        wanted.iter().flat_map(|&row| number_row(ids[row - first].unwrap_or(NO_ID))).collect()
    }

    /// Logits of one row of hidden states.
    fn logits_row(&self, hidden: &[f32]) -> Vec<f32> {
        let width = self.info.logits_width;
        match &self.behaviour {
            Behaviour::Random(random) => random.project(hidden, width),
            Behaviour::Noise(noise) => noise.row(hidden[0].to_bits() as usize).to_vec(),
            Behaviour::Scripted(_, others) => {
                let id = hidden[0].to_bits() as usize;
                let other = if *others == Others::Impossible && id < width { f32::NEG_INFINITY } else { 0.0 };
                let mut row = vec![other; width];
                if let Some(logit) = row.get_mut(id) {
                    *logit = CERTAIN_LOGIT;
                }
                row
            }
        }
    }
}

/// Hidden states that hold a number.
fn number_row(number: u32) -> [f32; HIDDEN_SIZE] {
    let mut row = [0.0; HIDDEN_SIZE];
    row[0] = f32::from_bits(number);
    row
}

impl CausalLm for FakeLm {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn new_cache(&self, num_pages: usize) -> Result<KvPool> {
        match &self.behaviour {
            Behaviour::Scripted(..) | Behaviour::Noise(_) => Ok(KvPool::empty(num_pages)),
            Behaviour::Random(random) => random.new_cache(num_pages),
        }
    }

    fn cache_bytes_per_page(&self) -> usize {
        PAGE_LEN
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits> {
        let hidden = self.hidden(batch, cache)?;
        let rows: Vec<Vec<f32>> = hidden.values.chunks(HIDDEN_SIZE).map(|row| self.logits_row(row)).collect();
        Ok(Logits::new(rows.concat(), self.info.logits_width, logit_rows(batch).1))
    }

    fn hidden(&self, batch: &Batch, cache: &mut KvPool) -> Result<Embeddings> {
        check_batch(batch, &BatchLimits::new(&self.info, cache))?;
        let values = match &self.behaviour {
            Behaviour::Random(random) => random.hidden(batch, cache)?,
            Behaviour::Noise(noise) => {
                batch.sequences.iter().flat_map(|input| noise_rows(noise, input)).collect()
            }
            Behaviour::Scripted(script, _) => {
                let mut script = lock(script);
                batch.sequences.iter().flat_map(|input| Self::scripted_rows(&mut script, input)).collect()
            }
        };
        let slots = |input: &SequenceInput| input.cached_len..input.cached_len + input.rows();
        lock(&self.calls).push(batch.sequences.iter().map(slots).collect());
        Ok(Embeddings { values, hidden_size: HIDDEN_SIZE })
    }

    fn head(&self, rows: Embeddings) -> Result<Logits> {
        check_embeddings(&rows, HIDDEN_SIZE).map_err(|problem| Error::Batch { sequence: 0, problem })?;
        let values =
            rows.values.chunks(HIDDEN_SIZE).map(|row| self.logits_row(row)).collect::<Vec<_>>().concat();
        Ok(Logits::new(values, self.info.logits_width, [rows.rows()]))
    }

    fn embed(&self, ids: &[TokenId]) -> Result<Embeddings> {
        let values = ids.iter().flat_map(|&id| number_row(id)).collect();
        Ok(Embeddings { values, hidden_size: HIDDEN_SIZE })
    }
}

/// Hidden states of the requested rows of a noise model: offsets of their logits.
fn noise_rows(noise: &Noise, input: &SequenceInput) -> Vec<f32> {
    let wanted = input.logits.indices(input.rows());
    wanted.into_iter().flat_map(|row| number_row(noise.offset(input, row))).collect()
}

/// A failed test on another thread must not be masked by a poisoned lock here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lm_media::{Image, ImageSize};

    use super::*;
    use crate::batch::MediaSlice;
    use crate::media::{ImageOptions, VisionEncoder};
    use crate::testing::{FakeVision, tokenizer};

    fn best(row: &[f32]) -> TokenId {
        (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as TokenId
    }

    /// Returns the greedy reply to a prompt that is prefilled in chunks of three.
    fn reply(model: &FakeLm, cache: &mut KvPool, prompt: &[TokenId], len: usize) -> Vec<TokenId> {
        let mut ids = prompt.to_vec();
        let mut cached = 0;
        while ids.len() < prompt.len() + len {
            let end = ids.len().min(cached + 3);
            let mut input = SequenceInput::ids(&ids[cached..end], cached, [1, 0]);
            if end < ids.len() {
                input.logits = crate::LogitRows::None;
            }
            let logits = model.forward(&Batch { sequences: vec![input] }, cache).unwrap();
            ids.extend(logits.sequence(0).rows().map(best));
            cached = end;
        }
        ids.split_off(prompt.len())
    }

    #[test]
    fn scripted_replies_follow_their_prompts() {
        let tokenizer = tokenizer();
        let model = FakeLm::scripted(&tokenizer, ["hello world", "<tool_call>"]);
        let mut cache = model.new_cache(2).unwrap();
        let end = tokenizer.end_ids()[0];
        for expected in ["hello world", "<tool_call>", ""] {
            let mut ids = tokenizer.encode(expected).unwrap();
            ids.extend([end, end]);
            assert_eq!(reply(&model, &mut cache, &[1, 2, 3, 4], ids.len()), ids, "{expected}");
        }
        let slots: Vec<_> = model.calls().concat().into_iter().take(3).collect();
        assert_eq!(slots, [0..3, 3..4, 4..5]);
    }

    #[test]
    fn random_replies_depend_on_ids_not_chunks() {
        let model = FakeLm::random(1, 200);
        let mut cache = model.new_cache(2).unwrap();
        let prompt = [7, 8, 9, 10, 11];
        let first = reply(&model, &mut cache, &prompt, 20);
        assert_eq!(first, reply(&model, &mut cache, &prompt, 20));
        assert_eq!(first, reply(&model, &mut model.new_cache(2).unwrap(), &prompt, 20));
        for place in 0..prompt.len() {
            let mut other = prompt;
            other[place] += 1;
            assert_ne!(first, reply(&model, &mut cache, &other, 20), "{place}");
        }
    }

    #[test]
    fn random_and_noise_depend_on_image_rows_and_place() {
        let vision = FakeVision::default();
        for model in [FakeLm::random(1, 200), FakeLm::noise(1, 200)] {
            let row = |blue: u8, range: Range<usize>, width: u32| {
                let image = Image::from_rgb(ImageSize::new(1, 2), vec![1, 2, 3, 4, 5, blue]).unwrap();
                let media = Arc::new(vision.encode(&image, &ImageOptions::default()).unwrap());
                let mut prompt = SequenceInput::ids([7, 7], 0, [0]);
                prompt.media = vec![MediaSlice { row: 1, media, range }];
                prompt.positions[1].width = width;
                let mut cache = model.new_cache(1).unwrap();
                model
                    .forward(&Batch { sequences: vec![prompt] }, &mut cache)
                    .unwrap()
                    .sequence(0)
                    .row(0)
                    .to_vec()
            };
            assert_eq!(row(6, 0..1, 1), row(6, 0..1, 1));
            assert_ne!(row(6, 0..1, 1), row(7, 0..1, 1));
            assert_ne!(row(6, 0..1, 1), row(6, 1..2, 1));
            let placed = row(6, 0..1, 1) != row(6, 0..1, 2);
            assert_eq!(placed, matches!(model.behaviour, Behaviour::Random(_)));
        }
    }

    #[test]
    fn noise_depends_on_last_id_and_position() {
        let model = FakeLm::noise(1, 3000);
        let mut cache = model.new_cache(1).unwrap();
        let mut row = |ids: &[TokenId]| {
            let prompt = SequenceInput::ids(ids, 0, [0]);
            let logits = model.forward(&Batch { sequences: vec![prompt] }, &mut cache).unwrap();
            logits.sequence(0).row(0).to_vec()
        };
        assert_eq!(row(&[1, 2]), row(&[7, 2]));
        assert_ne!(row(&[1, 2]), row(&[1, 3]));
        assert_ne!(row(&[1, 2]), row(&[2]));
        let variance = row(&[1]).iter().map(|x| x * x).sum::<f32>() / 3000.0;
        assert!((0.9..1.1).contains(&variance), "{variance}");
    }

    #[test]
    fn random_replies_change_with_a_wrong_page() {
        let model = FakeLm::random(1, 200);
        let last_row = |copied: bool| {
            let mut cache = model.new_cache(3).unwrap();
            let prompt = SequenceInput::ids([1, 2, 3], 0, [0]);
            model.forward(&Batch { sequences: vec![prompt] }, &mut cache).unwrap();
            if copied {
                cache.copy_page(0, 0, 2);
            }
            let next = SequenceInput::ids([4], 3, [2]);
            let logits = model.forward(&Batch { sequences: vec![next] }, &mut cache).unwrap();
            logits.sequence(0).row(0).to_vec()
        };
        assert_ne!(last_row(true), last_row(false));
    }
}
