use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::validate::{BatchLimits, check_batch};
use crate::{
    Batch, CausalLm, Device, Embeddings, Input, KvPool, Logits, ModelInfo, PAGE_LEN, PageId, Result,
    SequenceInput, TokenId, Tokenizer, WeightFormat,
};

const HIDDEN_SIZE: usize = 4;
const CONTEXT_LEN: usize = 4096;

/// One scripted reply of a [`FakeLm`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Text, in which added tokens are recognised; the tokenizer's first end id follows it.
    Text(String),
    /// Exactly these ids; end ids come only where they stand here.
    Ids(Vec<TokenId>),
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<TokenId>> for Reply {
    fn from(ids: Vec<TokenId>) -> Self {
        Self::Ids(ids)
    }
}

/// A [`CausalLm`] without weights that checks its input as a real one does.
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
    script: Script,
    calls: Mutex<Vec<Vec<Range<usize>>>>,
}

#[derive(Debug)]
enum Script {
    Replies(Mutex<Replies>),
    Random { seed: u64, written: Mutex<HashMap<(PageId, usize), u64>> },
}

#[derive(Debug)]
struct Replies {
    waiting: std::vec::IntoIter<Vec<TokenId>>,
    /// What is said when a script is at its end.
    end_id: TokenId,
    started: Vec<Saying>,
}

/// A reply that is being said: the model gave `ids[next - 1]` and expects to see it at `slot`.
#[derive(Debug)]
struct Saying {
    ids: Vec<TokenId>,
    next: usize,
    slot: usize,
    block_table: Vec<PageId>,
}

impl FakeLm {
    /// A model whose greedy continuation of each prompt is the next of `replies`.
    ///
    /// A call that wants logits begins the next reply, unless it is one row with the id that a begun reply gave last,
    /// in the slot after it: then that reply goes on. A finished reply, and a prompt after the last reply, give the end id.
    ///
    /// # Panics
    /// When the tokenizer has no end ids, or cannot encode a reply.
    pub fn scripted<R: Into<Reply>>(tokenizer: &Tokenizer, replies: impl IntoIterator<Item = R>) -> Self {
        let end_id = *tokenizer.end_ids().first().expect("a scripted tokenizer has an end id");
        let ids = |reply: Reply| match reply {
            Reply::Ids(ids) => ids,
            Reply::Text(text) => {
                let mut ids = tokenizer.encode(&text).expect("a scripted reply can be encoded");
                ids.push(end_id);
                ids
            }
        };
        let waiting = replies.into_iter().map(|reply| ids(reply.into())).collect::<Vec<_>>().into_iter();
        let replies = Replies { waiting, end_id, started: Vec::new() };
        Self::new(tokenizer.logits_width(), Script::Replies(Mutex::new(replies)))
    }

    /// A model of `logits_width` ids whose logits, in -1..1, are a fixed function of `seed` and all ids up to the row.
    ///
    /// It panics on a slot that nobody wrote.
    pub fn random(seed: u64, logits_width: usize) -> Self {
        Self::new(logits_width, Script::Random { seed, written: Mutex::default() })
    }

    /// The same model with another context length; the default is 4,096.
    #[must_use]
    pub fn with_context_len(mut self, context_len: usize) -> Self {
        self.info.context_len = context_len;
        self
    }

    /// The slots that each sequence of each call wrote, so far.
    pub fn calls(&self) -> Vec<Vec<Range<usize>>> {
        lock(&self.calls).clone()
    }

    fn new(logits_width: usize, script: Script) -> Self {
        let info = ModelInfo {
            architecture: "fake".into(),
            context_len: CONTEXT_LEN,
            hidden_size: HIDDEN_SIZE,
            num_layers: 0,
            logits_width,
            parameters: 0,
            weight_bytes: 0,
            device: Device::Cpu,
            format: WeightFormat::F32,
        };
        Self { info, script, calls: Mutex::default() }
    }

