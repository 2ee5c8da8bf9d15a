use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::{Weight, WeightFormat};
use lm_tokenizer::TokenId;

use crate::batch::Batch;
use crate::checkpoint::Param;
use crate::error::Result;
use crate::loader::WeightLoader;
use crate::nn::scaled;
use crate::spec::{DecoderSpec, OutputHead, PositionTable};

/// Token embedding table and output head, which may be the same matrix.
pub(crate) struct Embedding {
    table: Weight,
    /// Learned embeddings of positions, added to those of tokens.
    positions: Option<(Weight, PositionTable)>,
    /// `None`: tied to the table, or absent.
    head: Option<Weight>,
    head_bias: Option<Tensor<1>>,
    /// Factor on embedding rows looked up by id.
    scale: Option<f32>,
    logit_scale: Option<f32>,
    logit_soft_cap: Option<f32>,
    device: BurnDevice,
}

impl Embedding {
    pub(crate) fn load(loader: &mut WeightLoader<'_>, spec: &DecoderSpec) -> Result<Self> {
        let (rows, cols) = (spec.vocab_size, spec.hidden_size);
        let table = loader.matrix(Param::Embedding, rows, cols)?;
        let positions = spec.learned_positions.map(|positions| {
            let table = loader.float_matrix(Param::PositionEmbedding, positions.rows, cols);
            table.map(|table| (table, positions))
        });
        let head = match spec.output_head {
            OutputHead::Tied | OutputHead::Absent => None,
            OutputHead::Separate => Some(loader.matrix(Param::OutputHead, rows, cols)?),
        };
        let head_bias = spec.head_bias.if_present(|| loader.vector(Param::OutputHeadBias, rows))?;
        Ok(Self {
            table,
            positions: positions.transpose()?,
            head,
            head_bias,
            scale: spec.embedding_scale,
            logit_scale: spec.logit_scale,
            logit_soft_cap: spec.logit_soft_cap,
            device: loader.burn_device().clone(),
        })
    }

    /// The table's device, as a burn device.
    pub(crate) fn device(&self) -> &BurnDevice {
        &self.device
    }

    /// Format of the table.
    pub(crate) fn format(&self) -> WeightFormat {
        self.table.format()
    }

    /// Bytes of the tables of which a pass reads some rows: that of tokens if it is not also the output head,
    /// and that of positions.
    pub(crate) fn bytes_of_tables_alone(&self) -> u64 {
        let tokens = if self.head.is_some() { self.table.bytes() as u64 } else { 0 };
        tokens + self.positions.as_ref().map_or(0, |(positions, _)| positions.bytes() as u64)
    }

    /// Adds the learned embeddings of the rows' positions to `x`, `[rows, hidden]`, if there are any.
    pub(crate) fn add_positions(&self, x: Tensor<2>, batch: &Batch) -> Tensor<2> {
        let Some((table, PositionTable { first, .. })) = &self.positions else { return x };
        let positions = batch.sequences.iter().flat_map(|sequence| &sequence.positions);
        let rows: Vec<_> = positions.map(|position| *first as TokenId + position.temporal).collect();
        x + lm_kernels::embedding(table, &rows, &self.device)
    }

    /// Looks up the embedding rows of `ids`: `[ids, hidden]`.
    pub(crate) fn lookup(&self, ids: &[TokenId]) -> Tensor<2> {
        scaled(lm_kernels::embedding(&self.table, ids, &self.device), self.scale)
    }

    /// Uploads embedding rows from the host: `[rows, hidden]`.
    pub(crate) fn upload(&self, values: Vec<f32>) -> Tensor<2> {
        let rows = values.len() / self.table.cols();
        lm_kernels::from_host(values, [rows, self.table.cols()], &self.device)
    }

    /// Computes logits: `[rows, hidden]` to `[rows, vocab]`.
    pub(crate) fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        let head = self.head.as_ref().unwrap_or(&self.table);
        let logits = match &self.head_bias {
            None => lm_kernels::linear(x, head),
            Some(bias) => lm_kernels::linear_bias(x, head, bias.clone(), None),
        };
        let logits = scaled(logits, self.logit_scale);
        match self.logit_soft_cap {
            None => logits,
            Some(cap) => (logits / cap).tanh() * cap,
        }
    }
}
