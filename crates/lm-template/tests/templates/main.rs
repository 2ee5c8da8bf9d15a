//! Chat templates against the reference renderings, and where the text of a prompt came from.

mod engine_alone;
mod expressions;
mod goldens;
mod limits;
mod segments;
mod shared;
