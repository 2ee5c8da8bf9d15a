//! Chat templates against the reference renderings, and the origin of each piece of a prompt.

mod engine_alone;
mod goldens;
mod segments;
