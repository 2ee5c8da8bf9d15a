//! The KV cache: pages of the pool, the tables of sessions, and the prefixes that they share.

mod caches;
mod capacity;
mod page_allocator;
mod page_table;
mod prefix_tree;

pub(crate) use caches::{KvCaches, Shortage};
pub(crate) use capacity::Capacity;
