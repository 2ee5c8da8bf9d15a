//! Building blocks of decoders.

mod attention;
mod delta_net;
mod dense_and_moe;
mod embedding;
mod gated_mlp;
mod linear;
mod low_rank;
mod moe;
mod norm;
mod per_layer;
mod rotation;
mod short_conv;
mod streams;
mod sublayer;

pub(crate) use attention::{Attention, Pass};
pub(crate) use delta_net::GatedDeltaNet;
pub(crate) use dense_and_moe::DenseAndMoe;
pub(crate) use embedding::Embedding;
pub(crate) use gated_mlp::GatedMlp;
pub(crate) use linear::Linear;
pub(crate) use low_rank::{AdaptedRows, LowRank};
pub(crate) use moe::MoeMlp;
pub(crate) use norm::RmsNorm;
pub(crate) use per_layer::{PerLayerEmbedding, PerLayerInput};
pub(crate) use rotation::{Rotation, Turn};
pub(crate) use short_conv::ShortConv;
pub(crate) use streams::{AltUp, Laurel, StreamEnds};
pub(crate) use sublayer::{BlockInput, Sublayer};
