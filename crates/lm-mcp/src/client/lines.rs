//! Transport of messages in lines. An answer that cannot be read ends its request, which would wait for it
//! until its time limit.

use super::envelope::{self, Envelope};
use rmcp::RoleClient;
use rmcp::model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::collections::{HashSet, VecDeque};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty};

/// Bytes at the start and at the end of a line that is too long, in which its id is looked for.
const EDGE_BYTES: usize = 512;

type Received = RxJsonRpcMessage<RoleClient>;

/// A stream of messages, each a line of JSON. Lines that are no messages, such as a log on standard output,
/// have no effect.
pub(super) struct Lines<R, W: AsyncWrite> {
    read: BufReader<R>,
    line: Line,
    /// Writes only.
    write: AsyncRwTransport<RoleClient, Empty, W>,
    /// Requests without an answer.
    waiting: HashSet<RequestId>,
    /// Errors in place of answers that cannot be read.
    failures: VecDeque<Received>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub fn new(read: R, write: W, max_bytes: usize) -> Self {
        Self {
            read: BufReader::new(read),
            line: Line { max_bytes, ..Line::default() },
            write: AsyncRwTransport::new(tokio::io::empty(), write),
            waiting: HashSet::new(),
            failures: VecDeque::new(),
        }
    }

    /// Reads to the end of a line; `None` at the end of the stream. Dropping the future loses no bytes.
    async fn line(&mut self) -> Option<Line> {
        loop {
            let available = match self.read.fill_buf().await {
                Ok([]) => return None,
                Ok(available) => available,
                Err(error) => {
                    tracing::error!(%error, "the output of an MCP server cannot be read");
                    return None;
                }
            };
            let end = available.iter().position(|&byte| byte == b'\n');
            self.line.push(&available[..end.unwrap_or(available.len())]);
            let read = end.map_or(available.len(), |end| end + 1);
            self.read.consume(read);
            if end.is_some() {
                return Some(self.line.take());
            }
        }
    }

    /// The message of a line. One that cannot be read becomes failures, if it was an answer.
    fn message(&mut self, line: &Line) -> Option<Received> {
        let (envelope, problem) = match line.read() {
            Ok(message) => return Some(message),
            Err(failed) => failed,
        };
        let failed: Vec<RequestId> = match envelope {
            Envelope { is_answer: false, .. } => Vec::new(),
            Envelope { id: Some(id), .. } => self.waiting.take(&id).into_iter().collect(),
            Envelope { id: None, .. } => self.waiting.drain().collect(),
        };
        if failed.is_empty() {
            tracing::debug!(problem, "a line of an MCP server is no message");
            return None;
        }
        tracing::warn!(problem, requests = failed.len(), "an answer of an MCP server is discarded");
        let error = ErrorData::parse_error(format!("its answer {problem}, so the result is lost"), None);
        self.failures.extend(failed.into_iter().map(|id| Received::error(error.clone(), Some(id))));
        None
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &message {
            JsonRpcMessage::Request(request) => {
                self.waiting.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.waiting.remove(id);
                }
            }
            _ => {}
        }
        self.write.send(message)
    }

    async fn receive(&mut self) -> Option<Received> {
        loop {
            if let Some(failure) = self.failures.pop_front() {
                return Some(failure);
            }
            let line = self.line().await?;
            let Some(message) = self.message(&line) else { continue };
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                _ => None,
            };
            if let Some(id) = answered {
                self.waiting.remove(id);
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.close().await
    }
}

/// A line, of which only the edges are kept when it is too long.
#[derive(Default)]
struct Line {
    max_bytes: usize,
    /// The line, or its start.
    bytes: Vec<u8>,
    /// Its end, if it is too long.
    end: Option<Vec<u8>>,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        if self.end.is_none() && self.bytes.len() + bytes.len() > self.max_bytes {
            self.end = Some(self.bytes[self.bytes.len().saturating_sub(EDGE_BYTES)..].to_vec());
            self.bytes.extend(&bytes[..bytes.len().min(EDGE_BYTES)]);
            self.bytes.truncate(EDGE_BYTES);
            self.bytes.shrink_to_fit();
        }
        match &mut self.end {
            None => self.bytes.extend(bytes),
            Some(end) => {
                end.extend(bytes);
                end.drain(..end.len().saturating_sub(EDGE_BYTES));
            }
        }
    }

    fn take(&mut self) -> Self {
        let Self { max_bytes, bytes, end } = self;
        Self { max_bytes: *max_bytes, bytes: std::mem::take(bytes), end: end.take() }
    }

    /// Reads the message. An error is the readable part of it, and the problem.
    fn read(&self) -> Result<Received, (Envelope, String)> {
        if let Some(end) = &self.end {
            return Err((
                Envelope::of_edges(&self.bytes, end),
                format!("has more than {} bytes", self.max_bytes),
            ));
        }
        let line = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes);
        let read = serde_json::from_slice(line).or_else(|error| {
            let mended = envelope::mended(line).and_then(|line| serde_json::from_str(&line).ok());
            mended.ok_or(error)
        });
        read.map_err(|error| {
            let kind = if error.is_data() { "a message" } else { "valid JSON" };
            let mut envelope = Envelope::of_line(line);
            // A whole line without an id answers nothing.
            envelope.is_answer &= envelope.id.is_some() || !error.is_data();
            (envelope, format!("is not {kind} ({error})"))
        })
    }
}
