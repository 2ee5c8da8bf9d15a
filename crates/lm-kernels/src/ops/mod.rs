//! The kernels as operations on burn tensors, one file per operation.
//!
//! An operation has a public function (shape checks, docs), a portable body in plain burn tensor operations
//! that runs on every device and is the reference in tests, and a trait whose method is what a backend runs:
//! the slice kernel of [`host`](crate::host) on tensors in host memory, the portable body elsewhere.

// burn-ndarray is deprecated upstream and kept here behind its feature.
#![cfg_attr(feature = "ndarray", allow(deprecated))]

mod attention;
mod backend;
mod batched_linear;
mod bias;
mod buffer_pool;
mod delta_net;
mod device;
mod embedding;
mod gated;
mod glu;
mod host_tensor;
mod input_sums;
mod kv_pool;
mod layer_norm;
mod linear;
mod linear_add;
mod linear_bias;
mod mamba2;
mod moe;
mod qkv;
mod rms_norm;
mod rope;
mod segment_attention;
mod short_conv;
mod states;
#[cfg(test)]
mod tests;
mod transfer;
mod weight;

pub use attention::{attention, attention_shared};
pub use batched_linear::batched_linear;
pub use delta_net::delta_net;
pub use embedding::embedding;
pub use gated::gated;
pub use glu::glu;
pub use input_sums::{InputSum, InputSums};
pub use kv_pool::KvPool;
pub use layer_norm::layer_norm;
pub use linear::linear;
pub use linear_add::linear_add;
pub use linear_bias::linear_bias;
pub use mamba2::mamba2;
pub use moe::{Experts, moe};
pub use qkv::qkv;
pub use rms_norm::rms_norm;
pub use rope::rope;
pub use segment_attention::segment_attention;
pub use short_conv::short_conv;
pub use transfer::{from_host, to_host};
pub use weight::Weight;

/// An entry of the registry of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// Name of the public function and of its file.
    pub name: &'static str,
    /// One-line summary of its computation.
    pub summary: &'static str,
}

/// Every operation, in alphabetical order. The conformance test has a check for each entry.
pub const ALL: &[&Op] = &[
    &attention::OP,
    &batched_linear::OP,
    &delta_net::OP,
    &embedding::OP,
    &gated::OP,
    &glu::OP,
    &layer_norm::OP,
    &linear::OP,
    &linear_add::OP,
    &linear_bias::OP,
    &mamba2::OP,
    &moe::OP,
    &qkv::OP,
    &rms_norm::OP,
    &rope::OP,
    &segment_attention::OP,
    &short_conv::OP,
];
