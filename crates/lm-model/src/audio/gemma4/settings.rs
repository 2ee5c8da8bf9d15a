//! Settings of Gemma 4's audio encoder.

use lm_formats::Result;
use lm_kernels::Activation;
use lm_media::SAMPLE_RATE;
use lm_media::families::Gemma4Audio as Preprocessing;
use serde::Deserialize;

use crate::config::{invalid, unsupported};
use crate::encoders::settings::{EncoderSettings, MAX_LAYERS, MAX_WIDTH, check_number, check_size};
use crate::spec::activation;

/// Values of `Gemma4AudioConfig` for keys that files omit.
const DEFAULTS: &str = r#"{
    "hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8, "hidden_act": "silu", "subsampling_conv_channels": [128, 32],
    "conv_kernel_size": 5, "residual_weight": 0.5, "attention_chunk_size": 12, "attention_context_left": 13, "attention_context_right": 0,
    "attention_logit_cap": 50.0, "attention_invalid_logits_value": -1e9, "use_clipped_linears": true, "rms_norm_eps": 1e-6,
    "gradient_clipping": 1e10, "output_proj_dims": 1536
}"#;

/// Values of `Gemma4AudioFeatureExtractor` for keys that files omit.
const PREPROCESSOR_DEFAULTS: &str = r#"{
    "feature_size": 128, "frame_length_ms": 20.0, "hop_length_ms": 10.0, "min_frequency": 0.0, "max_frequency": 8000.0, "mel_floor": 1e-3
}"#;

/// Keys of `audio_config`.
#[derive(Deserialize)]
struct Keys {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    hidden_act: String,
    subsampling_conv_channels: [usize; 2],
    conv_kernel_size: usize,
    residual_weight: f64,
    attention_chunk_size: usize,
    attention_context_left: usize,
    attention_context_right: usize,
    attention_logit_cap: f64,
    attention_invalid_logits_value: f64,
    use_clipped_linears: bool,
    rms_norm_eps: f64,
    gradient_clipping: f64,
    output_proj_dims: usize,
}

/// Keys of the feature extractor.
#[derive(Deserialize)]
struct PreprocessorKeys {
    feature_size: usize,
    frame_length_ms: f64,
    hop_length_ms: f64,
    min_frequency: f64,
    max_frequency: f64,
    mel_floor: f64,
}

/// Checked sizes and numbers of the encoder.
pub(super) struct Sizes {
    pub(super) hidden: usize,
    pub(super) num_layers: usize,
    pub(super) num_heads: usize,
    pub(super) activation: Activation,
    /// Channels after the first and after the second convolution.
    pub(super) channels: [usize; 2],
    /// Bands after the two convolutions.
    pub(super) bands: usize,
    /// Rows of the kernel in the convolution of a layer.
    pub(super) kernel: usize,
    /// Factor on the output of feed-forward blocks.
    pub(super) residual_weight: f32,
    /// Rows of a block of attention.
    pub(super) chunk: usize,
    /// Rows in reach before a block, plus one.
    pub(super) left: usize,
    /// Rows in reach after a block.
    pub(super) right: usize,
    /// Bound of attention scores.
    pub(super) score_cap: f32,
    pub(super) clipped: bool,
    /// Epsilon of the norms that read `rms_norm_eps`; the others have 1e-6.
    pub(super) eps: f32,
    /// Bound of values before and after blocks.
    pub(super) clip: f32,
    /// Width after the layers.
    pub(super) output: usize,
}

impl Sizes {
    /// Reads and checks `audio_config`.
    pub(super) fn read(settings: &EncoderSettings) -> Result<Self> {
        let keys: Keys = settings.encoder(DEFAULTS)?;
        check_sizes(&keys)?;
        check_numbers(&keys)?;
        Ok(Self {
            hidden: keys.hidden_size,
            num_layers: keys.num_hidden_layers,
            num_heads: keys.num_attention_heads,
            activation: activation("audio_config.hidden_act", &keys.hidden_act)?,
            channels: keys.subsampling_conv_channels,
            bands: keys.subsampling_conv_channels[0] / 4,
            kernel: keys.conv_kernel_size,
            residual_weight: keys.residual_weight as f32,
            chunk: keys.attention_chunk_size,
            left: keys.attention_context_left,
            right: keys.attention_context_right,
            score_cap: keys.attention_logit_cap as f32,
            clipped: keys.use_clipped_linears,
            eps: keys.rms_norm_eps as f32,
            clip: keys.gradient_clipping as f32,
            output: keys.output_proj_dims,
        })
    }
}

