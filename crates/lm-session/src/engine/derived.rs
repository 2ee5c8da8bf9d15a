//! Values that layers above derive from an engine's model.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Derived values by their types.
#[derive(Default)]
pub(super) struct DerivedValues(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl DerivedValues {
    /// Returns the value of type `T`; the first call creates it.
    ///
    /// # Errors
    /// The errors of `create`; the next call tries again.
    pub(super) fn get_or_create<T, E>(&self, create: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E>
    where
        T: Any + Send + Sync,
    {
        let values = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
