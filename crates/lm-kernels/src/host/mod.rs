//! CPU kernels on plain slices: packed weights, paged KV cache, a thread pool. No burn here.
//!
//! Each function takes the [`Pool`] whose threads it may use and writes to a slice the caller owns. Results are
//! bit-identical for every number of threads, [`Isa`] and number of rows in the call. Matrices are row-major and
//! contiguous. A slice whose length does not fit its shape is a broken contract between two of our own functions
//! and panics, as does a value of `LM_CPU` that this processor does not support ([`Isa::requested`] reports it).

mod activation;
mod attention;
mod causal_conv;
mod cpu;
mod delta_net;
mod lanes;
pub mod limits;
mod linear;
mod matrix_unit;
mod moe;
mod norm;
mod pack;
mod pages;
mod pool;
mod ragged;
mod rope;
mod short_conv;
mod split;
#[cfg(test)]
pub(crate) mod testing;

pub use activation::{Activation, glu};
pub use attention::{AttentionSpec, attention};
pub use causal_conv::CausalConv;
pub use cpu::Isa;
pub use delta_net::{DeltaNet, DeltaNetRows, DeltaNetSpec, HeadOrder, delta_net};
pub use linear::{Input, Output, gated, linear, linears};
pub use moe::{ExpertBiases, Experts, Routing, moe};
pub use norm::{Norm, rms_norm};
pub use pack::{
    Arena, FloatDtype, GgmlType, PackedMatrix, Packing, Source, StoredBytes, StoredMatrix, WeightFormat,
};
pub use pages::{KvDtype, NO_PAGE, PAGE_LEN, PageId, PagedLayer, StatePages, StateRun};
pub use pool::Pool;
pub use ragged::{RaggedLayout, SequenceLayout};
pub use rope::{RopeAngles, RopeTable, rope};
pub use short_conv::short_conv;
