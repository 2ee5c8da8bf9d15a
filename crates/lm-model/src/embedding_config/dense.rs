//! Linear layer on a pooled vector.

use std::fmt;

use lm_formats::{ModelFiles, file_names, parse_json, read_required};
use serde::Deserialize;

use super::folder::{VECTOR, invalid, unsupported};
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// Activation of an element.
type Activation = fn(f32) -> f32;

/// Supported activations, by the last part of their name in torch.
const ACTIVATIONS: [(&str, Activation); 2] = [("Identity", |x| x), ("Tanh", f32::tanh)];
/// Activation of a file that names none, sentence-transformers' default.
const DEFAULT_ACTIVATION: &str = "torch.nn.modules.activation.Tanh";

/// Linear layer with an activation: `Dense` of sentence-transformers.
#[derive(Clone)]
pub struct Dense {
    in_features: usize,
    /// Rows of `in_features` weights, one for each output.
    weights: Vec<f32>,
    bias: Option<Vec<f32>>,
    activation: Activation,
}

#[derive(Deserialize)]
struct Settings {
    in_features: usize,
    out_features: usize,
    #[serde(default = "yes")]
    bias: bool,
    activation_function: Option<String>,
    module_input_name: Option<String>,
    module_output_name: Option<String>,
    #[serde(default)]
    use_residual: bool,
}

fn yes() -> bool {
    true
}

impl Dense {
    #[cfg(test)]
    pub(super) fn new(
        in_features: usize,
        weights: Vec<f32>,
        bias: Option<Vec<f32>>,
        activation: Activation,
    ) -> Self {
        Self { in_features, weights, bias, activation }
    }

    /// Reads the layer in `folder` for vectors of `size` elements.
    pub(super) fn read(files: &dyn ModelFiles, folder: &str, size: usize) -> Result<Self> {
        let file = format!("{folder}/{}", file_names::CONFIG);
        let settings: Settings = parse_json(&file, &read_required(files, &file)?)?;
        let activation = settings.check(&file, size)?;
        let file = format!("{folder}/{}", file_names::WEIGHTS);
        let tensors = Checkpoint::of_file(&file, read_required(files, &file)?)?;
        let Settings { in_features, out_features, bias, .. } = settings;
        let weights = tensors.values_of_shape("linear.weight", &[out_features, in_features])?;
        let bias = bias.then(|| tensors.values_of_shape("linear.bias", &[out_features])).transpose()?;
        Ok(Self { in_features, weights, bias, activation })
    }

    /// Number of elements of the output.
    pub fn out_features(&self) -> usize {
        self.weights.len() / self.in_features
    }

    /// Applies the layer to a vector of its input's size.
    pub fn apply(&self, vector: &[f32]) -> Vec<f32> {
        let dot = |row: &[f32]| row.iter().zip(vector).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
        let mut outputs: Vec<f64> = self.weights.chunks_exact(self.in_features).map(dot).collect();
        for (output, bias) in outputs.iter_mut().zip(self.bias.iter().flatten()) {
            *output += f64::from(*bias);
        }
        outputs.into_iter().map(|output| (self.activation)(output as f32)).collect()
    }
}

impl Settings {
    /// Checks the settings for vectors of `size` elements; returns the activation.
    fn check(&self, file: &str, size: usize) -> Result<Activation> {
        let names = [
            ("module_input_name", &self.module_input_name),
            ("module_output_name", &self.module_output_name),
        ];
        for (key, name) in names {
            if let Some(name) = name.as_ref().filter(|name| *name != VECTOR) {
                return Err(unsupported(file, key, name, VECTOR));
            }
        }
        if self.use_residual {
            return Err(unsupported(file, "use_residual", &true, "false"));
        }
        if self.in_features != size || size == 0 {
            let expected = format!("{size}, the size of the vectors before it");
            return Err(invalid(file, "in_features", &self.in_features, &expected));
        }
        if self.out_features == 0 {
            return Err(invalid(file, "out_features", &0, "at least 1"));
        }
        let name = self.activation_function.as_deref().unwrap_or(DEFAULT_ACTIVATION);
        let is = |known: &str| name.strip_prefix("torch.nn.").is_some_and(|name| name.ends_with(known));
        let found = ACTIVATIONS.iter().find(|(known, _)| is(&format!(".{known}")));
        let known = ACTIVATIONS.map(|(name, _)| name).join(", ");
        found.map(|row| row.1).ok_or_else(|| unsupported(file, "activation_function", &name, &known))
    }
}

impl fmt::Debug for Dense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dense")
            .field("in_features", &self.in_features)
            .field("out_features", &self.out_features())
            .field("bias", &self.bias.is_some())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Dense {
    fn eq(&self, other: &Self) -> bool {
        // Functions have no identity.
        let at_half = |dense: &Self| (dense.activation)(0.5);
        self.in_features == other.in_features
            && self.weights == other.weights
            && self.bias == other.bias
            && at_half(self) == at_half(other)
    }
}
