//! Importance matrices of a model: recording while it runs, and conversion with one.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lm_kernels::{InputSums, WeightFormat};

use super::temp_output::TempOutput;
use super::{LoadOptions, LoadedModel, ModelFolder};
use crate::error::{Result, io_error};
use crate::gguf_model::matrix_name;
use crate::imatrix::{Calibration, ImportanceMatrix};
use crate::loader::{InputRecords, LoadProgress};

/// Recorder of the inputs of a loaded model's linear layers: [`ModelFolder::load_recording`].
#[derive(Clone, Debug)]
pub struct InputRecorder {
    model: String,
    /// By name; the parts of a fused tensor have the same inputs.
    sums: BTreeMap<String, Arc<InputSums>>,
}

impl InputRecorder {
    /// Returns the importance matrix of everything that the model has run so far.
    ///
    /// # Errors
    /// [`crate::Error::TensorValue`] when an input was not a finite number.
    pub fn importance_matrix(&self, calibration: Calibration) -> Result<ImportanceMatrix> {
        let sums = self.sums.iter().map(|(name, sums)| (name.clone(), sums.matrices()));
        ImportanceMatrix::new(self.model.clone(), sums, calibration)
    }
}

impl ModelFolder {
    /// [`load`](Self::load) of a model that records the inputs of its decoder's linear layers, at some cost
    /// in speed.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_recording(
        &self,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<(LoadedModel, InputRecorder)> {
        let mut records = InputRecords::default();
        let loaded = self.load_parts(options, Some(&mut records), progress)?;
        let (architecture, spec, _) = self.decoder_and_weights(&self.config()?)?;
        let named = |(param, sums)| (matrix_name(architecture, &spec, param), sums);
        let sums = records.0.into_iter().map(named).collect();
        Ok((loaded, InputRecorder { model: self.name.clone(), sums }))
    }

    /// [`convert`](Self::convert) to q4, with the errors of each matrix's columns weighted by their
    /// importance. Returns the names of the matrices that have none in `importance`, which are quantised as
    /// by [`convert`](Self::convert).
    ///
    /// # Errors
    /// - as [`convert`](Self::convert)
    /// - [`lm_formats::Error::TensorShape`] when a matrix has other columns, or another number of experts,
    ///   than in `importance`
    /// - [`crate::Error::NoImportance`] when no matrix has an importance
    pub fn convert_with_importance(
        &self,
        output: impl AsRef<Path>,
        importance: &ImportanceMatrix,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Vec<String>> {
        self.write_folder(output.as_ref(), WeightFormat::Q4, Some(importance), progress)
    }
}

impl ImportanceMatrix {
    /// Writes [`to_gguf`](Self::to_gguf) to a new file, which appears when it is complete.
    ///
    /// # Errors
    /// When the file exists, or cannot be written.
    pub fn save(&self, output: impl AsRef<Path>) -> Result<()> {
        let (output, bytes) = (output.as_ref(), self.to_gguf()?);
        let (temp, mut file) = TempOutput::file(output)?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        written.map_err(|source| io_error(output, source))?;
        temp.finish(output)
    }
}
