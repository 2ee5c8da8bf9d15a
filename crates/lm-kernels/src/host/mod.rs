//! CPU kernels on plain slices: packed weights, paged KV cache, a thread pool. No burn here.
//!
//! Each function takes the [`Pool`] whose threads it may use and writes to a slice the caller owns. Results
//! are bit-identical for every number of threads, [`Isa`] and number of rows in the call. Matrices are
//! row-major and contiguous. A slice whose length does not fit its shape is a broken contract between two of
//! our own functions and panics, as does a value of `LM_CPU` that this processor does not support
//! ([`Isa::requested`] reports it).
//!
//! # Terms
//! - *Lane*: one of the 16 elements of a vector, whatever the width of the processor's registers.
//! - *Line*: 64 bytes, four for each lane: a cache line, and the unit in which packed weights are loaded.
//! - *Tile*: 16 consecutive rows of a weight, packed together; row `i` is lane `i`. Linear layers compute two
//!   tiles at a time, a *pair*.
//! - *Block*: columns of a row that share a floating-point scale; its *groups* of 32 columns may have integer
//!   scales.
//! - *Span*: 256 columns of one row of activations, quantised to bytes, with their scales and sums.
//! - *Panel*: 256 columns of a tile, expanded to bytes for the loops that multiply many rows.
//! - *Page*: [`PAGE_LEN`] consecutive positions of a sequence in the KV cache.

mod activation;
mod attention;
mod causal_conv;
mod cpu;
mod delta_net;
mod isa;
mod lanes;
pub mod limits;
mod linear;
mod mamba2;
mod matrix_unit;
mod moe;
mod norm;
mod pack;
mod page_id;
mod pages;
mod pool;
mod prefetch_plan;
mod processor;
pub mod profile;
mod ragged;
mod rope;
mod short_conv;
mod split;
#[cfg(test)]
pub(crate) mod testing;
mod time_step;

pub use activation::{Activation, glu};
pub use attention::{AttentionSpec, attention};
pub use causal_conv::CausalConv;
pub use delta_net::{DeltaNet, DeltaNetRows, DeltaNetSpec, HeadOrder, delta_net};
pub use isa::Isa;
pub use linear::{Input, Output, Then, batched_linear, gated, linear, linears};
pub use mamba2::{Mamba2, Mamba2Spec, mamba2};
pub use moe::{ExpertBiases, Experts, Routing, moe};
pub use norm::{LayerNorm, Norm, layer_norm, rms_norm};
pub use pack::{
    Arena, FloatDtype, GgmlType, Importance, PackedMatrix, Packing, Source, StoredBytes, StoredMatrix,
    WeightFormat,
};
pub use page_id::{NO_PAGE, PAGE_LEN, PageId};
pub use pages::{KvDtype, PagedLayer, StatePages, StateRun};
pub use pool::{Pool, PoolTurn};
pub use prefetch_plan::PrefetchPlan;
pub use processor::processor_name;
pub use ragged::{RaggedLayout, SequenceLayout};
pub use rope::{RopeAngles, RopePairing, RopeTable, rope};
pub use short_conv::short_conv;
