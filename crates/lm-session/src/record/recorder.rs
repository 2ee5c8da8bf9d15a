//! Writing of records.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lm_tokenizer::TokenId;
use serde::Serialize;

use super::{RecordHeader, RecordedEnd, RequestRecord};
use crate::error::{Error, Result};
use crate::event::Finished;

/// Writer of a record; clones share it.
#[derive(Clone)]
pub(crate) struct Recorder {
    out: Arc<Mutex<Box<dyn Write + Send>>>,
}

/// Record of a running request.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Recorder,
    request: RequestRecord,
    written: bool,
}

impl Recorder {
    /// Creates a recorder and writes the first line.
    pub fn new(out: Box<dyn Write + Send>, header: &RecordHeader) -> Result<Self> {
        let recorder = Self { out: Arc::new(Mutex::new(out)) };
        recorder.write(header)?;
        Ok(recorder)
    }

    /// Starts the record of a request, without tokens.
    pub fn begin(&self, request: RequestRecord) -> Recording {
        Recording { recorder: self.clone(), request, written: false }
    }

    /// Writes a line as a whole.
    fn write(&self, value: &impl Serialize) -> Result<()> {
        let line = || -> io::Result<()> {
            let mut line = serde_json::to_vec(value)?;
            line.push(b'\n');
            let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
            out.write_all(&line)?;
            out.flush()
        };
        line().map_err(Error::Recording)
    }
}

impl Recording {
    /// Records a token of the output.
    pub fn token(&mut self, id: TokenId) {
        self.request.tokens.push(id);
    }

    /// Writes the record of an ended request.
    pub fn finish(&mut self, finished: &Finished) -> Result<()> {
        self.end(RecordedEnd::from(&finished.reason))
    }

    /// Writes the record of a failed request.
    pub fn fail(&mut self, error: &Error) -> Result<()> {
        self.end(RecordedEnd::Error(error.to_string()))
    }

    fn end(&mut self, end: RecordedEnd) -> Result<()> {
        self.written = true;
        self.request.end = end;
        self.recorder.write(&self.request)
    }
}

impl Drop for Recording {
    /// Writes the record of a request whose reader was dropped.
    fn drop(&mut self) {
        if !self.written
            && let Err(error) = self.end(RecordedEnd::Caller)
        {
            tracing::error!(%error, "a request that was dropped is missing in the record");
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}
