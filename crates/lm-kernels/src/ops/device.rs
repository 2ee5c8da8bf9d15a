//! Mapping of our devices to burn's.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::host::{Isa, PrefetchPlan};

impl Device {
    /// Returns the device that [`Auto`](Self::Auto) means on this machine; the others unchanged. The first
    /// call in a build with a GPU opens it.
    ///
    /// ```
    /// use lm_kernels::Device;
    /// assert_eq!(Device::Cpu.resolved(), Device::Cpu);
    /// assert!(matches!(Device::Auto.resolved(), Device::Cpu | Device::Gpu));
    /// ```
    pub fn resolved(self) -> Self {
        match self {
            Device::Auto if has_gpu() => Device::Gpu,
            Device::Auto => Device::Cpu,
            device => device,
        }
    }

    /// Returns the burn device of this name, never burn's default device, which depends on the features that
    /// other crates of the build enable.
    ///
    /// # Errors
    /// [`Error::DeviceNotCompiled`] when the feature is off; [`Error::NoAdapter`] when there is no GPU
    /// adapter; those of [`Isa::requested`] and [`PrefetchPlan::requested`] for an unsupported `LM_CPU` or
    /// `LM_PREFETCH`, on a GPU too: its weights are packed on the CPU.
    pub fn burn(self) -> Result<burn::tensor::Device> {
        Isa::requested()?;
        PrefetchPlan::requested()?;
        match self.resolved() {
            Device::NdArray => ndarray(),
            Device::Gpu => gpu(),
            Device::Cpu | Device::Auto => Ok(burn::tensor::Device::flex()),
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

#[cfg(feature = "wgpu")]
fn gpu() -> Result<burn::tensor::Device> {
    adapter().map(|adapter| adapter.device)
}

#[cfg(not(feature = "wgpu"))]
fn gpu() -> Result<burn::tensor::Device> {
    Err(Error::DeviceNotCompiled { device: Device::Gpu.name(), feature: "wgpu" })
}

/// Returns true if there is a GPU that is not a driver on the CPU.
#[cfg(feature = "wgpu")]
fn has_gpu() -> bool {
    adapter().is_ok_and(|adapter| !adapter.is_software)
}

#[cfg(not(feature = "wgpu"))]
fn has_gpu() -> bool {
    false
}

/// The adapter that wgpu prefers.
#[cfg(feature = "wgpu")]
#[derive(Clone)]
struct Adapter {
    device: burn::tensor::Device,
    is_software: bool,
}

/// Initialised once per process: the runtime rejects a second initialisation of the same adapter.
#[cfg(feature = "wgpu")]
fn adapter() -> Result<Adapter> {
    use std::sync::OnceLock;

    use burn_wgpu::wgpu::DeviceType;

    static ADAPTER: OnceLock<std::result::Result<Adapter, String>> = OnceLock::new();
    let open = || -> std::result::Result<Adapter, String> {
        let (device, setup) =
            burn::tensor::Device::wgpu_options().init_with_setup().map_err(|error| error.to_string())?;
        let is_software = setup.adapter.get_info().device_type == DeviceType::Cpu;
        Ok(Adapter { device, is_software })
    };
    ADAPTER.get_or_init(open).clone().map_err(|reason| Error::NoAdapter { reason })
}
