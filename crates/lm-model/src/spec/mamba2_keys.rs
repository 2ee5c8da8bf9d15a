//! Keys of `config.json` for Mamba-2 layers.

use lm_formats::Result;
use lm_kernels::{Activation, Mamba2Spec};
use serde::Deserialize;

use super::{DecoderSpec, GatedNorm, Mamba2Keys, Mamba2Layer, Mixer, activation};
use crate::config::{ModelConfig, invalid, unsupported};

/// Keys of the architectures whose Mamba-2 layers are an alternative to attention.
#[derive(Deserialize)]
pub(crate) struct HybridKeys {
    mamba_n_heads: usize,
    mamba_n_groups: usize,
    mamba_d_state: usize,
    mamba_d_head: HeadDim,
    mamba_d_conv: usize,
    /// Ratio of the width of all heads and `hidden_size`.
    mamba_expand: f64,
    mamba_conv_bias: bool,
    mamba_proj_bias: bool,
    time_step_limit: Option<[LimitEnd; 2]>,
}

/// Width of a head.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, or auto")]
enum HeadDim {
    Size(usize),
    /// `auto`: by `mamba_expand`.
    Word(String),
}

const KEYS: Mamba2Keys = Mamba2Keys {
    num_heads: "mamba_n_heads",
    head_dim: "mamba_d_head",
    num_groups: "mamba_n_groups",
    state_dim: "mamba_d_state",
    kernel: "mamba_d_conv",
};

impl HybridKeys {
    /// Width of all Mamba-2 heads.
    pub(crate) fn inner_width(&self, config: &ModelConfig) -> Result<usize> {
        let width = (self.mamba_expand * config.hidden_size as f64).round();
        if (1.0..=f64::from(u32::MAX)).contains(&width) {
            return Ok(width as usize);
        }
        Err(invalid("mamba_expand", self.mamba_expand, "a positive number, at most 2^32 / hidden_size"))
    }

    fn head_dim(&self, config: &ModelConfig) -> Result<usize> {
        let (inner, heads) = (self.inner_width(config)?, self.mamba_n_heads);
        if heads == 0 || !inner.is_multiple_of(heads) {
            let expected = format!("a divisor of mamba_expand · hidden_size = {inner}");
            return Err(invalid("mamba_n_heads", heads, expected));
        }
        match &self.mamba_d_head {
            HeadDim::Word(word) if word != "auto" => {
                Err(unsupported("mamba_d_head", word, "a number, or auto"))
            }
            HeadDim::Size(size) if *size != inner / heads => {
                let expected = format!("mamba_expand · hidden_size / mamba_n_heads = {inner} / {heads}");
                Err(invalid("mamba_d_head", size, expected))
            }
            _ => Ok(inner / heads),
        }
    }

    fn layer(&self, config: &ModelConfig) -> Result<Mamba2Layer> {
        let heads = Mamba2Spec {
            num_heads: self.mamba_n_heads,
            head_dim: self.head_dim(config)?,
            num_groups: self.mamba_n_groups,
            state_dim: self.mamba_d_state,
            time_step_limit: time_step_limit(self.time_step_limit.as_ref())?,
        };
        let layer = Mamba2Layer {
            heads,
            kernel: self.mamba_d_conv,
            conv_bias: self.mamba_conv_bias.into(),
            bias: self.mamba_proj_bias.into(),
            norm: GatedNorm::AfterGate(self.mamba_n_groups),
        };
        layer.check(KEYS)?;
        Ok(layer)
    }
}

/// Makes the layers without attention Mamba-2 layers.
pub(crate) fn put_mamba2(config: &ModelConfig, spec: &mut DecoderSpec, attends: &[bool]) -> Result<()> {
    if attends.iter().all(|attends| *attends) {
        return Ok(());
    }
    // The convolution's activation, too.
    let name = config.hidden_act.as_deref().unwrap_or("silu");
    if activation("hidden_act", name)? != Activation::Silu {
        return Err(unsupported("hidden_act", name, "silu, in a model with Mamba-2 layers"));
    }
    let net = config.read::<HybridKeys>()?.layer(config)?;
    for (layer, _) in spec.layers.iter_mut().zip(attends).filter(|(_, attends)| !**attends) {
        layer.mixer = Mixer::Mamba2(net);
    }
    Ok(())
}

/// One end of `time_step_limit`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a number, or an object `{\"__float__\": \"Infinity\"}`")]
pub(crate) enum LimitEnd {
    Number(f64),
    Tagged {
        #[serde(rename = "__float__")]
        name: String,
    },
}

/// Reads `time_step_limit`: smallest and largest time step; unlimited where absent.
pub(crate) fn time_step_limit(ends: Option<&[LimitEnd; 2]>) -> Result<[f32; 2]> {
    let number = |end: &LimitEnd| match end {
        LimitEnd::Number(number) => Ok(*number as f32),
        LimitEnd::Tagged { name } if name == "Infinity" => Ok(f32::INFINITY),
        LimitEnd::Tagged { name } => Err(invalid("time_step_limit", name, "two numbers")),
    };
    match ends {
        None => Ok([0.0, f32::INFINITY]),
        Some([shortest, longest]) => Ok([number(shortest)?, number(longest)?]),
    }
}
