//! OLMo 3: OLMo 2 with sliding windows on three layers of four; YaRN scales the positions of the others only.
//! Source: Olmo 3 (arXiv 2512.13961); `config.json` of allenai/Olmo-3-7B-Instruct; `Olmo3Config` of
//! transformers for the defaults.

use lm_formats::Result;

use super::{Architecture, BASE, olmo2};
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, RopesByType, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["olmo3"],
    goldens: &["olmo3-tiny", "olmo3-tiny-plain", "olmo3-tiny-types"],
    spec,
    gguf: &[&olmo2::GGUF],
    defaults: r#"{"rms_norm_eps": 1e-5, "sliding_window": 4096}"#,
    ..BASE
};

/// RoPE bases (theta) of full-attention and sliding-window layers. A base outside `rope_parameters` applies
/// to full-attention layers.
const THETAS: [f64; 2] = [500_000.0; 2];
/// One layer in this many has full attention.
const PERIOD: usize = 4;

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let ropes = RopesByType::from_config(config, THETAS)?;
    let windows = windows(config, config.sliding_window, |layer| !(layer + 1).is_multiple_of(PERIOD))?;
    let mut spec = olmo2::spec(&config.without_rope())?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        attention.window = window;
    }
    ropes.apply(&mut spec)?;
    Ok(spec)
}
