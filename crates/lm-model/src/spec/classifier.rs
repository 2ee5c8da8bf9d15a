use lm_formats::Result;
use lm_kernels::Activation;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Bias, Pooling};
use crate::checkpoint::{Param, Piece};
use crate::config::{ModelConfig, invalid};

/// Head that maps the pooled hidden states of a text to the logits of labels, in place of the output head.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClassifierSpec {
    pub(crate) labels: usize,
    pub(crate) pooling: Pooling,
    /// Layer before the last projection.
    pub(crate) dense: Option<ClassifierDense>,
    /// Bias of the last projection.
    pub(crate) bias: Bias,
}

/// Dense layer of a classifier, from the hidden size to itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClassifierDense {
    pub(crate) activation: ClassifierActivation,
    pub(crate) bias: Bias,
    pub(crate) norm: ClassifierNorm,
}

/// Presence of a norm after a classifier's activation, of the kind of the model's other norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassifierNorm {
    Absent,
    Present,
}

/// Activation of a classifier's dense layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClassifierActivation {
    Tanh,
    Of(Activation),
}

/// Keys that describe the task of a checkpoint.
#[derive(Deserialize)]
struct Keys {
    #[serde(default)]
    architectures: Vec<String>,
    id2label: Option<Map<String, Value>>,
    num_labels: Option<usize>,
}

/// Suffix of the class names of models with a classifier.
const CLASSIFIER: &str = "ForSequenceClassification";
/// Number of labels of a config that names none, transformers' default.
const DEFAULT_LABELS: usize = 2;
const MAX_LABELS: usize = 1 << 16;

impl ClassifierSpec {
    /// Number of labels of a model with a classifier; `None` for other models.
    pub(crate) fn labels(config: &ModelConfig) -> Result<Option<usize>> {
        let Keys { architectures, id2label, num_labels } = config.read()?;
        if !architectures.iter().any(|name| name.ends_with(CLASSIFIER)) {
            return Ok(None);
        }
        let labels = id2label.map(|names| names.len()).or(num_labels).unwrap_or(DEFAULT_LABELS);
        match labels {
            1..=MAX_LABELS => Ok(Some(labels)),
            _ => Err(invalid("id2label", format!("{labels} labels"), format!("1 to {MAX_LABELS}"))),
        }
    }

    /// Classifier of a decoder: a projection of the last token, without a bias.
    pub(super) fn of_decoder(config: &ModelConfig) -> Result<Option<Self>> {
        let classifier = |labels| Self { labels, pooling: Pooling::Last, dense: None, bias: Bias::Absent };
        Ok(Self::labels(config)?.map(classifier))
    }

    /// The parameters, except the bias of a norm.
    pub(super) fn params(&self, hidden: usize) -> Vec<(Param, Vec<usize>)> {
        let mut params = vec![(Param::Classifier(Piece::Weight), vec![self.labels, hidden])];
        if self.bias == Bias::Present {
            params.push((Param::Classifier(Piece::Bias), vec![self.labels]));
        }
        let Some(ClassifierDense { bias, norm, .. }) = self.dense else { return params };
        params.push((Param::ClassifierDense(Piece::Weight), vec![hidden, hidden]));
        if bias == Bias::Present {
            params.push((Param::ClassifierDense(Piece::Bias), vec![hidden]));
        }
        if norm == ClassifierNorm::Present {
            params.push((Param::ClassifierNorm, vec![hidden]));
        }
        params
    }
}
