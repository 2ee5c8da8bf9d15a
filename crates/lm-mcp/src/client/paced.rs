//! A transport that is read only as fast as its messages are handled.

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of answers that a server requests but does not read; then the connection ends.
const MAX_ANSWERS: usize = 1024;
/// Time that a transport has to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A transport whose messages rmcp handles in a task for each. A server that never stops sending would fill
/// the memory with such tasks, without a pause between its messages, or with answers that it does not read.
pub(super) struct Paced<T> {
    transport: T,
    /// Each answer that is being sent holds a clone.
    answers: Arc<()>,
    /// True after the last read. Messages that are being sent are then dropped: rmcp waits for them before it
    /// ends the connection.
    ended: watch::Sender<bool>,
}

impl<T> Paced<T> {
    pub fn new(transport: T) -> Self {
        Self { transport, answers: Arc::new(()), ended: watch::Sender::new(false) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Paced<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let answer = is_answer.then(|| self.answers.clone());
        let (sent, mut ended) = (self.transport.send(message), self.ended.subscribe());
        async move {
            let _answer = answer;
            tokio::select! {
                result = sent => result,
                _ = ended.wait_for(|ended| *ended) => Ok(()),
            }
        }
    }

    /// Reads the next message, after the tasks of those before it have run. Dropping the future loses no
    /// message.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if Arc::strong_count(&self.answers) > MAX_ANSWERS {
            tracing::error!("an MCP server does not take the answers to its requests: the connection ends");
            self.ended.send_replace(true);
            return None;
        }
        tokio::task::yield_now().await;
        self.transport.receive().await
    }

    /// Closes the transport, which waits for its task: one that hands over a message waits for a reader until
    /// the transport is dropped.
    async fn close(&mut self) -> Result<(), Self::Error> {
        tokio::time::timeout(CLOSE_TIMEOUT, self.transport.close()).await.unwrap_or(Ok(()))
    }
}
