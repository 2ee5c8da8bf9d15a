//! The KV cache: pages of the pool, tables of sessions, and shared prefixes.

mod caches;
mod capacity;
mod page_allocator;
mod page_table;
mod prefix_tree;

pub(crate) use caches::{KvCaches, Shortage};
pub(crate) use capacity::Capacity;
