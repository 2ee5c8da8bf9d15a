//! Factories of user-defined logits filters.

use std::fmt;
use std::sync::Arc;

use super::LogitsFilter;

/// Constructor of a user-defined [`LogitsFilter`], called once for each generation.
///
/// It is called on a sampling thread of the engine. Two factories are equal if one is a clone of the other.
#[derive(Clone)]
pub struct FilterFactory(Arc<dyn Fn() -> Box<dyn LogitsFilter> + Send + Sync>);

impl FilterFactory {
    /// Creates a factory from the constructor `create`.
    pub fn new<F: LogitsFilter + 'static>(create: impl Fn() -> F + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Box::new(create())))
    }

    pub(super) fn create(&self) -> Box<dyn LogitsFilter> {
        (self.0)()
    }
}

impl fmt::Debug for FilterFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilterFactory")
    }
}

impl PartialEq for FilterFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
