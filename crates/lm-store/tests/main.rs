//! Integration tests of the store.

mod crashes;
mod full_disk;
mod imports;
mod search;
mod store;
mod support;
mod versions;
mod writers;