fn check_sizes(keys: &Keys) -> Result<()> {
    let [first, second] = keys.subsampling_conv_channels;
    let ranges = [
        ("hidden_size", keys.hidden_size, 2..=MAX_WIDTH),
        ("num_hidden_layers", keys.num_hidden_layers, 1..=MAX_LAYERS),
        ("num_attention_heads", keys.num_attention_heads, 1..=128),
        ("subsampling_conv_channels.0", first, 4..=512),
        ("subsampling_conv_channels.1", second, 1..=512),
        ("conv_kernel_size", keys.conv_kernel_size, 1..=256),
        ("attention_chunk_size", keys.attention_chunk_size, 1..=256),
        ("attention_context_left", keys.attention_context_left, 2..=256),
        ("attention_context_right", keys.attention_context_right, 0..=256),
        ("output_proj_dims", keys.output_proj_dims, 1..=MAX_WIDTH),
    ];
    for (key, size, range) in ranges {
        check_size(&format!("audio_config.{key}"), size, range)?;
    }
    let heads = keys.num_attention_heads;
    if !keys.hidden_size.is_multiple_of(2) || !keys.hidden_size.is_multiple_of(heads) {
        let expected = format!("a multiple of 2 and of num_attention_heads = {heads}");
        return Err(invalid("audio_config.hidden_size", keys.hidden_size, expected));
    }
    Ok(())
}

fn check_numbers(keys: &Keys) -> Result<()> {
    let ranges = [
        ("residual_weight", keys.residual_weight, -1e6..=1e6),
        ("attention_logit_cap", keys.attention_logit_cap, 1e-3..=1e3),
        ("rms_norm_eps", keys.rms_norm_eps, 1e-12..=1.0),
        ("gradient_clipping", keys.gradient_clipping, 1e-3..=1e38),
    ];
    for (key, number, range) in ranges {
        check_number(&format!("audio_config.{key}"), number, range)?;
    }
    let masked = keys.attention_invalid_logits_value;
    if masked > -1e4 || masked.is_nan() {
        return Err(unsupported("audio_config.attention_invalid_logits_value", masked, "-1e4 and less"));
    }
    Ok(())
}

/// Reads the feature extractor's keys.
pub(super) fn preprocessing(settings: &EncoderSettings, sizes: &Sizes) -> Result<Preprocessing> {
    let keys: PreprocessorKeys = settings.preprocessor(PREPROCESSOR_DEFAULTS)?;
    let samples = |key: &str, milliseconds: f64| match (5.0..=100.0).contains(&milliseconds) {
        true => Ok((SAMPLE_RATE as f64 * milliseconds / 1000.0).round_ties_even() as usize),
        false => Err(settings.invalid_preprocessor(key, milliseconds, "5 to 100")),
    };
    let window = samples("frame_length_ms", keys.frame_length_ms)?;
    let hop = samples("hop_length_ms", keys.hop_length_ms)?;
    settings.expect("sampling_rate", SAMPLE_RATE)?;
    settings.expect("frame_length", window)?;
    settings.expect("hop_length", hop)?;
    settings.expect("fft_length", window.next_power_of_two())?;
    settings.expect("fft_overdrive", false)?;
    settings.expect("preemphasis", 0)?;
    settings.expect("dither", 0)?;
    settings.expect("input_scale_factor", 1)?;
    for statistics in ["per_bin_mean", "per_bin_stddev"] {
        settings.expect(statistics, ())?;
    }
    let mels = keys.feature_size;
    if mels.div_ceil(2).div_ceil(2) != sizes.bands {
        let expected = format!("a size with {} bands after two convolutions", sizes.bands);
        return Err(settings.invalid_preprocessor("feature_size", mels, expected));
    }
    // The processor bounds the samples only.
    let (frequencies, floor, max_tokens) =
        (keys.min_frequency..keys.max_frequency, keys.mel_floor, usize::MAX);
    Ok(Preprocessing { mels, window, hop, frequencies, floor, max_tokens, ..Preprocessing::default() })
}
