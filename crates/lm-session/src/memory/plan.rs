//! Choice of unspecified sizes and formats that fit the memory.

use lm_model::{Footprint, KvDtype, LoadOptions, PAGE_LEN, WeightFormat};

use crate::error::{Error, Result};
use crate::params::EngineSettings;

/// Overhead besides weights and cache: program, tokenizer, activations; measured by `lm bench`. Small models
/// have less.
const OVERHEAD_BYTES: u64 = 150 << 20;
/// Overhead while the weights are loaded, when the cache is not allocated yet.
const LOADING_OVERHEAD_BYTES: u64 = 300 << 20;
/// Overhead of a model without weights; the overhead above it grows with the weights.
const MIN_OVERHEAD_BYTES: u64 = 64 << 20;
/// Contexts that justify a smaller cache or smaller weights, the preferred one first.
const TARGET_CONTEXTS: [usize; 2] = [4096, 512];
/// Share of the available memory for automatic choices while it suffices; the rest is for other processes.
/// Explicit choices may use all of it.
const SHARE: (u64, u64) = (9, 10);
/// Maximum bytes of a cache that holds several contexts.
const SEVERAL_CONTEXTS_BYTES: u64 = 2 << 30;
const SEVERAL_CONTEXTS: usize = 4;

/// The user's choices; the rest is chosen automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRequest {
    /// Format of the weights.
    pub weights: WeightChoice,
    /// Data type of the KV cache. `None`: f16, or 8-bit where f16 leaves too little context.
    pub kv_dtype: Option<KvDtype>,
    /// Maximum number of tokens of a session. `None`: the model's context, as far as it fits.
    pub context_tokens: Option<usize>,
}

/// Weight format to load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightChoice {
    /// As stored if it fits, otherwise 8-bit or 4-bit.
    #[default]
    Auto,
    /// As stored.
    AsStored,
    /// This format.
    In(WeightFormat),
}

/// Consistent sizes that fit the memory.
///
/// ```
/// use lm_session::{KvDtype, MemoryPlan, MemoryRequest, ModelFolder};
///
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/llama-tiny");
/// let footprint = ModelFolder::open(folder)?.footprint()?;
/// let plan = MemoryPlan::choose(&footprint, &MemoryRequest::default(), 1 << 30)?;
/// assert_eq!((plan.quantization, plan.kv_dtype), (None, KvDtype::F16));
/// assert_eq!(plan.context_tokens, footprint.context_len());
/// assert!(MemoryPlan::choose(&footprint, &MemoryRequest::default(), 1 << 20).is_err());
/// # Ok::<(), lm_session::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Format of the weights; `None` as stored.
    pub quantization: Option<WeightFormat>,
    /// Data type of the KV cache.
    pub kv_dtype: KvDtype,
    /// Maximum number of tokens of a session.
    pub context_tokens: usize,
    /// Number of tokens that the cache holds for all sessions together.
    pub cache_tokens: usize,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Bytes of the cache when it is full.
    pub cache_bytes: u64,
    /// Peak memory of the process: weights, full cache and overhead.
    pub needed_bytes: u64,
    /// Peak memory of the process while the cache holds at most 4,096 tokens, or one context if that is less.
    /// Pages of the cache are allocated when they are used first.
    pub likely_bytes: u64,
}

impl MemoryPlan {
    /// Chooses sizes for a model on a CPU device within `available` bytes.
    ///
    /// Unspecified values become the largest context of the best formats that leaves a tenth of the memory to
    /// other processes. The formats are tried in this order until 4,096 tokens fit: weights as stored with an
    /// f16 cache, with an 8-bit cache, then 8-bit and 4-bit weights, each with both caches. If none fits, 512
    /// tokens are tried in the same way, and at last 512 tokens without a reserve.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] with the sizes when nothing fits; [`Error::InvalidSettings`] for a context of 0
    /// or beyond the model's.
    pub fn choose(footprint: &Footprint, request: &MemoryRequest, available: u64) -> Result<Self> {
        let limit = footprint.context_len();
        if let Some(value) = request.context_tokens.filter(|&tokens| tokens == 0 || tokens > limit) {
            let expected = format!("1..={limit}, the model's context");
            return Err(Error::InvalidSettings { field: "max_context", value, expected });
        }
        let shared = available / SHARE.1 * SHARE.0;
        let [comfortable, least] = TARGET_CONTEXTS;
        for (goal, budget) in [(comfortable, shared), (least, shared), (least, available)] {
            let (least, most, budget) = match request.context_tokens {
                Some(tokens) => (tokens, tokens, available),
                None => (goal.min(limit), limit, budget),
            };
            for (quantization, kv_dtype) in candidates(footprint, request) {
                let at = |tokens| Self::with(footprint, quantization, kv_dtype, tokens);
                let fits = |tokens| at(tokens).needed_bytes <= budget;
                if fits(least) {
                    let plan = at(largest(least, most, fits));
                    return Ok(plan.with_room_for_several(footprint, shared));
                }
            }
        }
        Err(Self::refusal(footprint, request, available))
    }

