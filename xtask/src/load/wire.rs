//! HTTP/1.1 over a connection that is kept open, with as little work as possible: it runs on the machine it
//! measures.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Longest wait for bytes of the server.
const PATIENCE: Duration = Duration::from_secs(300);

/// Connection to a server.
pub struct Connection {
    addr: String,
    stream: BufReader<TcpStream>,
    line: String,
}

/// Status and headers of a response.
#[derive(Debug, Default)]
pub struct Head {
    pub status: u16,
    /// Seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    length: usize,
}

impl Connection {
    pub fn open(addr: &str) -> Result<Self> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { addr: addr.to_owned(), stream: BufReader::new(stream), line: String::new() })
    }

    pub fn get(&mut self, path: &str) -> Result<Head> {
        self.send("GET", path, "")?;
        self.head()
    }

    /// Posts a body, and reads the head of the response.
    pub fn post(&mut self, path: &str, body: &str) -> Result<Head> {
        self.send("POST", path, body)?;
        self.head()
    }

    pub fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let (addr, length) = (&self.addr, body.len());
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\nContent-Length: {length}\r\n\r\n{body}");
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    fn head(&mut self) -> Result<Head> {
        self.read_line()?;
        let status = self.line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut head = Head { status: status.context("a response without a status")?, ..Head::default() };
        loop {
            self.read_line()?;
            let Some((name, value)) = self.line.split_once(':') else { return Ok(head) };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "retry-after" => head.retry_after = value.parse().ok(),
                "content-length" => head.length = value.parse()?,
                _ => {}
            }
        }
    }

    /// Reads a body that has a length.
    pub fn body(&mut self, head: &Head) -> Result<String> {
        let mut bytes = vec![0; head.length];
        self.stream.read_exact(&mut bytes)?;
        Ok(String::from_utf8(bytes)?)
    }

    /// Reads the data of the next event of a stream; `None` at its end.
    pub fn event(&mut self) -> Result<Option<&str>> {
        loop {
            self.read_line()?;
            if self.line.starts_with("data: ") {
                return Ok(self.line.strip_prefix("data: "));
            }
            // The last chunk is empty. Events and sizes of other chunks are never this line.
            if self.line == "0" {
                self.read_line()?;
                return Ok(None);
            }
        }
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8> {
        let mut byte = [0];
        self.stream.get_mut().read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        ensure!(self.stream.read_line(&mut self.line)? > 0, "the server closed the connection");
        self.line.truncate(self.line.trim_end().len());
        Ok(())
    }
}
