//! Writing the quantised weights of a checkpoint to one safetensors file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use lm_kernels::{Arena, Importance, WeightFormat};
use safetensors::Dtype;
use serde_json::{Map, Value, json};

use crate::architectures::Architecture;
use crate::checkpoint::{Blocks, Checkpoint, Param, TensorLocation, TensorType};
use crate::config::unsupported;
use crate::error::{Error, Result, io_error};
use crate::gguf_model::matrix_name;
use crate::imatrix::ImportanceMatrix;
use crate::loader::{LoadPhase, LoadProgress, dequantize, pack_weighted};
use crate::spec::{DecoderSpec, OutputHead};

/// Plan of the file for a checkpoint.
pub(super) struct QuantizedFile<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) format: WeightFormat,
    parameters: Vec<Parameter>,
    /// Names of the quantised matrices that inputs are multiplied by and that the importance matrix lacks.
    pub(super) without_importance: Vec<String>,
}

/// Parameter and the tensors that store it.
enum Parameter {
    /// Unquantised values: a vector, or a matrix that keeps floats.
    Floats { name: String, location: TensorLocation, shape: Vec<usize> },
    /// Quants and scales.
    Quantized {
        location: TensorLocation,
        rows: usize,
        cols: usize,
        blocks: Blocks,
        importance: Option<Importance>,
    },
    /// Values as in the source checkpoint: an encoder's.
    Stored { name: String, location: TensorLocation, dtype: Dtype, shape: Vec<usize> },
}

impl<'a> QuantizedFile<'a> {
    /// Plans the parameters of `spec` in a storable format; checks that all are present, and that their
    /// importances, if any, have their shape.
    pub(super) fn plan(
        checkpoint: &'a Checkpoint,
        architecture: &Architecture,
        spec: &DecoderSpec,
        format: WeightFormat,
        importance: Option<&ImportanceMatrix>,
    ) -> Result<Self> {
        if format.stored_row_bytes(1).is_none() {
            return Err(unsupported("quantization_config.format", format, "q8, q4").into());
        }
        let (mut parameters, mut without_importance) = (Vec::new(), Vec::new());
        for (param, shape) in spec.params() {
            let (name, location) =
                ((architecture.weight_name)(param), architecture.location(spec, param, checkpoint));
            checkpoint.check(&location, &shape)?;
            let format = (!param.keeps_floats()).then_some(format);
            let mut parameter = Parameter::plan(name, location, &shape, format);
            if let (Some(matrix), Parameter::Quantized { location, rows, cols, importance, .. }) =
                (importance, &mut parameter)
            {
                *importance = importance_of(matrix, architecture, spec, (param, [*rows, *cols]))?;
                if importance.is_none() && is_multiplied(spec, param) {
                    without_importance.push(location.name().to_owned());
                }
            }
            parameters.push(parameter);
        }
        Ok(Self { checkpoint, format, parameters, without_importance })
    }

    /// Adds the tensors under these prefixes, which are copied as they are.
    pub(super) fn with_stored(mut self, prefixes: &[&str]) -> Self {
        let slices = self.parameters.iter().flat_map(|parameter| parameter.location().slices());
        let planned: BTreeSet<_> = slices.map(|slice| slice.tensor.clone()).collect();
        for (name, shape, ty) in self.checkpoint.under(prefixes) {
            if let TensorType::Plain(dtype) = ty
                && !planned.contains(name)
            {
                let (name, location) = (name.to_owned(), TensorLocation::whole(name));
                self.parameters.push(Parameter::Stored { name, location, dtype, shape: shape.to_vec() });
            }
        }
        self
    }

    /// Returns true if a matrix has an importance.
    pub(super) fn has_importance(&self) -> bool {
        self.parameters.iter().any(|p| matches!(p, Parameter::Quantized { importance: Some(_), .. }))
    }

