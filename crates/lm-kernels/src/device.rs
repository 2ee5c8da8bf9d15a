//! Compute devices, by name.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, find_named};

/// A compute device, which holds tensors and runs kernels.
///
/// # Examples
/// ```
/// use lm_kernels::Device;
/// assert_eq!("cpu".parse::<Device>()?, Device::Cpu);
/// assert_eq!(Device::Gpu.to_string(), "gpu");
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Device {
    /// The CPU, through burn's Flex backend. The default.
    #[default]
    Cpu,
    /// The CPU, through burn's NdArray backend (feature `ndarray`).
    NdArray,
    /// A GPU, through wgpu (features `wgpu`, `vulkan`, `metal`).
    Gpu,
    /// [`Gpu`](Self::Gpu) if its feature is compiled in and the machine has a GPU, [`Cpu`](Self::Cpu)
    /// otherwise; a driver that runs on the CPU is no GPU. See [`Device::resolved`].
    Auto,
}

impl Device {
    /// Every device, by name.
    const ALL: [Self; 4] = [Self::Cpu, Self::NdArray, Self::Gpu, Self::Auto];

    /// Devices compiled into this build, without [`Auto`](Self::Auto); empty without the burn layer. The
    /// machine may lack them.
    pub fn available() -> &'static [Device] {
        &[
            #[cfg(feature = "burn")]
            Device::Cpu,
            #[cfg(feature = "ndarray")]
            Device::NdArray,
            #[cfg(feature = "wgpu")]
            Device::Gpu,
        ]
    }

    /// Name, which [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::NdArray => "ndarray",
            Device::Gpu => "gpu",
            Device::Auto => "auto",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        find_named("device", name, &Device::ALL, Device::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_names_list_the_known() {
        for device in Device::ALL {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        let error = "tpu".parse::<Device>().unwrap_err();
        assert_eq!(error.to_string(), "unknown device `tpu`, expected one of: cpu, ndarray, gpu, auto");
    }

    #[test]
    fn default_build_has_the_default_device() {
        assert_eq!(Device::available().contains(&Device::default()), cfg!(feature = "burn"));
    }
}
