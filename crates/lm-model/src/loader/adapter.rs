//! Adapters in memory, and their loading without the weights of their model.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use lm_kernels::Device;

use super::{AdapterFolder, AdapterInfo, LowRank};
use crate::checkpoint::{Param, TensorLocation};
use crate::error::Result;

/// LoRA adapter in memory, for models of the same shape as the model of its [`AdapterLoader`].
///
/// Clones share it; its memory is released with the last one.
#[derive(Clone)]
pub struct Adapter {
    shared: Arc<Shared>,
}

struct Shared {
    info: AdapterInfo,
    low_ranks: HashMap<Param, LowRank>,
    model: ModelShape,
}

/// Hash of the projections of an adapter, and of their device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelShape(u64);

impl ModelShape {
    fn new(architecture: &str, device: Device, linears: &[AdaptedLinear]) -> Self {
        let mut hasher = DefaultHasher::new();
        (architecture, device.to_string()).hash(&mut hasher);
        for AdaptedLinear { param, shape, .. } in linears {
            (param, shape).hash(&mut hasher);
        }
        Self(hasher.finish())
    }
}

impl Adapter {
    /// Name and size.
    pub fn info(&self) -> &AdapterInfo {
        &self.shared.info
    }

    /// Returns true if the adapter is for models of this shape.
    pub(crate) fn fits(&self, model: ModelShape) -> bool {
        self.shared.model == model
    }

    /// Low-rank update of a projection, if the adapter has one.
    pub(crate) fn low_rank(&self, param: Param) -> Option<&LowRank> {
        self.shared.low_ranks.get(&param)
    }
}

/// Adapters are equal if they share their memory.
impl PartialEq for Adapter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Adapter {}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Adapter").field(self.info()).finish()
    }
}

/// Loader of adapters for one model. It holds none of the model's weights.
#[derive(Clone)]
pub struct AdapterLoader {
    architecture: String,
    device: Device,
    linears: Arc<[AdaptedLinear]>,
    model: ModelShape,
}

/// Projection that an adapter may update.
pub(crate) struct AdaptedLinear {
    pub(crate) param: Param,
    /// Location of its weight in a float checkpoint.
    pub(crate) location: TensorLocation,
    /// Outputs and inputs.
    pub(crate) shape: [usize; 2],
}

impl AdapterLoader {
    pub(crate) fn new(architecture: &str, device: Device, linears: Vec<AdaptedLinear>) -> Self {
        let model = ModelShape::new(architecture, device, &linears);
        Self { architecture: architecture.to_owned(), device, linears: linears.into(), model }
    }

    /// Loads an adapter from a folder in PEFT's format (`adapter_config.json`, `adapter_model.safetensors`)
    /// to the model's device.
    ///
    /// # Errors
    /// When a file is missing or not valid, the adapter needs more than pairs of low-rank matrices, or a pair
    /// does not belong to a projection of the model.
    pub fn load(&self, folder: &Path) -> Result<Adapter> {
        self.load_folder(&AdapterFolder::open(folder)?)
    }

    pub(crate) fn load_folder(&self, folder: &AdapterFolder) -> Result<Adapter> {
        let of_linears = self.linears.iter().map(|linear| (&linear.location, linear.shape));
        folder.check(&self.architecture, of_linears)?;
        let mut low_ranks = HashMap::new();
        for AdaptedLinear { param, location, shape } in &*self.linears {
            if let Some(low_rank) = folder.low_rank(location, *shape, self.device)? {
                low_ranks.insert(*param, low_rank);
            }
        }
        let shared = Shared { info: folder.info(), low_ranks, model: self.model };
        Ok(Adapter { shared: Arc::new(shared) })
    }

    /// Shape of the model.
    pub(crate) fn model_shape(&self) -> ModelShape {
        self.model
    }
}

impl fmt::Debug for AdapterLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { architecture, device, linears, model: _ } = self;
        f.debug_struct("AdapterLoader")
            .field("architecture", architecture)
            .field("device", device)
            .field("linears", &linears.len())
            .finish()
    }
}