    fn logits_row(&self, input: &SequenceInput, row: usize) -> Vec<f32> {
        match &self.script {
            Script::Replies(replies) if row + 1 == input.rows() => {
                let mut logits = vec![0.; self.info.logits_width];
                logits[lock(replies).next_id(input) as usize] = 30.;
                logits
            }
            Script::Replies(_) => vec![0.; self.info.logits_width],
            Script::Random { seed, written } => {
                let written = lock(written);
                let state = (0..=input.cached_len + row).fold(*seed, |state, slot| {
                    let page = input.block_table[slot / PAGE_LEN];
                    mix(state
                        ^ written.get(&(page, slot % PAGE_LEN)).expect("a slot before the row was written"))
                });
                (0..self.info.logits_width as u64).map(|id| unit(mix(state ^ id))).collect()
            }
        }
    }

    fn write(&self, input: &SequenceInput) {
        let Script::Random { written, .. } = &self.script else { return };
        let mut written = lock(written);
        for (row, value) in row_values(&input.input).into_iter().enumerate() {
            let slot = input.cached_len + row;
            written.insert((input.block_table[slot / PAGE_LEN], slot % PAGE_LEN), value);
        }
    }
}

impl CausalLm for FakeLm {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn new_cache(&self, num_pages: usize) -> Result<KvPool> {
        Ok(KvPool::empty(num_pages))
    }

    fn cache_bytes_per_page(&self) -> usize {
        PAGE_LEN
    }

    fn forward(&self, batch: &Batch, cache: &mut KvPool) -> Result<Logits> {
        let ModelInfo { logits_width, hidden_size, context_len, .. } = self.info;
        let limits =
            BatchLimits { vocab_rows: logits_width, hidden_size, context_len, num_pages: cache.num_pages() };
        check_batch(batch, &limits)?;
        let slots = |input: &SequenceInput| input.cached_len..input.cached_len + input.rows();
        lock(&self.calls).push(batch.sequences.iter().map(slots).collect());
        let (mut values, mut rows_per_sequence) = (Vec::new(), Vec::new());
        for input in &batch.sequences {
            self.write(input);
            let wanted = input.logits.indices(input.rows());
            rows_per_sequence.push(wanted.len());
            for row in wanted {
                values.extend(self.logits_row(input, row));
            }
        }
        Ok(Logits::new(values, logits_width, rows_per_sequence))
    }

    fn embed(&self, ids: &[TokenId]) -> Result<Embeddings> {
        let values = ids.iter().flat_map(|&id| [f32::from_bits(id), 0., 0., 0.]).collect();
        Ok(Embeddings { values, hidden_size: HIDDEN_SIZE })
    }
}

impl Replies {
    fn next_id(&mut self, input: &SequenceInput) -> TokenId {
        let index = self.started.iter().position(|saying| saying.goes_on_with(input));
        let mut saying = match index {
            Some(index) => self.started.swap_remove(index),
            None => Saying {
                ids: self.waiting.next().unwrap_or_default(),
                next: 0,
                slot: 0,
                block_table: Vec::new(),
            },
        };
        let id = saying.ids.get(saying.next).copied().unwrap_or(self.end_id);
        saying.next += 1;
        saying.slot = input.cached_len + input.rows();
        saying.block_table = input.block_table[..saying.slot.div_ceil(PAGE_LEN)].to_vec();
        self.started.push(saying);
        id
    }
}

impl Saying {
    fn goes_on_with(&self, input: &SequenceInput) -> bool {
        let given = self.next.checked_sub(1).and_then(|last| self.ids.get(last)).copied();
        let row = match &input.input {
            Input::Ids(ids) if ids.len() == 1 => Some(ids[0]),
            Input::Ids(_) | Input::Embeddings(_) => None,
        };
        row.is_some()
            && row == given
            && input.cached_len == self.slot
            && input.block_table.starts_with(&self.block_table)
    }
}

/// A number for each row that says which id it holds; rows of [`FakeLm::embed`] give that of their id.
fn row_values(input: &Input) -> Vec<u64> {
    match input {
        Input::Ids(ids) => ids.iter().map(|&id| u64::from(id)).collect(),
        Input::Embeddings(rows) => {
            rows.values.chunks_exact(rows.hidden_size).map(|row| u64::from(row[0].to_bits())).collect()
        }
    }
}

/// A failed test on another thread must not hide behind a poisoned lock here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// SplitMix64's output function (Steele et al., OOPSLA 2014).
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn unit(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1_u64 << 23) as f32 - 1.
}