    /// Computes the memory of these choices, with a cache for one context.
    pub fn with(
        footprint: &Footprint,
        quantization: Option<WeightFormat>,
        kv_dtype: KvDtype,
        context_tokens: usize,
    ) -> Self {
        let weight_bytes = footprint.weight_bytes(quantization);
        let cache_bytes = footprint.cache_bytes(context_tokens, kv_dtype);
        let overhead = |most: u64| MIN_OVERHEAD_BYTES.saturating_add(weight_bytes).min(most);
        let peak = |cache: u64| {
            let running = cache.saturating_add(overhead(OVERHEAD_BYTES));
            weight_bytes.saturating_add(running.max(overhead(LOADING_OVERHEAD_BYTES)))
        };
        let used_cache = footprint.cache_bytes(context_tokens.min(TARGET_CONTEXTS[0]), kv_dtype);
        let (needed_bytes, likely_bytes) = (peak(cache_bytes), peak(used_cache));
        Self {
            quantization,
            kv_dtype,
            context_tokens,
            cache_tokens: context_tokens.next_multiple_of(PAGE_LEN),
            weight_bytes,
            cache_bytes,
            needed_bytes,
            likely_bytes,
        }
    }

    /// Applies the plan to load options.
    pub fn load_options(&self, options: LoadOptions) -> LoadOptions {
        LoadOptions { quantization: self.quantization, kv_dtype: self.kv_dtype, ..options }
    }

    /// Applies the plan to engine settings.
    pub fn engine_settings(&self, settings: EngineSettings) -> EngineSettings {
        let (max_context, kv_cache_tokens) = (Some(self.context_tokens), Some(self.cache_tokens));
        EngineSettings { max_context, kv_cache_tokens, ..settings }
    }

    /// Enlarges the cache for several sessions if it is cheap.
    fn with_room_for_several(self, footprint: &Footprint, budget: u64) -> Self {
        let cheap = |tokens| {
            let plan = Self::with(footprint, self.quantization, self.kv_dtype, tokens);
            plan.cache_bytes <= SEVERAL_CONTEXTS_BYTES && plan.needed_bytes <= budget
        };
        let most = self.cache_tokens.saturating_mul(SEVERAL_CONTEXTS);
        let tokens = largest(self.cache_tokens, most, cheap) / PAGE_LEN * PAGE_LEN;
        let larger = Self::with(footprint, self.quantization, self.kv_dtype, tokens.max(self.cache_tokens));
        let Self { context_tokens, likely_bytes, .. } = self;
        Self { context_tokens, likely_bytes, ..larger }
    }

    fn refusal(footprint: &Footprint, request: &MemoryRequest, available: u64) -> Error {
        let tokens = request
            .context_tokens
            .unwrap_or(TARGET_CONTEXTS[TARGET_CONTEXTS.len() - 1].min(footprint.context_len()));
        let (quantization, kv_dtype) =
            candidates(footprint, request).last().expect("there is one for each choice");
        Self::with(footprint, quantization, kv_dtype, tokens).does_not_fit(available)
    }

    /// Error for a model that needs this plan, given `available_bytes`.
    pub fn does_not_fit(&self, available_bytes: u64) -> Error {
        let Self { quantization, kv_dtype, context_tokens, weight_bytes, cache_bytes, needed_bytes, .. } =
            *self;
        Error::DoesNotFit {
            quantization,
            kv_dtype,
            context_tokens,
            weight_bytes,
            cache_bytes,
            needed_bytes,
            available_bytes,
        }
    }
}

/// Formats of weights and cache allowed by the request, the preferred ones first.
fn candidates(
    footprint: &Footprint,
    request: &MemoryRequest,
) -> impl Iterator<Item = (Option<WeightFormat>, KvDtype)> {
    let formats = match (request.weights, footprint.quantized()) {
        (WeightChoice::In(format), _) => vec![Some(format)],
        (WeightChoice::AsStored, _) | (WeightChoice::Auto, Some(_)) => vec![None],
        (WeightChoice::Auto, None) => vec![None, Some(WeightFormat::Q8), Some(WeightFormat::Q4)],
    };
    let caches = request.kv_dtype.map_or(vec![KvDtype::F16, KvDtype::Q8], |kv_dtype| vec![kv_dtype]);
    formats.into_iter().flat_map(move |format| caches.clone().into_iter().map(move |cache| (format, cache)))
}

