//! Mapping of our devices to burn's.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::host::Isa;

impl Device {
    /// Returns the burn device of this name, never burn's default device, which depends on the features that
    /// other crates of the build enable.
    ///
    /// # Errors
    /// [`Error::DeviceNotCompiled`] when the feature is off; [`Error::NoAdapter`] when there is no GPU
    /// adapter; those of [`Isa::requested`] for an unsupported `LM_CPU`, on a GPU too: its weights are packed
    /// on the CPU.
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
fn ndarray() -> Result<burn::tensor::Device> {
    Ok(burn::tensor::Device::ndarray())
}

#[cfg(not(feature = "ndarray"))]
fn ndarray() -> Result<burn::tensor::Device> {
    Err(Error::DeviceNotCompiled { device: Device::NdArray.name(), feature: "ndarray" })
}

/// Initialised once per process: the runtime rejects a second initialisation of the same adapter.
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
    Err(Error::DeviceNotCompiled { device: Device::Gpu.name(), feature: "wgpu" })
}
