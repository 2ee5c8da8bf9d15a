//! Integration tests in one program; those that measure their process are programs of their own.

mod audio;
mod files;
mod golden;
mod headers;
mod hostile;
mod pillow;
mod support;
