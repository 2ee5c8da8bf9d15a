//! Settings of Granite Speech's encoder and projector.

use lm_formats::Result;
use lm_kernels::Activation;
use lm_media::SAMPLE_RATE;
use lm_media::families::GraniteSpeech as Preprocessing;
use serde::Deserialize;
use serde_json::Value;

use crate::config::{invalid, unsupported};
use crate::encoders::settings::{EncoderSettings, MAX_LAYERS, MAX_WIDTH, check_number, check_size};
use crate::spec::activation;

/// Values of `GraniteSpeechEncoderConfig` for keys that files omit.
const DEFAULTS: &str = r#"{
    "input_dim": 160, "num_layers": 10, "hidden_dim": 1024, "feedforward_mult": 4, "num_heads": 8, "output_dim": 42, "context_size": 200,
    "max_pos_emb": 512, "conv_kernel_size": 15, "conv_expansion_factor": 2
}"#;

/// Values of `GraniteSpeechConfig`, and of `Blip2QFormerConfig` for its projector.
const OUTER_DEFAULTS: &str = r#"{
    "projector_config": {}, "text_config": {}, "downsample_rate": 5, "window_size": 15, "has_lora_adapter": true
}"#;

/// Keys of `encoder_config`.
#[derive(Deserialize)]
struct Keys {
    input_dim: usize,
    num_layers: usize,
    hidden_dim: usize,
    feedforward_mult: usize,
    num_heads: usize,
    dim_head: Option<usize>,
    output_dim: usize,
    context_size: usize,
    max_pos_emb: usize,
    conv_kernel_size: usize,
    conv_expansion_factor: usize,
}

#[derive(Deserialize)]
struct OuterKeys {
    projector_config: ProjectorKeys,
    text_config: TextKeys,
    downsample_rate: usize,
    window_size: usize,
    #[serde(rename = "has_lora_adapter")]
    _has_lora_adapter: bool,
}

/// Keys of `text_config`, which the decoder has checked.
#[derive(Deserialize)]
struct TextKeys {
    embedding_multiplier: Option<f32>,
}

/// Keys of `projector_config`, with the defaults of `Blip2QFormerConfig`.
#[derive(Deserialize)]
#[serde(default)]
struct ProjectorKeys {
    model_type: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    hidden_act: String,
    layer_norm_eps: f64,
    cross_attention_frequency: usize,
    encoder_hidden_size: usize,
    use_qformer_text_input: Option<Value>,
}

impl Default for ProjectorKeys {
    fn default() -> Self {
        Self {
            model_type: "blip_2_qformer".to_owned(),
            hidden_size: 768,
            num_hidden_layers: 12,
            num_attention_heads: 12,
            intermediate_size: 3072,
            hidden_act: "gelu".to_owned(),
            layer_norm_eps: 1e-12,
            cross_attention_frequency: 2,
            encoder_hidden_size: 1408,
            use_qformer_text_input: None,
        }
    }
}

/// Checked sizes and numbers of encoder and projector.
pub(super) struct Sizes {
    /// Numbers of a pair of frames.
    pub(super) input: usize,
    pub(super) hidden: usize,
    pub(super) num_layers: usize,
    pub(super) num_heads: usize,
    pub(super) head_dim: usize,
    /// Width inside feed-forward blocks.
    pub(super) intermediate: usize,
    /// Classes of characters.
    pub(super) classes: usize,
    /// Rows of a block of attention.
    pub(super) block: usize,
    /// Largest distance of the position table.
    pub(super) max_distance: usize,
    /// Rows of the kernel in the convolution of a layer.
    pub(super) kernel: usize,
    /// Width inside that convolution.
    pub(super) conv: usize,
    /// Rows of a window of the projector.
    pub(super) window: usize,
    /// Rows that are joined to one.
    pub(super) downsample: usize,
    /// Factor of the decoder on embeddings.
    pub(super) embedding_multiplier: f32,
    pub(super) projector: ProjectorSizes,
}

/// Checked sizes and numbers of the projector.
pub(super) struct ProjectorSizes {
    pub(super) hidden: usize,
    pub(super) num_layers: usize,
    pub(super) num_heads: usize,
    pub(super) intermediate: usize,
    pub(super) activation: Activation,
    pub(super) eps: f32,
    /// Period of the layers that attend to the window, from the first on.
    pub(super) cross_every: usize,
}

