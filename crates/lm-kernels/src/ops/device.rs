//! burn's device behind each of ours.

use crate::{Device, Error, Isa, Result};

impl Device {
    /// The burn device of this name. Never burn's default one: that depends on which features some other crate
    /// of the build turned on.
    ///
    /// # Errors
    /// [`Error::DeviceNotCompiled`] when the feature is off; [`Error::NoAdapter`] when no GPU adapter answers; those of
    /// [`Isa::requested`] when `LM_CPU` cannot be followed, on a GPU too: its weights are packed by the processor.
    pub fn burn(self) -> Result<burn::tensor::Device> {
        Isa::requested()?;
        match self {
            Device::Cpu => Ok(burn::tensor::Device::flex()),
            Device::NdArray => ndarray(),
            Device::Gpu => gpu(),
        }
    }
}

#[cfg(feature = "ndarray")]
#[allow(deprecated, reason = "deprecated upstream, kept behind its feature")]
fn ndarray() -> Result<burn::tensor::Device> {
    Ok(burn::tensor::Device::ndarray())
}

#[cfg(not(feature = "ndarray"))]
fn ndarray() -> Result<burn::tensor::Device> {
    Err(Error::DeviceNotCompiled { device: Device::NdArray, feature: "ndarray" })
}

/// Initialised once per process: a second initialisation of the same adapter is refused by the runtime.
#[cfg(feature = "wgpu")]
fn gpu() -> Result<burn::tensor::Device> {
    use std::sync::OnceLock;

    static GPU: OnceLock<std::result::Result<burn::tensor::Device, String>> = OnceLock::new();
    GPU.get_or_init(|| burn::tensor::Device::wgpu_options().init().map_err(|error| error.to_string()))
        .clone()
        .map_err(|reason| Error::NoAdapter { reason })
}

#[cfg(not(feature = "wgpu"))]
fn gpu() -> Result<burn::tensor::Device> {
    Err(Error::DeviceNotCompiled { device: Device::Gpu, feature: "wgpu" })
}
