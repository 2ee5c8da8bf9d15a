//! Settings that vision towers share.

use lm_formats::Result;
use lm_media::Normalization;
use serde::Deserialize;

use crate::config::{invalid, unsupported};
use crate::encoders::settings::{EncoderSettings, MAX_LAYERS, MAX_WIDTH, check_size};

impl EncoderSettings {
    /// Values of the channels by the image processor's `do_normalize`, `image_mean` and `image_std`;
    /// `default` where they are absent.
    pub(crate) fn normalization(&self, default: Normalization) -> Result<Normalization> {
        #[derive(Deserialize)]
        struct Keys {
            do_normalize: Option<bool>,
            image_mean: Option<[f32; 3]>,
            image_std: Option<[f32; 3]>,
        }
        let keys: Keys = self.preprocessor("{}")?;
        self.expect("do_rescale", true)?;
        self.expect("rescale_factor", 1.0 / 255.0)?;
        Ok(match keys.do_normalize {
            Some(false) => Normalization::NONE,
            _ => Normalization {
                mean: keys.image_mean.unwrap_or(default.mean),
                std: keys.image_std.unwrap_or(default.std),
            },
        })
    }
}

/// Sizes that all vision transformers have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TowerSizes {
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    pub(crate) num_layers: usize,
    pub(crate) num_heads: usize,
    pub(crate) patch: usize,
}

impl TowerSizes {
    /// Checks that the sizes are in range, and that heads divide the width.
    pub(crate) fn check(&self, num_channels: usize, norm_eps: f64) -> Result<()> {
        check_size("vision_config.hidden_size", self.hidden, 1..=MAX_WIDTH)?;
        check_size("vision_config.intermediate_size", self.intermediate, 1..=MAX_WIDTH)?;
        check_size("vision_config.num_hidden_layers", self.num_layers, 1..=MAX_LAYERS)?;
        check_size("vision_config.num_attention_heads", self.num_heads, 1..=self.hidden)?;
        check_size("vision_config.patch_size", self.patch, 1..=256)?;
        if !self.hidden.is_multiple_of(self.num_heads) {
            let expected = format!("a divisor of hidden_size = {}", self.hidden);
            return Err(invalid("vision_config.num_attention_heads", self.num_heads, expected));
        }
        if num_channels != 3 {
            return Err(unsupported("vision_config.num_channels", num_channels, "3"));
        }
        if !(norm_eps > 0.0 && norm_eps < 1.0) {
            return Err(invalid("vision_config.layer_norm_eps", norm_eps, "a number between 0 and 1"));
        }
        Ok(())
    }

    /// Numbers of a patch.
    pub(crate) fn patch_len(&self) -> usize {
        3 * self.patch * self.patch
    }
}