impl Sizes {
    /// Reads and checks `encoder_config` and the keys about the projector.
    pub(super) fn read(settings: &EncoderSettings) -> Result<Self> {
        let keys: Keys = settings.encoder(DEFAULTS)?;
        let outer: OuterKeys = settings.outer(OUTER_DEFAULTS)?;
        let head_dim = keys.dim_head.unwrap_or(keys.hidden_dim / keys.num_heads.max(1));
        check_encoder(&keys, head_dim)?;
        check_projector(&outer, keys.hidden_dim)?;
        let OuterKeys { projector_config: projector, text_config, downsample_rate, window_size, .. } = outer;
        Ok(Self {
            input: keys.input_dim,
            hidden: keys.hidden_dim,
            num_layers: keys.num_layers,
            num_heads: keys.num_heads,
            head_dim,
            intermediate: keys.hidden_dim * keys.feedforward_mult,
            classes: keys.output_dim,
            block: keys.context_size,
            max_distance: keys.max_pos_emb,
            kernel: keys.conv_kernel_size,
            conv: keys.hidden_dim * keys.conv_expansion_factor,
            window: window_size,
            downsample: downsample_rate,
            embedding_multiplier: text_config.embedding_multiplier.unwrap_or(1.0),
            projector: ProjectorSizes {
                hidden: projector.hidden_size,
                num_layers: projector.num_hidden_layers,
                num_heads: projector.num_attention_heads,
                intermediate: projector.intermediate_size,
                activation: activation("projector_config.hidden_act", &projector.hidden_act)?,
                eps: projector.layer_norm_eps as f32,
                cross_every: projector.cross_attention_frequency,
            },
        })
    }

    /// Reads the feature extractor's keys.
    pub(super) fn preprocessing(&self, settings: &EncoderSettings) -> Result<Preprocessing> {
        #[derive(Deserialize)]
        struct Keys {
            feature_size: Option<usize>,
            n_mels: usize,
        }
        let keys: Keys = settings.preprocessor(r#"{"n_mels": 80}"#)?;
        settings.expect("sampling_rate", SAMPLE_RATE)?;
        settings.expect("n_fft", 512)?;
        settings.expect("win_length", 400)?;
        settings.expect("hop_length", 160)?;
        settings.expect("projector_window_size", self.window)?;
        settings.expect("projector_downsample_rate", self.downsample)?;
        let mels = keys.feature_size.unwrap_or(keys.n_mels);
        if mels.checked_mul(2) != Some(self.input) {
            let expected = format!("half of encoder_config.input_dim = {}", self.input);
            return Err(settings.invalid_preprocessor("feature_size", mels, expected));
        }
        Ok(Preprocessing { mels, projector_window: self.window, downsample: self.downsample })
    }
}

fn check_encoder(keys: &Keys, head_dim: usize) -> Result<()> {
    let ranges = [
        ("input_dim", keys.input_dim, MAX_WIDTH),
        ("num_layers", keys.num_layers, MAX_LAYERS),
        ("hidden_dim", keys.hidden_dim, MAX_WIDTH),
        ("feedforward_mult", keys.feedforward_mult, 64),
        ("num_heads", keys.num_heads, 128),
        ("dim_head", head_dim, 4096),
        ("output_dim", keys.output_dim, MAX_WIDTH),
        ("max_pos_emb", keys.max_pos_emb, 1 << 14),
        ("context_size", keys.context_size, keys.max_pos_emb.min(1024)),
        ("conv_kernel_size", keys.conv_kernel_size, 256),
        ("conv_expansion_factor", keys.conv_expansion_factor, 64),
    ];
    ranges
        .iter()
        .try_for_each(|(key, size, most)| check_size(&format!("encoder_config.{key}"), *size, 1..=*most))
}

fn check_projector(outer: &OuterKeys, encoder_width: usize) -> Result<()> {
    let keys = &outer.projector_config;
    let ranges = [
        ("window_size", outer.window_size, 256),
        ("downsample_rate", outer.downsample_rate, outer.window_size),
        ("projector_config.hidden_size", keys.hidden_size, MAX_WIDTH),
        ("projector_config.num_hidden_layers", keys.num_hidden_layers, MAX_LAYERS),
        ("projector_config.num_attention_heads", keys.num_attention_heads, 128),
        ("projector_config.intermediate_size", keys.intermediate_size, MAX_WIDTH),
        ("projector_config.cross_attention_frequency", keys.cross_attention_frequency, MAX_LAYERS),
    ];
    ranges.iter().try_for_each(|(key, size, most)| check_size(key, *size, 1..=*most))?;
    check_number("projector_config.layer_norm_eps", keys.layer_norm_eps, 0.0..=1.0)?;
    if !outer.window_size.is_multiple_of(outer.downsample_rate) {
        let expected = format!("a multiple of downsample_rate = {}", outer.downsample_rate);
        return Err(invalid("window_size", outer.window_size, expected));
    }
    if !keys.hidden_size.is_multiple_of(keys.num_attention_heads) {
        let expected = format!("a divisor of hidden_size = {}", keys.hidden_size);
        return Err(invalid("projector_config.num_attention_heads", keys.num_attention_heads, expected));
    }
    if keys.encoder_hidden_size != encoder_width {
        let expected = format!("encoder_config.hidden_dim = {encoder_width}");
        return Err(invalid("projector_config.encoder_hidden_size", keys.encoder_hidden_size, expected));
    }
    match &*keys.model_type {
        "blip_2_qformer" => Ok(()),
        other => Err(unsupported("projector_config.model_type", other, "blip_2_qformer")),
    }
}
