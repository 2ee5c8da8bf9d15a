//! Integration tests in one binary; tests that measure their process have their own binaries.

mod audio;
mod files;
mod golden;
mod headers;
mod hostile;
mod pillow;
mod support;
