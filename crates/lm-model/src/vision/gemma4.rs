//! Gemma 4: a ViT with RMS norms before and after each block, gated MLPs, norms of queries, keys and values,
//! and RoPE over columns and rows; squares of patches are averaged. Images keep their shape within a budget
//! of tokens that the caller may choose. Source: `config.json` of google/gemma-4-E2B-it;
//! `modeling_gemma4.py`, `processing_gemma4.py` of transformers 5.23.0.

mod gguf;

use std::sync::Arc;

use burn::tensor::{Device as BurnDevice, Tensor};
use lm_formats::Result as FormatResult;
use lm_kernels::{Activation, Device, RopeAngles, RopeTable, Weight, from_host, rope};
use lm_media::families::Gemma4 as Preprocessing;
use lm_media::{Error as MediaError, Image, ImageSize, Normalization};
use serde::Deserialize;
use serde_json::Value;

use super::settings::TowerSizes;
use super::{VisionFamily, pooled};
use crate::batch::{AttentionKind, EncodedMedia};
use crate::config::{invalid, unsupported};
use crate::encoders::blocks::{Bias, ClippedLinear, Linear, RmsNorm, TensorReader, in_turn, turn};
use crate::encoders::encoded;
use crate::encoders::settings::{EncoderSettings, check_size};
use crate::error::Result;
use crate::media::{ImageOptions, MediaLayout, MediaRows, VisionEncoder};
use crate::spec::activation;

pub(super) const FAMILY: VisionFamily = VisionFamily {
    model_types: &["gemma4"],
    goldens: &["gemma4-tiny", "gemma4-tiny-bf16"],
    prefixes: &["model.embed_vision.", "model.vision_tower."],
    first_weights: &["model.vision_tower.patch_embedder.input_proj.weight"],
    gguf: Some(&gguf::GGUF),
    load,
};

const TOWER: &str = "model.vision_tower";
const PROJECTION: &str = "model.embed_vision.embedding_projection";

/// Token budgets that the model supports.
const BUDGETS: [usize; 5] = [70, 140, 280, 560, 1120];

/// Values of `Gemma4VisionConfig` for keys that files omit.
const DEFAULTS: &str = r#"{
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12, "num_key_value_heads": 12,
    "head_dim": 64, "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6, "rope_parameters": {},
    "pooling_kernel_size": 3, "patch_size": 16, "position_embedding_size": 10240, "use_clipped_linears": false, "standardize": false
}"#;

#[derive(Deserialize)]
struct Keys {
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: usize,
    head_dim: usize,
    hidden_activation: String,
    rms_norm_eps: f64,
    rope_parameters: RopeKeys,
    pooling_kernel_size: usize,
    patch_size: usize,
    position_embedding_size: usize,
    use_clipped_linears: bool,
    standardize: bool,
}

#[derive(Deserialize)]
struct RopeKeys {
    rope_type: Option<String>,
    rope_theta: Option<f64>,
}

#[derive(Deserialize)]
struct PreprocessorKeys {
    max_soft_tokens: usize,
}

#[derive(Deserialize)]
struct OuterKeys {
    text_config: TextKeys,
}

#[derive(Deserialize)]
struct TextKeys {
    #[serde(default)]
    use_bidirectional_attention: Value,
}

/// Vision encoder of Gemma 4.
struct Gemma4 {
    preprocessing: Preprocessing,
    attention: AttentionKind,
    patches: Linear,
    /// Positions of columns, then those of rows.
    positions: Weight,
    num_positions: usize,
    rope: RopeTable,
    layers: Vec<Layer>,
    standardization: Option<[Tensor<1>; 2]>,
    norm: RmsNorm,
    projection: Linear,
    device: Device,
    burn_device: BurnDevice,
}

struct Layer {
    attention_norms: [RmsNorm; 2],
    query: ClippedLinear,
    key: ClippedLinear,
    value: ClippedLinear,
    output: ClippedLinear,
    query_norm: RmsNorm,
    key_norm: RmsNorm,
    value_norm: RmsNorm,
    mlp_norms: [RmsNorm; 2],
    gate: ClippedLinear,
    up: ClippedLinear,
    down: ClippedLinear,
    activation: Activation,
    heads: [usize; 2],
    head_dim: usize,
}

