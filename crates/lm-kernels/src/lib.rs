#![doc = include_str!("../README.md")]
#![allow(unsafe_code)]
// Batches are lists of row ranges, in tests often with a single one.
#![allow(clippy::single_range_in_vec_init)]

#[cfg(feature = "burn")]
mod cache_layout;
mod device;
mod error;
pub mod host;
mod mapped_file;
#[cfg(feature = "burn")]
mod ops;

#[cfg(feature = "burn")]
pub use cache_layout::{CacheGroup, CacheLayout, KvGeometry, LayerCache, Retention};
pub use device::Device;
pub use error::{Error, Result};
pub use host::{
    Activation, Arena, AttentionSpec, CausalConv, DeltaNet, DeltaNetSpec, FloatDtype, GgmlType, HeadOrder,
    Importance, Isa, KvDtype, Mamba2, Mamba2Spec, NO_PAGE, PAGE_LEN, PackedMatrix, Packing, PageId,
    PagedLayer, Pool, PoolTurn, PrefetchPlan, RaggedLayout, RopeAngles, RopePairing, RopeTable, Routing,
    SequenceLayout, Source, StatePages, StateRun, StoredBytes, StoredMatrix, WeightFormat,
};
pub use mapped_file::MappedFile;
#[cfg(feature = "burn")]
pub use ops::{
    ALL as ALL_OPS, Experts, InputSum, InputSums, KvPool, Op, Weight, attention, attention_shared,
    batched_linear, delta_net, embedding, from_host, gated, glu, layer_norm, linear, linear_add, linear_bias,
    mamba2, moe, qkv, rms_norm, rope, segment_attention, short_conv, to_host,
};
