//! Child process that reads one PDF file.

use std::io::{self, Read, Write};

use crate::document::Document;

/// Reads a PDF file from `input`, and writes its text or the error to `output`: the whole life of a process
/// that [`Reader::isolated`](crate::Reader::isolated) starts. On Unix the process has at most
/// 1 GiB of memory and 30 seconds of processor time from then on.
///
/// # Errors
/// When the input cannot be read or the output not be written.
pub fn run_child(input: impl Read, mut output: impl Write) -> io::Result<()> {
    limit()?;
    let mut bytes = Vec::new();
    input.take(Document::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    serde_json::to_writer(&mut output, &Document::read(&bytes))?;
    output.flush()
}

/// Memory of the child, in bytes.
pub(crate) const MEMORY: u64 = 1 << 30;
/// Processor time of the child, in seconds; its parent waits as long.
pub(crate) const SECONDS: u64 = 30;

#[cfg(unix)]
fn limit() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (resource, most) in [(Resource::As, MEMORY), (Resource::Cpu, SECONDS), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn limit() -> io::Result<()> {
    Ok(())
}
