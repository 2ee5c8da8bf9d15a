//! Values that layers above derive from an engine's model.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use crate::error::Result;

/// Derived values by their types.
#[derive(Default)]
pub(super) struct DerivedValues(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Engine {
    /// Returns the value of type `T` that a layer above derives from the model, such as its compiled chat
    /// templates. The first call for each type creates it; all clones of the engine share it.
    ///
    /// ```
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// struct Shout(String);
    /// let name = engine.derived(|| Ok::<_, lm_session::Error>(Shout(engine.name().to_uppercase())))?;
    /// assert_eq!(name.0, "FAKE");
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `create`; the next call tries again.
    pub fn derived<T, E>(&self, create: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E>
    where
        T: Any + Send + Sync,
    {
        let values = || self.shared.derived.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = values().get(&TypeId::of::<T>()).cloned();
        if let Some(Ok(known)) = known.map(Arc::downcast) {
            return Ok(known);
        }
        // Without a lock: two threads may create it, and the last one is kept.
        let created = Arc::new(create()?);
        values().insert(TypeId::of::<T>(), created.clone());
        Ok(created)
    }
}
