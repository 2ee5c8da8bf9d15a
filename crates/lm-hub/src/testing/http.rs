//! Minimal HTTP/1.1 for tests: one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::Fault;

pub(super) struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
}

/// A response.
pub(super) struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The file in the body; only files have ranges and faults.
    pub file: Option<String>,
}

impl Request {
    /// Reads the next request; `None` if the connection is closed before one.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut lines = BufReader::new(stream.take(64 << 10)).lines();
        let Some(first) = lines.next().transpose()? else { return Ok(None) };
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
        let mut headers = Vec::new();
        for line in lines {
            let line = line?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Some(Self { method, path, headers }))
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// The first byte that the `Range` header requests.
    fn from(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

impl Reply {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), file: None }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn write(
        mut self,
        stream: &mut TcpStream,
        request: &Request,
        fault: Option<Fault>,
    ) -> io::Result<()> {
        if let Some(Fault::Status(status)) = fault {
            self = Self::new(status, "not now");
        }
        let from = request.from().filter(|_| self.file.is_some() && fault != Some(Fault::IgnoreRange));
        if let Some(from) = from {
            self = self.part(from + usize::from(fault == Some(Fault::ShiftRange)));
        }
        match fault {
            Some(Fault::WrongByte) => self.body[0] ^= 1,
            Some(Fault::Longer) => self.body.push(0),
            _ => {}
        }
        let length = self.body.len();
        write!(stream, "HTTP/1.1 {} Test\r\ncontent-length: {length}\r\nconnection: close\r\n", self.status)?;
        for (name, value) in &self.headers {
            write!(stream, "{name}: {value}\r\n")?;
        }
        write!(stream, "\r\n")?;
        if request.method == "HEAD" {
            return Ok(());
        }
        match fault {
            Some(Fault::CutAfter(count)) => stream.write_all(&self.body[..count]),
            Some(Fault::StallAfter(count)) => {
                stream.write_all(&self.body[..count])?;
                // Until the client disconnects.
                stream.read(&mut [0]).map(drop)
            }
            _ => stream.write_all(&self.body),
        }
    }

    /// A partial response with the bytes from `from` on.
    fn part(mut self, from: usize) -> Self {
        let whole = self.body.len();
        if from >= whole {
            return Self::new(416, "").with("content-range", format!("bytes */{whole}"));
        }
        self.status = 206;
        self.body.drain(..from);
        self.with("content-range", format!("bytes {from}-{}/{whole}", whole - 1))
    }
}
