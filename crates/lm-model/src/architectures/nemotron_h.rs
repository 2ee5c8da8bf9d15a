//! Nemotron-H: each layer is one block, Mamba-2, attention without RoPE or an ungated feed-forward block.
//! Source: Nemotron-H (arXiv 2504.03624); `config.json` of nvidia/NVIDIA-Nemotron-Nano-9B-v2;
//! `NemotronHConfig` and `modeling_nemotron_h.py` of transformers. The reference limits time steps from below
//! (`time_step_min`) in prompts and not in later tokens; here, as in the model's first implementation, they
//! are unlimited.

use lm_formats::{GgufEntry, Result};
use lm_kernels::Mamba2Spec;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, StoredValues, hugging_face_name};
use crate::config::{MAX_LAYERS, ModelConfig, invalid, unsupported};
use crate::gguf::{
    Description, GgufArchitecture, RopeLayout, Settings, has_tensor, put_inner_size, put_kv_heads,
    put_size_of_some,
};
use crate::spec::{
    DecoderSpec, GatedNorm, LayerSpec, LimitEnd, Mamba2Keys, Mamba2Layer, Mixer, Mlp, time_step_limit,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["nemotron_h"],
    goldens: &["nemotron-h-tiny", "nemotron-h-tiny-bias", "nemotron-h-tiny-list"],
    spec,
    weight_name,
    ignored_prefixes: &["mtp."],
    gguf: &[&GGUF],
    layer_lists: &["layers_block_type", "hybrid_override_pattern"],
    defaults: r#"{
        "vocab_size": 131072, "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 4096, "intermediate_size": 21504,
        "rms_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5, "mlp_hidden_act": "relu2", "ssm_state_size": 128,
        "mamba_num_heads": 128, "mamba_head_dim": 64, "mamba_hidden_act": "silu", "use_bias": false
    }"#,
    ..BASE
};

/// Switch of RoPE in files of Granite's converter.
const FINETUNED: &str = "rope.scaling.finetuned";

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
        ("ssm.conv_kernel", "conv_kernel"),
        ("ssm.group_count", "n_groups"),
        ("ssm.state_size", "ssm_state_size"),
        ("ssm.time_step_rank", "mamba_num_heads"),
    ],
    rope_layout: RopeLayout::Interleaved,
    read: read_gguf,
    write: write_gguf,
    tensors: &[&[
        ("attn_k", "mixer.k_proj"),
        ("attn_norm", "norm"),
        ("attn_output", "mixer.o_proj"),
        ("attn_q", "mixer.q_proj"),
        ("attn_v", "mixer.v_proj"),
        ("ffn_down", "mixer.down_proj"),
        ("ffn_up", "mixer.up_proj"),
        ("output_norm", "model.norm_f"),
        ("ssm_a", "mixer.A_log"),
        ("ssm_conv1d", "mixer.conv1d"),
        ("ssm_d", "mixer.D"),
        ("ssm_dt.bias", "mixer.dt_bias"),
        ("ssm_in", "mixer.in_proj"),
        ("ssm_norm", "mixer.norm"),
        ("ssm_out", "mixer.out_proj"),
        ("token_embd", "model.embeddings"),
    ]],
    values: &[("ssm_a", StoredValues::NegatedExp)],
    ..GgufArchitecture::new("nemotron_h", "nemotron_h")
};

fn read_gguf(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let attends = put_kv_heads(model, config)?;
    let feeds = put_size_of_some(model, config, ["feed_forward_length", "intermediate_size"])?;
    let kind = |(&attends, feeds): (&bool, bool)| match (attends, feeds) {
        (true, _) => "attention",
        (false, true) => "mlp",
        (false, false) => "mamba",
    };
    let kinds: Vec<_> = attends.iter().zip(feeds).map(kind).collect();
    config.insert("layers_block_type".to_owned(), kinds.into());
    // Takes precedence over the epsilon of other norms.
    if let Some(eps) = config.get("rms_norm_eps").cloned() {
        config.insert("layer_norm_epsilon".to_owned(), eps);
    }
    put_inner_size(model, config, "mamba_head_dim")?;
    model.bool(FINETUNED)?;
    for (tensor, key) in
        [("ffn_up.bias", "mlp_bias"), ("ssm_conv1d.bias", "use_conv_bias"), ("ssm_in.bias", "use_bias")]
    {
        config.insert(key.to_owned(), has_tensor(model, tensor)?.into());
    }
    Ok(())
}

