//! Tensors of a file and their types.

use lm_formats::{GgufNewTensor, GgufTensorType};
use lm_kernels::{FloatDtype, WeightFormat};

use super::super::names;
use crate::architectures::Architecture;
use crate::checkpoint::{Param, SliceRows, TensorLocation};
use crate::error::{Error, Result};
use crate::gguf::GgufArchitecture;
use crate::gguf_model::{MatrixTypes, NewFile};
use crate::spec::DecoderSpec;

/// Tensor to write.
#[derive(Debug)]
pub(super) struct NewTensor {
    pub(super) name: String,
    pub(super) ty: GgufTensorType,
    /// `[rows, cols]` or `[len]`, after a leading dimension of experts where there are any.
    pub(super) shape: Vec<usize>,
    /// Columns of a matrix.
    pub(super) cols: Option<usize>,
    pub(super) contents: Contents,
}

impl NewTensor {
    /// Name, type and shape.
    pub(super) fn description(&self) -> GgufNewTensor {
        GgufNewTensor { name: self.name.clone(), ty: self.ty, shape: self.shape.clone() }
    }
}

/// Source of a tensor's values.
#[derive(Debug)]
pub(super) enum Contents {
    /// Metadata.
    Values(Vec<f32>),
    /// Location in the checkpoint.
    Stored(TensorLocation),
}

/// Plans the tensors of a model's weights, in the order of its parameters.
pub(super) fn plan(file: &NewFile<'_>, architecture: &GgufArchitecture) -> Result<Vec<NewTensor>> {
    let mut tensors: Vec<NewTensor> = Vec::new();
    for (param, shape) in file.spec.params().into_iter().chain(unused(file, architecture)) {
        let location = file.architecture.location(file.spec, param, file.checkpoint);
        file.checkpoint.check(&location, &shape)?;
        let Named { name, location, rows, stack } =
            name(file, architecture, param, location, shape.first().copied().unwrap_or(1))?;
        if tensors.iter().any(|tensor| tensor.name == name) {
            continue; // Another part of the same tensor came before.
        }
        let shape = [&[rows], &shape[1..]].concat();
        let ty = ty(file, param, &name, &shape, &location)?;
        let cols = shape.get(1).copied();
        let count = stack.or_else(|| file.spec.num_matrices(param));
        let shape = match count.or_else(|| file.spec.num_row_groups(param)) {
            Some(count) => [&[count, rows / count], &shape[1..]].concat(),
            None => shape,
        };
        tensors.push(NewTensor { name, ty, shape, cols, contents: Contents::Stored(location) });
    }
    Ok(tensors)
}

/// Parameters for other readers that this decoder does not read, if the checkpoint has them.
fn unused(file: &NewFile<'_>, architecture: &GgufArchitecture) -> Vec<(Param, Vec<usize>)> {
    let is_head = |param: &Param| *param == Param::OutputHead;
    let there = |param: Param| {
        let name = (file.architecture.weight_name)(param);
        names::file_name(architecture, file.spec.layers.len(), &name)?;
        Some((param, file.checkpoint.shape(&name)?.to_vec()))
    };
    file.spec.unused_params().into_iter().filter(|param| !is_head(param)).filter_map(there).collect()
}

/// Name of a tensor in the file, and the location of its rows.
struct Named {
    name: String,
    location: TensorLocation,
    rows: usize,
    /// Number of stacked parameters, if it is a stack.
    stack: Option<usize>,
}

/// Returns the file tensor of a parameter: a fused or stacked one where files have it, else its own.
fn name(
    file: &NewFile<'_>,
    architecture: &GgufArchitecture,
    param: Param,
    location: TensorLocation,
    rows: usize,
) -> Result<Named> {
    let file_name = |name: &str| names::file_name(architecture, file.spec.layers.len(), name);
    let own = (file.architecture.weight_name)(param);
    if let Some((tensor, rows)) = tensor_of(&location, rows)
        && let Some(name) = file_name(tensor)
    {
        return Ok(Named { name, location: TensorLocation::whole(tensor), rows, stack: None });
    }
    if let Some(name) = file_name(&own) {
        return Ok(Named { name, location, rows, stack: None });
    }
    let locations = (file.architecture.locations)(file.spec, param);
    // Parts that take turns in a tensor cannot be stacked.
    let single = locations.iter().filter(|location| location.slices().len() == 1);
    let tensors = single.filter_map(|location| tensor_of(location, rows));
    match tensors.into_iter().find_map(|(tensor, rows)| Some((tensor, rows, file_name(tensor)?))) {
        Some((tensor, rows, name)) => {
            let parts = parts_of(file, tensor);
            // Layers have fused projections, of several heights.
            let stack = (!matches!(param, Param::Layer(..))).then_some(parts.len());
            Ok(Named { name, rows, stack, location: TensorLocation::concatenated(parts) })
        }
        None => Err(Error::NoGgufForm {
            architecture: architecture.name.to_owned(),
            what: format!("tensor {own}"),
            value: "there".to_owned(),
            read: "absent".to_owned(),
        }),
    }
}