fn load(settings: &EncoderSettings, tensors: &mut TensorReader<'_>) -> Result<Arc<dyn VisionEncoder>> {
    let keys: Keys = settings.encoder(DEFAULTS)?;
    let theta = check(&keys)?;
    let preprocessing = preprocessing(settings, &keys)?;
    let (hidden, eps) = (keys.hidden_size, keys.rms_norm_eps as f32);
    let patch = [3 * keys.patch_size * keys.patch_size, hidden];
    let embedder = format!("{TOWER}.patch_embedder");
    let patches = Linear::load(tensors, &format!("{embedder}.input_proj"), patch, Bias::Absent)?;
    let table = [2 * keys.position_embedding_size, hidden];
    let positions = tensors.matrix(&format!("{embedder}.position_embedding_table"), table)?;
    let layers = (0..keys.num_hidden_layers).map(|index| Layer::load(tensors, index, &keys));
    let layers = layers.collect::<Result<_>>()?;
    let standardization = match keys.standardize {
        false => None,
        true => {
            let bias = tensors.vector(&format!("{TOWER}.std_bias"), hidden)?;
            Some([bias, tensors.vector(&format!("{TOWER}.std_scale"), hidden)?])
        }
    };
    let projection = Linear::load(tensors, PROJECTION, [hidden, settings.text_width], Bias::Absent)?;
    let quarter = keys.head_dim / 4;
    let frequency = |pair: usize| theta.powf(-(pair as f64) / quarter as f64) as f32;
    Ok(Arc::new(Gemma4 {
        preprocessing,
        attention: attention(settings)?,
        patches,
        positions,
        num_positions: keys.position_embedding_size,
        rope: RopeTable { inv_freq: (0..quarter).map(frequency).collect(), attention_factor: 1.0 },
        layers,
        standardization,
        norm: RmsNorm::unweighted(tensors.burn_device(), hidden, eps),
        projection,
        device: tensors.device(),
        burn_device: tensors.burn_device().clone(),
    }))
}

/// Checks the sizes; returns the base of RoPE.
fn check(keys: &Keys) -> FormatResult<f64> {
    let sizes = TowerSizes {
        hidden: keys.hidden_size,
        intermediate: keys.intermediate_size,
        num_layers: keys.num_hidden_layers,
        num_heads: 1,
        patch: keys.patch_size,
    };
    sizes.check(3, keys.rms_norm_eps)?;
    check_size("vision_config.num_attention_heads", keys.num_attention_heads, 1..=1024)?;
    check_size("vision_config.num_key_value_heads", keys.num_key_value_heads, 1..=keys.num_attention_heads)?;
    check_size("vision_config.head_dim", keys.head_dim, 4..=4096)?;
    check_size("vision_config.position_embedding_size", keys.position_embedding_size, 1..=1 << 20)?;
    check_size("vision_config.pooling_kernel_size", keys.pooling_kernel_size, 1..=64)?;
    if !keys.head_dim.is_multiple_of(4) {
        return Err(invalid("vision_config.head_dim", keys.head_dim, "a multiple of 4"));
    }
    if !keys.num_attention_heads.is_multiple_of(keys.num_key_value_heads) {
        let expected = format!("a divisor of num_attention_heads = {}", keys.num_attention_heads);
        return Err(invalid("vision_config.num_key_value_heads", keys.num_key_value_heads, expected));
    }
    let RopeKeys { rope_type, rope_theta } = &keys.rope_parameters;
    let kind = rope_type.as_deref().unwrap_or("axial");
    if kind != "axial" {
        return Err(unsupported("vision_config.rope_parameters.rope_type", kind, "axial"));
    }
    let theta = rope_theta.unwrap_or(100.0);
    if !(theta >= 1.0 && theta.is_finite()) {
        return Err(invalid("vision_config.rope_parameters.rope_theta", theta, "a number from 1 on"));
    }
    Ok(theta)
}