fn write_gguf(config: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    let keys: Keys = config.read()?;
    settings.put_kv_heads(spec)?;
    let widths: Vec<_> = spec.layers.iter().map(|layer| layer.mlp.dense_width().unwrap_or(0)).collect();
    settings.put_sizes("feed_forward_length", "intermediate_size", &widths)?;
    let inner = keys.mamba_num_heads.saturating_mul(keys.mamba_head_dim);
    settings.put_size("ssm.inner_size", "mamba_head_dim", inner)?;
    settings.put_size("ssm.conv_kernel", "conv_kernel", keys.conv_kernel)?;
    settings.put_size("ssm.group_count", "n_groups", keys.n_groups)?;
    for key in ["attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon"] {
        settings.put(key, GgufEntry::Float(spec.norm_eps));
    }
    settings.put(FINETUNED, GgufEntry::Bool(false));
    Ok(())
}

/// Keys of Nemotron-H alone.
#[derive(Deserialize)]
struct Keys {
    #[serde(alias = "layer_types")]
    layers_block_type: Option<Vec<String>>,
    /// A letter for each layer, where the list is absent.
    hybrid_override_pattern: Option<String>,
    mlp_hidden_act: String,
    mamba_hidden_act: String,
    ssm_state_size: usize,
    mamba_num_heads: usize,
    mamba_head_dim: usize,
    #[serde(alias = "mamba_n_groups", default = "eight")]
    n_groups: usize,
    #[serde(alias = "mamba_d_conv", default = "four")]
    conv_kernel: usize,
    #[serde(alias = "mamba_conv_bias", default = "yes")]
    use_conv_bias: bool,
    /// Bias of the projections of Mamba-2 layers.
    use_bias: bool,
    #[serde(alias = "mamba_dt_limit")]
    time_step_limit: Option<[LimitEnd; 2]>,
}

fn eight() -> usize {
    8
}

fn four() -> usize {
    4
}

fn yes() -> bool {
    true
}

const MAMBA2_KEYS: Mamba2Keys = Mamba2Keys {
    num_heads: "mamba_num_heads",
    head_dim: "mamba_head_dim",
    num_groups: "n_groups",
    state_dim: "ssm_state_size",
    kernel: "conv_kernel",
};

/// Block of a layer.
#[derive(Clone, Copy)]
enum Block {
    Mamba2,
    Attention,
    Mlp,
}

/// Letter in the pattern, names in the list.
const BLOCKS: [(char, [&str; 2], Block); 3] = [
    ('M', ["mamba", "linear_attention"], Block::Mamba2),
    ('*', ["attention", "full_attention"], Block::Attention),
    ('-', ["mlp", "mlp"], Block::Mlp),
];

impl Keys {
    fn blocks(&self) -> Result<Vec<Block>> {
        let of_name = |name: &String| match BLOCKS.iter().find(|row| row.1.contains(&name.as_str())) {
            Some((.., block)) => Ok(*block),
            None => Err(unsupported("layers_block_type", name, "mamba, attention, mlp")),
        };
        let of_letter = |letter: char| match BLOCKS.iter().find(|row| row.0 == letter) {
            Some((.., block)) => Ok(*block),
            None => Err(unsupported("hybrid_override_pattern", letter, "M, *, -")),
        };
        let (key, blocks): (_, Result<Vec<Block>>) =
            match (&self.layers_block_type, &self.hybrid_override_pattern) {
                (Some(names), _) => {
                    ("layers_block_type", names.iter().take(MAX_LAYERS + 1).map(of_name).collect())
                }
                (None, Some(letters)) => {
                    ("hybrid_override_pattern", letters.chars().take(MAX_LAYERS + 1).map(of_letter).collect())
                }
                (None, None) => {
                    return Err(invalid("layers_block_type", "absent", "the block of each layer"));
                }
            };
        let blocks = blocks?;
        if !(1..=MAX_LAYERS).contains(&blocks.len()) {
            let got = format!("{} layers", blocks.len());
            return Err(invalid(key, got, format!("1 to {MAX_LAYERS}")));
        }
        Ok(blocks)
    }

