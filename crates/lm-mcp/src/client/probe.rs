//! A transport whose question for the revision of the protocol has a time limit.

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcResponse, PingRequest,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time for an answer after that to a later `ping`.
const GRACE: Duration = Duration::from_millis(250);
/// Id of that `ping`.
const PING: &str = "ping";

/// A transport that answers `server/discover` itself, as a server that does not know it, if the server says
/// nothing: some ignore requests before the handshake, and rmcp waits 10 s for them. A `ping` behind it,
/// which the handshake need not precede, shows soon that a server ignores it; the limit is for those that
/// ignore both. The handshake follows on the same connection, and an answer that comes after all is dropped.
/// If it shows that the server has the revision, and the handshake fails, the transport is in the [`Rescue`].
pub(super) struct Probe<T> {
    /// `None` after the drop.
    transport: Option<T>,
    /// `None`: none, and no `ping`.
    limit: Option<Duration>,
    asked: Option<Asked>,
    /// The `ping` has no answer yet.
    is_pinged: bool,
    /// A late answer has shown that the server has the revision without a handshake.
    knows: bool,
    rescue: Rescue<T>,
}

/// The transport of a server that answered late and refused the handshake.
pub(super) struct Rescue<T>(Arc<Mutex<Option<T>>>);

impl<T> Rescue<T> {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    /// Takes the transport, after the drop of the probe.
    pub fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// The question that has no answer yet.
struct Asked {
    id: RequestId,
    until: Instant,
    /// The transport has answered it.
    is_late: bool,
}

impl<T> Probe<T> {
    pub fn new(transport: T, limit: Option<Duration>, rescue: &Rescue<T>) -> Self {
        let rescue = Rescue(rescue.0.clone());
        Self { transport: Some(transport), limit, asked: None, is_pinged: false, knows: false, rescue }
    }

    fn transport(&mut self) -> &mut T {
        self.transport.as_mut().expect("it is there until the drop")
    }

    /// The end of the wait for an answer.
    fn until(&self) -> Option<Instant> {
        self.asked.as_ref().filter(|asked| !asked.is_late).map(|asked| asked.until)
    }

    /// The answer in place of the server's.
    fn late(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let asked = self.asked.as_mut()?;
        asked.is_late = true;
        let error =
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer to the question for the revision", None);
        Some(JsonRpcMessage::Error(JsonRpcError::new(Some(asked.id.clone()), error)))
    }

    /// Returns true for an answer that shows that the server has no such revision: an error, a list of other
    /// revisions, or a result of another kind, from a server that takes the question for the handshake.
    fn is_refusal(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let (id, knows) = match message {
            JsonRpcMessage::Response(JsonRpcResponse {
                id,
                result: ServerResult::DiscoverResult(found),
                ..
            }) => (id, found.supported_versions.contains(&ProtocolVersion::V_2026_07_28)),
            JsonRpcMessage::Response(JsonRpcResponse { id, .. }) => (id, false),
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => (id, false),
            _ => return false,
        };
        let is_waiting = self.asked.as_ref().is_some_and(|asked| *id == asked.id && !asked.is_late);
        is_waiting && !knows
    }

    /// Returns true for an answer that rmcp does not wait for: one that is late, or that to the `ping`.
    fn drops(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let (id, is_known) = match message {
            JsonRpcMessage::Response(JsonRpcResponse { id, result, .. }) => {
                (id, matches!(result, ServerResult::DiscoverResult(_)))
            }
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => (id, false),
            _ => return false,
        };
        if self.is_pinged && *id == RequestId::String(PING.into()) {
            self.is_pinged = false;
            if let Some(asked) = &mut self.asked {
                asked.until = asked.until.min(Instant::now() + GRACE);
            }
            return true;
        }
        let Some(asked) = self.asked.take_if(|asked| *id == asked.id) else { return false };
        self.knows |= asked.is_late && is_known;
        asked.is_late
    }
}

impl<T> Drop for Probe<T> {
    fn drop(&mut self) {
        if self.knows {
            *self.rescue.0.lock().unwrap_or_else(PoisonError::into_inner) = self.transport.take();
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let mut ping = None;
        if let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
            && let Some(limit) = self.limit
        {
            let (id, until) = (request.id.clone(), Instant::now() + limit);
            self.asked = Some(Asked { id, until, is_late: false });
            self.is_pinged = true;
            let request = ClientRequest::PingRequest(PingRequest::default());
            ping = Some(JsonRpcMessage::request(request, RequestId::String(PING.into())));
        }
        // Boxed, since otherwise the first of them borrows the transport.
        let sent: Sending<T::Error> = Box::pin(self.transport().send(message));
        let ping: Option<Sending<T::Error>> = ping.map(|ping| Box::pin(self.transport().send(ping)) as _);
        async move {
            sent.await?;
            match ping {
                Some(ping) => ping.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let received = match self.until() {
                None => self.transport().receive().await,
                Some(until) => match tokio::time::timeout_at(until, self.transport().receive()).await {
                    Ok(received) => received,
                    Err(_) => return self.late(),
                },
            };
            match received {
                Some(message) if self.is_refusal(&message) => return self.late(),
                Some(message) if self.drops(&message) => {}
                received => return received,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport().close().await
    }
}
