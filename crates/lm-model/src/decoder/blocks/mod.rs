//! Building blocks of decoders.

mod altup;
mod attention;
mod delta_net;
mod dense_and_moe;
mod embedding;
mod gated_mlp;
mod latent_attention;
mod laurel;
mod layer_loader;
mod moe;
mod norm;
mod per_layer;
mod plain_mlp;
mod projection;
mod residual;
mod rope;
mod short_conv;
mod streams;

pub(crate) use altup::{AltUp, AltUpProjections};
pub(crate) use attention::{Attention, ForwardContext};
pub(crate) use delta_net::GatedDeltaNet;
pub(crate) use dense_and_moe::DenseAndMoe;
pub(crate) use embedding::Embedding;
pub(crate) use gated_mlp::GatedMlp;
pub(crate) use latent_attention::LatentAttention;
pub(crate) use laurel::Laurel;
pub(crate) use layer_loader::LayerLoader;
pub(crate) use moe::MoeMlp;
pub(crate) use norm::load_norm;
pub(crate) use per_layer::{PerLayerEmbedding, PerLayerInput};
pub(crate) use plain_mlp::PlainMlp;
pub(crate) use projection::Projection;
pub(crate) use residual::{BlockInput, ResidualBlock};
pub(crate) use rope::{Rope, Rotation};
pub(crate) use short_conv::ShortConv;
pub(crate) use streams::{DecoderStreams, LayerStreams};
