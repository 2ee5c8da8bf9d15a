//! Which tensors a file has, in which types.

use lm_kernels::{FloatDtype, WeightFormat};

use super::super::architectures::GgufArchitecture;
use super::super::{GgufTensorType, names};
use super::NewFile;
use crate::spec::{DecoderSpec, Mlp};
use crate::weights::{LayerParam, Param, PieceRows, Place, PlacePiece};
use crate::{Error, Result};

/// A tensor to be written.
#[derive(Debug)]
pub(super) struct NewTensor {
    pub(super) name: String,
    pub(super) ty: GgufTensorType,
    /// `[rows, cols]`, `[len]`, or experts in front of these.
    pub(super) shape: Vec<usize>,
    /// Columns of a matrix.
    pub(super) cols: Option<usize>,
    pub(super) contents: Contents,
}

/// Where the values of a tensor come from.
#[derive(Debug)]
pub(super) enum Contents {
    /// They are settings.
    Values(Vec<f32>),
    /// They are in the checkpoint.
    Stored(Place),
}

/// The weights of a model, in the order of its parameters.
pub(super) fn plan(file: &NewFile<'_>, architecture: &GgufArchitecture) -> Result<Vec<NewTensor>> {
    let mut tensors: Vec<NewTensor> = Vec::new();
    for (param, shape) in file.spec.params() {
        let place = file.architecture.place(file.spec, param, file.checkpoint);
        file.checkpoint.check(&place, &shape)?;
        let (name, place, shape) = name(file, architecture, param, place, shape)?;
        if tensors.iter().any(|tensor| tensor.name == name) {
            continue; // Another part of the same tensor was there before.
        }
        let ty = ty(file, param, &name, &shape, &place)?;
        let cols = shape.get(1).copied();
        let shape = of_each_expert(file.spec, param, shape);
        tensors.push(NewTensor { name, ty, shape, cols, contents: Contents::Stored(place) });
    }
    Ok(tensors)
}

/// The tensor of a parameter: one that has others too, where files have that, otherwise one of its own.
fn name(
    file: &NewFile<'_>,
    architecture: &GgufArchitecture,
    param: Param,
    place: Place,
    shape: Vec<usize>,
) -> Result<(String, Place, Vec<usize>)> {
    let file_name = |name: &str| names::file_name(architecture, file.spec.layers.len(), name);
    if let [PlacePiece { tensor, rows: PieceRows::Range(rows) }] = place.pieces()
        && let Some(name) = file_name(tensor)
    {
        return Ok((name, Place::whole(tensor), [&[rows.of], &shape[1..]].concat()));
    }
    let own = (file.architecture.weight_name)(param);
    match file_name(&own) {
        Some(name) => Ok((name, place, shape)),
        None => Err(Error::NoGgufForm {
            architecture: architecture.name.to_owned(),
            what: format!("tensor {own}"),
            value: format!("{shape:?}"),
            read: "absent".to_owned(),
        }),
    }
}

/// The shape of a parameter with the experts as a dimension of their own, where it has the rows of all of them.
fn of_each_expert(spec: &DecoderSpec, param: Param, shape: Vec<usize>) -> Vec<usize> {
    use LayerParam::{ExpertDowns, ExpertGates, ExpertUps};
    let Param::Layer(layer, ExpertDowns(_) | ExpertGates(_) | ExpertUps(_)) = param else { return shape };
    let (Mlp::Experts(experts) | Mlp::GatedBesideExperts(_, experts)) = &spec.layers[layer].mlp else {
        return shape;
    };
    [&[experts.num_experts, shape[0] / experts.num_experts], &shape[1..]].concat()
}

/// The type of a tensor, as llama.cpp's converter chooses it: vectors, norms and what is no matrix to multiply by are F32; blocks
/// stay what they are; rows that are no whole blocks are F16.
fn ty(
    file: &NewFile<'_>,
    param: Param,
    name: &str,
    shape: &[usize],
    place: &Place,
) -> Result<GgufTensorType> {
    let stays_f32 = param.keeps_floats() || param.stays_f32();
    if shape.len() < 2 || stays_f32 || name.ends_with("_norm.weight") || !name.ends_with(".weight") {
        return of_format(WeightFormat::F32);
    }
    if let Some(blocks) = file.checkpoint.rows(place)?.ty().blocks() {
        return of_format(WeightFormat::Ggml(blocks));
    }
    of_format(shape.last().map_or(file.format, |&cols| file.format.for_rows_of(cols)))
}

/// The type under which files have a format.
pub(super) fn of_format(format: WeightFormat) -> Result<GgufTensorType> {
    let ty = GgufTensorType::from_name(&format.to_string().to_uppercase());
    ty.ok_or_else(|| super::unsupported_format(format))
}

/// The float type of a tensor type, where it is one that is written.
pub(super) fn float(ty: GgufTensorType) -> Option<FloatDtype> {
    match ty.name() {
        "F32" => Some(FloatDtype::F32),
        "F16" => Some(FloatDtype::F16),
        "BF16" => Some(FloatDtype::Bf16),
        _ => None,
    }
}
