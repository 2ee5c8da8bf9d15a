//! Integration tests in one program.

mod capabilities;
mod folders;
mod messages;
mod order_polyfills;
mod orders;
mod pocket;
mod polyfills;
mod result_media;
#[path = "../../../testdata/shared.rs"]
mod shared;
mod templates;
