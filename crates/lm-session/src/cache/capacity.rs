//! Number of pages of the KV pool and maximum length of a session.

use lm_model::PAGE_LEN;

use crate::error::{Error, Result};
use crate::params::EngineSettings;

/// Maximum bytes of a pool of default size.
const DEFAULT_POOL_BYTES: usize = 2 << 30;
/// Full contexts that a pool of default size holds.
const DEFAULT_CONTEXTS: usize = 4;

/// Consistent sizes: a session of `context_tokens` fits the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub num_pages: usize,
    pub context_tokens: usize,
}

impl Capacity {
    /// Returns the sizes requested by `settings`, for a model with this context and page size.
    pub fn new(settings: &EngineSettings, model_context: usize, bytes_per_page: usize) -> Result<Self> {
        let invalid = |field, value, expected| Err(Error::InvalidSettings { field, value, expected });
        if settings.prefill_chunk == 0 {
            return invalid("prefill_chunk", 0, "at least 1".to_owned());
        }
        if settings.max_running_requests == 0 {
            return invalid("max_running_requests", 0, "at least 1".to_owned());
        }
        let context = settings.max_context.unwrap_or(model_context);
        if context == 0 || context > model_context {
            return invalid("max_context", context, format!("1..={model_context}, the model's context"));
        }
        if settings.kv_cache_tokens == Some(0) {
            return invalid("kv_cache_tokens", 0, "at least 1".to_owned());
        }
        let num_pages = match settings.kv_cache_tokens {
            Some(tokens) => tokens.div_ceil(PAGE_LEN),
            None => default_pages(settings.max_context, context, bytes_per_page),
        };
        let pool_tokens = num_pages.saturating_mul(PAGE_LEN);
        if settings.max_context.is_some_and(|asked| asked > pool_tokens) {
            return invalid("kv_cache_tokens", pool_tokens, format!("at least max_context, {context}"));
        }
        Ok(Self { num_pages, context_tokens: context.min(pool_tokens) })
    }
}

fn default_pages(asked_context: Option<usize>, context: usize, bytes_per_page: usize) -> usize {
    let wanted = context.saturating_mul(DEFAULT_CONTEXTS).div_ceil(PAGE_LEN);
    let within_budget = (DEFAULT_POOL_BYTES / bytes_per_page.max(1)).max(1);
    let at_least = asked_context.map_or(1, |context| context.div_ceil(PAGE_LEN));
    wanted.min(within_budget).max(at_least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL_PAGE: usize = 1 << 10;
    /// 16 pages in the default pool.
    const LARGE_PAGE: usize = DEFAULT_POOL_BYTES / 16;

    fn capacity(
        max_context: Option<usize>,
        kv_cache_tokens: Option<usize>,
        bytes_per_page: usize,
    ) -> Result<Capacity> {
        let settings = EngineSettings { max_context, kv_cache_tokens, ..EngineSettings::default() };
        Capacity::new(&settings, 1024, bytes_per_page)
    }

    #[test]
    fn full_context_fits_the_pool() {
        for (max_context, kv_cache_tokens, bytes_per_page, num_pages, context_tokens) in [
            (None, None, SMALL_PAGE, 128, 1024),
            (None, None, 0, 128, 1024),
            (Some(100), None, SMALL_PAGE, 13, 100),
            (None, None, LARGE_PAGE, 16, 512),
            (Some(1000), None, LARGE_PAGE, 32, 1000),
            (None, Some(33), SMALL_PAGE, 2, 64),
            (Some(64), Some(33), SMALL_PAGE, 2, 64),
        ] {
            let got = capacity(max_context, kv_cache_tokens, bytes_per_page).unwrap();
            assert_eq!(got, Capacity { num_pages, context_tokens }, "{max_context:?} {kv_cache_tokens:?}");
        }
    }

    #[test]
    fn invalid_sizes_are_reported() {
        for (field, max_context, kv_cache_tokens) in [
            ("max_context", Some(0), None),
            ("max_context", Some(1025), None),
            ("kv_cache_tokens", None, Some(0)),
            ("kv_cache_tokens", Some(65), Some(64)),
        ] {
            match capacity(max_context, kv_cache_tokens, SMALL_PAGE) {
                Err(Error::InvalidSettings { field: got, .. }) => assert_eq!(got, field),
                other => panic!("{max_context:?} {kv_cache_tokens:?}: {other:?}"),
            }
        }
        for settings in [
            EngineSettings { prefill_chunk: 0, ..EngineSettings::default() },
            EngineSettings { max_running_requests: 0, ..EngineSettings::default() },
        ] {
            assert!(Capacity::new(&settings, 1024, SMALL_PAGE).is_err());
        }
    }
}
