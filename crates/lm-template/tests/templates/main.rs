//! Chat templates against the reference renderings, and where the text of a prompt came from.

mod goldens;
mod segments;
mod shared;