    fn mamba2(&self) -> Result<Mamba2Layer> {
        let time_step_limit = time_step_limit(self.time_step_limit.as_ref())?;
        if time_step_limit != [0.0, f32::INFINITY] {
            return Err(unsupported("time_step_limit", format!("{time_step_limit:?}"), "0 and Infinity"));
        }
        if self.mamba_hidden_act != "silu" {
            return Err(unsupported("mamba_hidden_act", &self.mamba_hidden_act, "silu"));
        }
        let heads = Mamba2Spec {
            num_heads: self.mamba_num_heads,
            head_dim: self.mamba_head_dim,
            num_groups: self.n_groups,
            state_dim: self.ssm_state_size,
            time_step_limit,
        };
        let layer = Mamba2Layer {
            heads,
            kernel: self.conv_kernel,
            conv_bias: self.use_conv_bias.into(),
            bias: self.use_bias.into(),
            norm: GatedNorm::AfterGate(self.n_groups),
        };
        layer.check(MAMBA2_KEYS)?;
        Ok(layer)
    }
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let keys: Keys = config.read()?;
    let config = &ModelConfig {
        hidden_act: Some(keys.mlp_hidden_act.clone()),
        attention_bias: false, // Its attention has none, whatever the key says.
        num_hidden_layers: 1,
        ..config.with_norm_eps("layer_norm_epsilon")?
    };
    let mut spec = DecoderSpec::without_rope(config)?;
    let attention = spec.layers[0].clone();
    let (mlp, mamba2) = (Mlp::plain(config)?, keys.mamba2()?);
    let layer = |block: &Block| {
        let (mixer, mlp) = match block {
            Block::Mamba2 => (Mixer::Mamba2(mamba2), Mlp::Absent),
            Block::Attention => (attention.mixer.clone(), Mlp::Absent),
            Block::Mlp => (Mixer::Absent, mlp.clone()),
        };
        LayerSpec { mixer, mlp, ..attention.clone() }
    };
    spec.layers = keys.blocks()?.iter().map(layer).collect();
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::Embedding => return "model.embeddings.weight".into(),
        Param::OutputNorm => return "model.norm_f.weight".into(),
        Param::Layer(layer, param) => (layer, param),
        other => return hugging_face_name(other),
    };
    let module = match param {
        // Of the layer's only block.
        LayerParam::MixerPreNorm | LayerParam::MlpPreNorm => "norm.weight".to_owned(),
        LayerParam::Query(piece) => format!("mixer.q_proj.{piece}"),
        LayerParam::Key(piece) => format!("mixer.k_proj.{piece}"),
        LayerParam::Value(piece) => format!("mixer.v_proj.{piece}"),
        LayerParam::AttentionOutput(piece) => format!("mixer.o_proj.{piece}"),
        LayerParam::Conv1d(piece) => format!("mixer.conv1d.{piece}"),
        LayerParam::MambaInput(piece) => format!("mixer.in_proj.{piece}"),
        LayerParam::MambaALog => "mixer.A_log".to_owned(),
        LayerParam::MambaDtBias => "mixer.dt_bias".to_owned(),
        LayerParam::MambaSkip => "mixer.D".to_owned(),
        LayerParam::MambaNorm => "mixer.norm.weight".to_owned(),
        LayerParam::MambaOutput(piece) => format!("mixer.out_proj.{piece}"),
        LayerParam::Up(piece) => format!("mixer.up_proj.{piece}"),
        LayerParam::Down(piece) => format!("mixer.down_proj.{piece}"),
        other => return hugging_face_name(Param::Layer(layer, other)),
    };
    format!("model.layers.{layer}.{module}")
}