fn preprocessing(settings: &EncoderSettings, keys: &Keys) -> FormatResult<Preprocessing> {
    let (patch, pool) = (keys.patch_size, keys.pooling_kernel_size);
    settings.expect("patch_size", patch)?;
    settings.expect("pooling_kernel_size", pool)?;
    settings.expect("resample", 3)?;
    settings.expect("do_normalize", false)?;
    settings.normalization(Normalization::NONE)?;
    let PreprocessorKeys { max_soft_tokens: budget } =
        settings.preprocessor(r#"{"max_soft_tokens": 280}"#)?;
    if !BUDGETS.contains(&budget) {
        let expected = format!("one of {BUDGETS:?}");
        return Err(settings.invalid_preprocessor("max_soft_tokens", budget, expected));
    }
    Ok(Preprocessing { patch, pool, budget })
}

/// Attention among an image's rows in the decoder: only larger models have the key.
fn attention(settings: &EncoderSettings) -> FormatResult<AttentionKind> {
    let keys: OuterKeys = settings.outer(r#"{"text_config": {}}"#)?;
    Ok(match keys.text_config.use_bidirectional_attention.as_str() {
        Some("vision") => AttentionKind::Bidirectional,
        _ => AttentionKind::Causal, // The decoder has rejected other values.
    })
}

impl Layer {
    fn load(tensors: &mut TensorReader<'_>, index: usize, keys: &Keys) -> Result<Self> {
        let name = |part: &str| format!("{TOWER}.encoder.layers.{index}.{part}");
        let (hidden, inner, head_dim, eps) =
            (keys.hidden_size, keys.intermediate_size, keys.head_dim, keys.rms_norm_eps as f32);
        let heads = [keys.num_attention_heads, keys.num_key_value_heads];
        let [queries, kvs] = heads.map(|heads| heads * head_dim);
        let mut norm = |part: &str, len| RmsNorm::load(tensors, &name(part), len, eps);
        let attention_norms = [norm("input_layernorm", hidden)?, norm("post_attention_layernorm", hidden)?];
        let mlp_norms =
            [norm("pre_feedforward_layernorm", hidden)?, norm("post_feedforward_layernorm", hidden)?];
        let (query_norm, key_norm) =
            (norm("self_attn.q_norm", head_dim)?, norm("self_attn.k_norm", head_dim)?);
        let value_norm = RmsNorm::unweighted(tensors.burn_device(), head_dim, eps);
        let mut linear =
            |part: &str, widths| ClippedLinear::load(tensors, &name(part), widths, keys.use_clipped_linears);
        Ok(Self {
            query: linear("self_attn.q_proj", [hidden, queries])?,
            key: linear("self_attn.k_proj", [hidden, kvs])?,
            value: linear("self_attn.v_proj", [hidden, kvs])?,
            output: linear("self_attn.o_proj", [queries, hidden])?,
            gate: linear("mlp.gate_proj", [hidden, inner])?,
            up: linear("mlp.up_proj", [hidden, inner])?,
            down: linear("mlp.down_proj", [inner, hidden])?,
            attention_norms,
            query_norm,
            key_norm,
            value_norm,
            mlp_norms,
            activation: activation("vision_config.hidden_activation", &keys.hidden_activation)?,
            heads,
            head_dim,
        })
    }

    /// `[patches, hidden]` to the same shape; `angles` are those of columns and of rows.
    fn forward(&self, x: Tensor<2>, angles: &[Arc<RopeAngles>; 2]) -> Tensor<2> {
        let x = x.clone() + self.attention_norms[1].forward(self.attend(x, angles));
        x.clone() + self.mlp_norms[1].forward(self.feed_forward(x))
    }

    fn attend(&self, x: Tensor<2>, angles: &[Arc<RopeAngles>; 2]) -> Tensor<2> {
        let [rows, _] = x.dims();
        let [heads, kv_heads] = self.heads;
        let x = self.attention_norms[0].forward(x);
        let split = |linear: &ClippedLinear, norm: &RmsNorm, heads: usize| {
            norm.forward_parts(linear.forward(x.clone()).reshape([rows, heads, self.head_dim]))
        };
        let q = rotated(split(&self.query, &self.query_norm, heads), angles);
        let k = rotated(split(&self.key, &self.key_norm, kv_heads), angles);
        let v = split(&self.value, &self.value_norm, kv_heads);
        let out = lm_kernels::segment_attention(q, k, v, &[rows], 1.0, None);
        self.output.forward(out.reshape([rows, heads * self.head_dim]))
    }

    fn feed_forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.mlp_norms[0].forward(x);
        let gated = lm_kernels::glu(self.gate.forward(x.clone()), self.up.forward(x), self.activation);
        self.down.forward(gated)
    }
}

/// Rotates the first half of each head by the column of its patch and the second half by the row.
fn rotated(x: Tensor<3>, angles: &[Arc<RopeAngles>; 2]) -> Tensor<3> {
    let [_, _, head_dim] = x.dims();
    let half = |index: usize| rope(x.clone().narrow(2, index * head_dim / 2, head_dim / 2), &angles[index]);
    Tensor::cat(vec![half(0), half(1)], 2)
}

impl Gemma4 {
    /// The preprocessing with the caller's budget.
    fn with(&self, options: &ImageOptions) -> Result<Preprocessing> {
        let budget = options.token_budget.unwrap_or(self.preprocessing.budget);
        if !BUDGETS.contains(&budget) {
            let problem = format!("`token_budget` is {budget}, expected one of {BUDGETS:?}");
            return Err(MediaError::InvalidSettings { family: "Gemma 4", problem }.into());
        }
        Ok(Preprocessing { budget, ..self.preprocessing })
    }

    /// Preprocessing of an image of this size, whose patches have positions.
    fn suited(&self, options: &ImageOptions, size: ImageSize) -> Result<Preprocessing> {
        let preprocessing = self.with(options)?;
        let ImageSize { width, height } = preprocessing.resized_size(size)?;
        let (columns, rows) = (width / preprocessing.patch, height / preprocessing.patch);
        if rows.max(columns) > self.num_positions {
            let reason =
                format!("it has {columns} × {rows} patches, and the model {} positions", self.num_positions);
            return Err(MediaError::UnsuitableSize { size, family: "Gemma 4", reason }.into());
        }
        Ok(preprocessing)
    }

    /// Rows of the position table for columns, and for rows, of a grid.
    fn positions(&self, places: &[[u32; 2]]) -> Tensor<2> {
        let of = |axis: usize| {
            let first = axis * self.num_positions;
            let ids: Vec<u32> = places.iter().map(|place| first as u32 + place[axis]).collect();
            lm_kernels::embedding(&self.positions, &ids, &self.burn_device)
        };
        of(0) + of(1)
    }
}

impl VisionEncoder for Gemma4 {
    fn placeholder(&self) -> &str {
        "<|image|>"
    }

    fn token(&self) -> &str {
        "<|image|>"
    }

    fn layout(&self, size: ImageSize, options: &ImageOptions) -> Result<MediaLayout> {
        let rows = MediaRows::sequential(self.suited(options, size)?.tokens(size)?, self.attention);
        Ok(MediaLayout::enclosed("<|image>", rows, "<image|>"))
    }

    fn encode(&self, image: &Image, options: &ImageOptions) -> Result<EncodedMedia> {
        let patches = self.suited(options, image.size())?.patches(image)?;
        let (rows, columns) = (patches.rows, patches.columns);
        let places = (0..rows as u32).flat_map(|row| (0..columns as u32).map(move |column| [column, row]));
        let places: Vec<[u32; 2]> = places.collect();
        let angles = [0, 1].map(|axis| {
            let positions: Vec<u32> = places.iter().map(|place| place[axis]).collect();
            Arc::new(self.rope.angles(&positions))
        });
        let values: Vec<f32> = patches.values.iter().map(|value| 2.0 * (value - 0.5)).collect();
        let patch_len = values.len() / places.len();
        let mut x = in_turn(self.device, || {
            let x = from_host(values, [places.len(), patch_len], &self.burn_device);
            self.patches.forward(x) + self.positions(&places)
        });
        for layer in &self.layers {
            x = in_turn(self.device, || layer.forward(x, &angles));
        }
        let _turn = turn(self.device);
        let root = (x.dims()[1] as f32).sqrt();
        let x = pooled(x, rows, columns, self.preprocessing.pool) * root; // [tokens, hidden]
        let x = match &self.standardization {
            None => x,
            Some([bias, scale]) => (x - bias.clone().unsqueeze()) * scale.clone().unsqueeze(),
        };
        encoded(self.projection.forward(self.norm.forward(x)))
    }
}
