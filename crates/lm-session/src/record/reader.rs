//! Reading of records.

use std::io::{BufRead, Read};

use serde::de::DeserializeOwned;

use super::{RecordHeader, RequestRecord};
use crate::error::{Error, Result};

/// Maximum bytes of a line.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Iterator over the requests of a record. It ends with the first unreadable line.
#[derive(Debug)]
pub struct RecordReader<R> {
    /// `None` after an error.
    input: Option<R>,
    header: RecordHeader,
    line: usize,
}

impl<R: BufRead> RecordReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// [`Error::InvalidRecord`] for a file that is not a record, or has a later version; [`Error::Recording`]
    /// when it cannot be read.
    pub fn new(mut input: R) -> Result<Self> {
        let invalid = |message: String| Error::InvalidRecord { line: 1, message };
        let header: Option<RecordHeader> = next_line(&mut input, 1)?;
        let header = header.ok_or_else(|| invalid("the file is empty".to_owned()))?;
        let RecordHeader { format, version, .. } = &header;
        if format != RecordHeader::FORMAT || *version != RecordHeader::VERSION {
            let (name, known) = (RecordHeader::FORMAT, RecordHeader::VERSION);
            return Err(invalid(format!(
                "format `{format}` version {version}, expected `{name}` version {known}"
            )));
        }
        Ok(Self { input: Some(input), header, line: 1 })
    }

    /// The first line.
    pub fn header(&self) -> &RecordHeader {
        &self.header
    }
}

impl<R: BufRead> Iterator for RecordReader<R> {
    type Item = Result<RequestRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        self.line += 1;
        let request = next_line(self.input.as_mut()?, self.line).transpose();
        if !matches!(request, Some(Ok(_))) {
            self.input = None;
        }
        request
    }
}

/// Reads the value of a line; `None` at the end of the input.
fn next_line<T: DeserializeOwned>(input: &mut impl BufRead, line: usize) -> Result<Option<T>> {
    let mut bytes = Vec::new();
    let read = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes).map_err(Error::Recording)?;
    if read == 0 {
        return Ok(None);
    }
    let invalid = |message| Error::InvalidRecord { line, message };
    if read as u64 == MAX_LINE_BYTES && !bytes.ends_with(b"\n") {
        return Err(invalid(format!("the line has more than {MAX_LINE_BYTES} bytes")));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| invalid(error.to_string()))
}
