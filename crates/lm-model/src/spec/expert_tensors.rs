//! Tensors of experts in published checkpoints.

use super::DecoderSpec;
use crate::checkpoint::{LayerParam, Param, Piece, TensorLocation};

/// Usual names of an expert's gate, up and down projection.
pub(crate) const PROJECTIONS: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];

/// A tensor for each projection of each expert: `{module}.{expert}.{projection}.weight` in a layer; or two
/// tensors for all, as transformers has them in memory and some tools write them.
pub(crate) fn one_tensor_each(
    spec: &DecoderSpec,
    param: Param,
    module: &str,
    [gate, up, down]: [&str; 3],
) -> Vec<TensorLocation> {
    let Param::Layer(layer, of_layer) = param else { return Vec::new() };
    let projection = match of_layer {
        LayerParam::ExpertGates(Piece::Weight) => gate,
        LayerParam::ExpertUps(Piece::Weight) => up,
        LayerParam::ExpertDowns(Piece::Weight) => down,
        _ => return Vec::new(),
    };
    let Some(experts) = spec.layers[layer].mlp.experts() else { return Vec::new() };
    let name = |expert| format!("model.layers.{layer}.{module}.{expert}.{projection}.weight");
    let in_memory = module.replace("block_sparse_moe", "mlp");
    let in_memory = ["gate_up_proj", "down_proj"].map(|tensor| format!("{in_memory}.{tensor}"));
    let each = TensorLocation::stacked((0..experts.num_experts).map(name));
    [vec![each], fused(spec, param, in_memory.each_ref().map(String::as_str))].concat()
}

/// All experts of a layer in two tensors, of which the first has each expert's gate rows before its up rows.
pub(crate) fn fused(spec: &DecoderSpec, param: Param, [gate_up, down]: [&str; 2]) -> Vec<TensorLocation> {
    let Param::Layer(layer, param) = param else { return Vec::new() };
    let Some(experts) = spec.layers[layer].mlp.experts() else { return Vec::new() };
    let (count, inner) = (experts.num_experts, experts.intermediate_size);
    let name = |tensor: &str| format!("model.layers.{layer}.{tensor}");
    let halves = |first: usize| {
        let rows = (0..count).map(|expert| (2 * expert + first) * inner).map(|start| start..start + inner);
        vec![TensorLocation::parts(&name(gate_up), rows, count * 2 * inner)]
    };
    match param {
        LayerParam::ExpertGates(Piece::Weight) => halves(0),
        LayerParam::ExpertUps(Piece::Weight) => halves(1),
        LayerParam::ExpertDowns(Piece::Weight) => vec![TensorLocation::whole(name(down))],
        _ => Vec::new(),
    }
}
