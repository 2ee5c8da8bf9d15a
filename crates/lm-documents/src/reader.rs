//! Reading of files, in this process or in another one.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::child::{MEMORY, SECONDS};
use crate::document::{Document, is_pdf};
use crate::error::{Error, Result};

/// Reader of files from strangers: PDF files, which can be made to take any memory and time, are read by a
/// process of their own.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Program and arguments of the process.
    child: Option<(PathBuf, Vec<OsString>)>,
}

impl Reader {
    /// Creates a reader that reads everything in this process.
    pub fn in_process() -> Self {
        Self::default()
    }

    /// Creates a reader that runs `program` with `arguments` for each PDF file; the program calls
    /// [`run_child`](crate::run_child) with its standard input and output. It is ended after 30 seconds.
    pub fn isolated(program: PathBuf, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self { child: Some((program, arguments.into_iter().collect())) }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// When the file is too large or has no text; when its text takes too much time or memory.
    pub fn read(&self, bytes: Vec<u8>) -> Result<Document> {
        match &self.child {
            Some((program, arguments)) if is_pdf(&bytes) => {
                let mut command = Command::new(program);
                command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
                let child = command.spawn().map_err(|error| failed(&program.display(), &error))?;
                read_by(child, bytes)
            }
            _ => Document::read(&bytes),
        }
    }
}

fn failed(what: &dyn std::fmt::Display, error: &dyn std::fmt::Display) -> Error {
    Error::Unreadable(format!("{what}: {error}"))
}

/// Has a process read a file.
fn read_by(mut child: Child, bytes: Vec<u8>) -> Result<Document> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (sender, answer) = mpsc::channel();
    thread::spawn(move || {
        // A child that ends early closes the pipe.
        let _ = input.map(|mut input| input.write_all(&bytes));
    });
    thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.map_or(Ok(0), |mut output| output.read_to_end(&mut text));
        let _ = sender.send(read.map(|_| text));
    });
    let text = answer.recv_timeout(Duration::from_secs(SECONDS));
    let _ = child.kill();
    let _ = child.wait();
    match text {
        Err(_) => Err(Error::Unreadable(format!("that takes longer than {SECONDS} s"))),
        Ok(Err(error)) => Err(failed(&"its reader", &error)),
        Ok(Ok(text)) => serde_json::from_slice(&text).unwrap_or_else(|_| {
            let memory = MEMORY >> 20;
            Err(Error::Unreadable(format!("its reader failed; it may need more than {memory} MiB")))
        }),
    }
}
