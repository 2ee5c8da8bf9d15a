//! The parameters of a decoder, their shapes, and their names in Hugging Face checkpoints.

use crate::spec::{Bias, DecoderSpec, OutputHead, QkNorm};

/// One parameter of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Param {
    Embedding,
    OutputNorm,
    OutputHead,
    Layer(usize, LayerParam),
}

/// One parameter of a decoder layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LayerParam {
    AttentionNorm,
    Query(Piece),
    Key(Piece),
    Value(Piece),
    AttentionOutput(Piece),
    QueryNorm,
    KeyNorm,
    MlpNorm,
    Gate(Piece),
    Up(Piece),
    Down(Piece),
}

/// The two pieces of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    Weight,
    Bias,
}

/// The names that transformers gives to the parameters of Llama and its relatives.
pub(crate) fn hugging_face_name(param: Param) -> String {
    let (layer, param) = match param {
        Param::Embedding => return "model.embed_tokens.weight".into(),
        Param::OutputNorm => return "model.norm.weight".into(),
        Param::OutputHead => return "lm_head.weight".into(),
        Param::Layer(layer, param) => (layer, param),
    };
    let (module, piece) = match param {
        LayerParam::AttentionNorm => ("input_layernorm", Piece::Weight),
        LayerParam::Query(piece) => ("self_attn.q_proj", piece),
        LayerParam::Key(piece) => ("self_attn.k_proj", piece),
        LayerParam::Value(piece) => ("self_attn.v_proj", piece),
        LayerParam::AttentionOutput(piece) => ("self_attn.o_proj", piece),
        LayerParam::QueryNorm => ("self_attn.q_norm", Piece::Weight),
        LayerParam::KeyNorm => ("self_attn.k_norm", Piece::Weight),
        LayerParam::MlpNorm => ("post_attention_layernorm", Piece::Weight),
        LayerParam::Gate(piece) => ("mlp.gate_proj", piece),
        LayerParam::Up(piece) => ("mlp.up_proj", piece),
        LayerParam::Down(piece) => ("mlp.down_proj", piece),
    };
    let piece = match piece {
        Piece::Weight => "weight",
        Piece::Bias => "bias",
    };
    format!("model.layers.{layer}.{module}.{piece}")
}

/// Every parameter of a decoder with its shape, `[out, in]` or `[len]`.
pub(crate) fn params(spec: &DecoderSpec) -> Vec<(Param, Vec<usize>)> {
    let embedding = vec![spec.vocab_size, spec.hidden_size];
    let mut params = vec![(Param::Embedding, embedding.clone()), (Param::OutputNorm, vec![spec.hidden_size])];
    if spec.output_head == OutputHead::Separate {
        params.push((Param::OutputHead, embedding));
    }
    for layer in 0..spec.layers.len() {
        params
            .extend(layer_params(spec).into_iter().map(|(param, shape)| (Param::Layer(layer, param), shape)));
    }
    params
}

fn layer_params(spec: &DecoderSpec) -> Vec<(LayerParam, Vec<usize>)> {
    let (hidden, inner) = (spec.hidden_size, spec.intermediate_size);
    let (queries, keys) = (spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim);
    let mut params = vec![(LayerParam::AttentionNorm, vec![hidden]), (LayerParam::MlpNorm, vec![hidden])];
    if spec.qk_norm == QkNorm::PerHead {
        params.extend([LayerParam::QueryNorm, LayerParam::KeyNorm].map(|param| (param, vec![spec.head_dim])));
    }
    let (attention, mlp) = (spec.attention_bias, spec.mlp_bias);
    let mut linear = |param: fn(Piece) -> LayerParam, rows, cols, bias| {
        params.push((param(Piece::Weight), vec![rows, cols]));
        if bias == Bias::Present {
            params.push((param(Piece::Bias), vec![rows]));
        }
    };
    linear(LayerParam::Query, queries, hidden, attention);
    linear(LayerParam::Key, keys, hidden, attention);
    linear(LayerParam::Value, keys, hidden, attention);
    linear(LayerParam::AttentionOutput, hidden, queries, attention);
    linear(LayerParam::Gate, inner, hidden, mlp);
    linear(LayerParam::Up, inner, hidden, mlp);
    linear(LayerParam::Down, hidden, inner, mlp);
    params
}