    /// Writes the file, with `metadata` in its header. At most one tensor is in memory; `progress` is called
    /// after each.
    pub(super) fn write(
        &self,
        out: &mut File,
        path: &Path,
        metadata: &[(&str, &str)],
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<()> {
        let failed = |source| io_error(path, source);
        self.write_header(out, metadata).map_err(failed)?;
        let mut out = BufWriter::new(out);
        let mut total_bytes = 0;
        for parameter in &self.parameters {
            total_bytes += self.checkpoint.rows(parameter.location())?.bytes() as u64;
        }
        let mut done_bytes = 0;
        for parameter in &self.parameters {
            let stored = self.checkpoint.rows(parameter.location())?;
            match parameter {
                Parameter::Floats { location, shape, .. } => {
                    let values = self.floats(location, shape)?;
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                    out.write_all(&bytes).map_err(failed)?;
                }
                Parameter::Stored { .. } => {
                    stored.check_files()?;
                    out.write_all(&stored.read_all()).map_err(failed)?;
                    stored.release_all();
                }
                Parameter::Quantized { location, rows, cols, importance, .. } => {
                    let (shape, name) = ((self.format, *rows, *cols), location.name());
                    let packed = pack_weighted(&stored, name, shape, &Arena::default(), importance.as_ref())?;
                    let blocks = packed.to_stored().expect("the format was found to have a form for files");
                    out.write_all(&blocks.quants).map_err(failed)?;
                    out.write_all(&blocks.scales).map_err(failed)?;
                }
            }
            done_bytes += stored.bytes() as u64;
            progress(LoadProgress { phase: LoadPhase::Weights, done_bytes, total_bytes });
        }
        out.flush().map_err(failed)
    }

    /// Values of a parameter that keeps floats; stored blocks are dequantised.
    fn floats(&self, location: &TensorLocation, shape: &[usize]) -> Result<Vec<f32>> {
        let stored = self.checkpoint.rows(location)?;
        let (Some(blocks), [.., cols]) = (stored.ty().blocks(), shape) else {
            return self.checkpoint.vector(location);
        };
        let rows = shape.iter().product::<usize>() / (*cols).max(1);
        let failed = |source| Error::Weight { tensor: location.name().to_owned(), source };
        stored.check_files().map_err(failed)?;
        dequantize(blocks, rows, *cols, &stored.read_all()).map_err(failed)
    }

    /// Writes the header at the start of the file, possibly over one whose values have the same lengths.
    pub(super) fn write_header(&self, out: &mut File, metadata: &[(&str, &str)]) -> io::Result<()> {
        let header = self.header(metadata).to_string();
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(header.as_bytes())
    }

    /// Builds the safetensors header: every tensor with its offsets after the header.
    fn header(&self, metadata: &[(&str, &str)]) -> Value {
        let mut header = Map::new();
        if !metadata.is_empty() {
            let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
            header.insert("__metadata__".to_owned(), metadata.collect::<Map<_, _>>().into());
        }
        let mut end = 0;
        let mut add = |name: &str, dtype: Dtype, shape: &[usize]| {
            let start = end;
            end += shape.iter().product::<usize>() * dtype.bitsize() / 8;
            let entry = json!({"dtype": dtype.to_string(), "shape": shape, "data_offsets": [start, end]});
            header.insert(name.to_owned(), entry);
        };
        for parameter in &self.parameters {
            match parameter {
                Parameter::Floats { name, shape, .. } => add(name, Dtype::F32, shape),
                Parameter::Stored { name, dtype, shape, .. } => add(name, *dtype, shape),
                Parameter::Quantized { blocks, .. } => {
                    for (name, dtype, shape) in [&blocks.quants, &blocks.scales] {
                        add(name, *dtype, shape);
                    }
                }
            }
        }
        Value::Object(header)
    }
}

/// Returns false for tables whose rows are only looked up.
fn is_multiplied(spec: &DecoderSpec, param: Param) -> bool {
    match param {
        Param::Embedding => spec.output_head == OutputHead::Tied,
        Param::PerLayerEmbedding => false,
        _ => true,
    }
}

/// Importance of a parameter's columns; a table that is also the output head has the head's.
fn importance_of(
    matrix: &ImportanceMatrix,
    architecture: &Architecture,
    spec: &DecoderSpec,
    (param, shape): (Param, [usize; 2]),
) -> Result<Option<Importance>> {
    let count = spec.num_experts(param).unwrap_or(1);
    let of = |param| matrix.importance(&matrix_name(architecture, spec, param), count, shape);
    match (of(param)?, param, spec.output_head) {
        (None, Param::Embedding, OutputHead::Tied) => of(Param::OutputHead),
        (importance, ..) => Ok(importance),
    }
}

impl Parameter {
    fn plan(name: String, location: TensorLocation, shape: &[usize], format: Option<WeightFormat>) -> Self {
        if let &[rows, cols] = shape
            && let Some(format) = format
            && let Some(blocks) = Blocks::of(&name, format, rows, cols)
        {
            return Self::Quantized { location, rows, cols, blocks, importance: None };
        }
        Self::Floats { name, location, shape: shape.to_vec() }
    }

    /// Location in the source checkpoint.
    fn location(&self) -> &TensorLocation {
        match self {
            Self::Floats { location, .. }
            | Self::Quantized { location, .. }
            | Self::Stored { location, .. } => location,
        }
    }
}