/// Name of a matrix in llama.cpp's files: of its fused tensor, or its own. A matrix without a name there, or
/// with columns in another order, keeps the name of its parameter.
pub(crate) fn matrix_name(architecture: &Architecture, spec: &DecoderSpec, param: Param) -> String {
    let own = (architecture.weight_name)(param);
    let Some(gguf) = architecture.gguf.first().filter(|_| !spec.has_grouped_columns(param)) else {
        return own;
    };
    let file_name = |name: &str| names::file_name(gguf, spec.layers.len(), name);
    let locations = (architecture.locations)(spec, param);
    let fused = locations.iter().find_map(|location| file_name(tensor_of(location, 0)?.0));
    fused.or_else(|| file_name(&own)).unwrap_or(own)
}

/// Returns the single tensor whose rows, all or some, a location covers, and that tensor's number of rows;
/// `all` is the parameter's.
fn tensor_of(location: &TensorLocation, all: usize) -> Option<(&str, usize)> {
    let (first, others) = location.slices().split_first()?;
    let rows = match &first.rows {
        SliceRows::All if others.is_empty() => all,
        SliceRows::Range(rows) if others.iter().all(|other| other.tensor == first.tensor) => rows.of,
        SliceRows::All | SliceRows::Range(_) | SliceRows::Columns(_) => return None,
    };
    Some((&first.tensor, rows))
}

/// Locations of the parameters that a tensor fuses or stacks, in the order of its rows.
fn parts_of(file: &NewFile<'_>, tensor: &str) -> Vec<TensorLocation> {
    let params = file.spec.params().into_iter().map(|(param, _)| param);
    let is_part = |param: &Param| {
        let locations = (file.architecture.locations)(file.spec, *param);
        locations.iter().any(|location| tensor_of(location, 0).is_some_and(|(other, _)| other == tensor))
    };
    let location = |param| file.architecture.location(file.spec, param, file.checkpoint);
    params.filter(is_part).map(location).collect()
}

/// Type of a tensor, as llama.cpp's converter chooses it: vectors, norms and anything that is not a matrix to
/// multiply by are F32; rows that are not whole blocks of the requested format are F16.
fn ty(
    file: &NewFile<'_>,
    param: Param,
    name: &str,
    shape: &[usize],
    location: &TensorLocation,
) -> Result<GgufTensorType> {
    let stays_f32 = param.keeps_floats() || param.stays_f32();
    if shape.len() < 2 || stays_f32 || name.ends_with("_norm.weight") || !name.ends_with(".weight") {
        return of_format(WeightFormat::F32);
    }
    let stored = file.checkpoint.rows(location)?.ty();
    let in_format = |format: WeightFormat| shape.last().map_or(format, |&cols| format.for_rows_of(cols));
    of_format(match (file.types, stored.blocks()) {
        (MatrixTypes::Floats(format), None) | (MatrixTypes::All(format), _) => in_format(format),
        (MatrixTypes::Floats(_), Some(blocks)) => WeightFormat::Ggml(blocks),
        // Types without a format were rejected before.
        (MatrixTypes::Stored { .. }, _) => stored.format().unwrap_or(WeightFormat::F32),
    })
}

/// Returns the tensor type of a format.
pub(super) fn of_format(format: WeightFormat) -> Result<GgufTensorType> {
    let ty = GgufTensorType::from_name(&format.to_string().to_uppercase());
    ty.ok_or_else(|| super::unsupported_format(format))
}

/// Returns the float type of a tensor type, if it can be written.
pub(super) fn float(ty: GgufTensorType) -> Option<FloatDtype> {
    match ty.name() {
        "F32" => Some(FloatDtype::F32),
        "F16" => Some(FloatDtype::F16),
        "BF16" => Some(FloatDtype::Bf16),
        _ => None,
    }
}