/// Binary search for the largest fitting number in `least..=most`; `least` must fit.
fn largest(least: usize, most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (least, most.max(least));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use lm_model::ModelFolder;

    use super::*;

    /// 4.7 million weights in bf16, 2,048 tokens.
    fn footprint() -> Footprint {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/pocket/model");
        ModelFolder::open(folder).and_then(|folder| folder.footprint()).expect("the repository has it")
    }

    fn asked(
        weights: WeightChoice,
        kv_dtype: Option<KvDtype>,
        context_tokens: Option<usize>,
    ) -> MemoryRequest {
        MemoryRequest { weights, kv_dtype, context_tokens }
    }

    #[test]
    fn defaults_are_kept_when_memory_suffices() {
        let plan = MemoryPlan::choose(&footprint(), &MemoryRequest::default(), 8 << 30).expect("fits");
        assert_eq!((plan.quantization, plan.kv_dtype, plan.context_tokens), (None, KvDtype::F16, 2048));
        assert_eq!(plan.cache_tokens, 4 * 2048, "several sessions are cheap");
        assert!(plan.needed_bytes <= 8 << 30);
        let one_context = MemoryPlan::with(&footprint(), None, KvDtype::F16, 2048);
        assert_eq!(plan.likely_bytes, one_context.likely_bytes, "one session uses one context");
        assert!(plan.likely_bytes < plan.needed_bytes, "{plan:?}");
    }

    /// A context beyond 4,096 tokens is seldom filled.
    #[test]
    fn likely_memory_is_that_of_a_short_conversation() {
        let at = |tokens| MemoryPlan::with(&footprint(), None, KvDtype::F16, tokens);
        let [short, usual, long] = [512, 4096, 131_072].map(|tokens| at(tokens).likely_bytes);
        assert!(short < usual, "{short} {usual}");
        assert_eq!(usual, long);
        assert!(at(131_072).needed_bytes > 2 * long);
    }

    /// For memory sizes from too little to enough: each plan fits, and plans only get better with more
    /// memory.
    #[test]
    fn chosen_sizes_fit_and_grow_with_memory() {
        let footprint = footprint();
        let mut last = (false, 0);
        let mut chosen = std::collections::BTreeSet::new();
        for available in (60 << 20..200 << 20).step_by(100_000) {
            match MemoryPlan::choose(&footprint, &MemoryRequest::default(), available) {
                Ok(plan) => {
                    assert!(plan.needed_bytes <= available, "{plan:?} in {available}");
                    let goal = plan.context_tokens >= TARGET_CONTEXTS[0].min(2048);
                    assert!(goal >= last.0, "{plan:?} in {available}");
                    last = (goal, plan.context_tokens);
                    chosen.insert(format!("{:?} {:?}", plan.quantization, plan.kv_dtype));
                }
                Err(Error::DoesNotFit { quantization, needed_bytes, available_bytes, .. }) => {
                    assert!(last == (false, 0), "it fitted before, in less than {available}");
                    assert!(needed_bytes > available_bytes);
                    assert_eq!(quantization, Some(WeightFormat::Q4), "the smallest is shown");
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(last, (true, 2048));
        assert!(chosen.len() > 2, "{chosen:?}");
    }

    #[test]
    fn requested_sizes_are_kept_or_rejected() {
        let footprint = footprint();
        let format = Some(WeightFormat::F32);
        let request = asked(WeightChoice::In(WeightFormat::F32), Some(KvDtype::F32), Some(1000));
        let exact = MemoryPlan::with(&footprint, format, KvDtype::F32, 1000).needed_bytes;
        let plan = MemoryPlan::choose(&footprint, &request, exact).expect("it fits exactly");
        assert_eq!((plan.quantization, plan.kv_dtype), (format, KvDtype::F32));
        assert_eq!((plan.context_tokens, plan.cache_tokens, plan.needed_bytes), (1000, 1024, exact));
        match MemoryPlan::choose(&footprint, &request, exact - 1) {
            Err(Error::DoesNotFit { quantization, context_tokens, .. }) => {
                assert_eq!((quantization, context_tokens), (format, 1000));
            }
            other => panic!("{other:?}"),
        }
        for tokens in [0, 2049] {
            let result =
                MemoryPlan::choose(&footprint, &asked(WeightChoice::Auto, None, Some(tokens)), 8 << 30);
            assert!(matches!(result, Err(Error::InvalidSettings { field: "max_context", .. })));
        }
    }

    #[test]
    fn engine_uses_the_chosen_sizes() {
        let request = asked(WeightChoice::AsStored, Some(KvDtype::Q8), Some(100));
        let plan = MemoryPlan::choose(&footprint(), &request, 8 << 30).expect("fits");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/pocket/model");
        let folder = ModelFolder::open(folder).expect("the repository has it");
        let options = plan.load_options(LoadOptions::default());
        let settings = plan.engine_settings(EngineSettings::default());
        let engine = crate::Engine::load(&folder, &options, settings, &mut |_| {}).expect("it loads");
        assert_eq!(engine.context_tokens(), 100);
        assert_eq!(engine.model_info().weight_bytes, plan.weight_bytes);
    }

    #[test]
    fn finds_the_largest_that_fits() {
        for (least, most, limit) in [(1, 100, 37), (5, 5, 9), (1, 100, 1000), (7, 3, 9)] {
            assert_eq!(largest(least, most, |n| n <= limit), limit.min(most.max(least)));
        }
    }

    #[test]
    fn likely_memory_has_overhead() {
        let plan = MemoryPlan::with(&footprint(), None, KvDtype::F16, 4096);
        let without = plan.weight_bytes + plan.cache_bytes;
        assert!(plan.likely_bytes >= without + MIN_OVERHEAD_BYTES, "{plan:?}");
    }
}
