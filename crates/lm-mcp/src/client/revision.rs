//! The revision of the protocol that a connection speaks.

use crate::config::Protocol;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientLifecycleMode, Subscription};
use rmcp::{Peer, RoleClient, ServiceError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Delays before a lost subscription is made again, in order; the last one is repeated.
const DELAYS: [u64; 4] = [1, 5, 30, 60];

/// The revision of a server, which is remembered for its next connections.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    configured: Protocol,
    spoken: Arc<Mutex<Option<Protocol>>>,
}

impl Revision {
    pub fn new(configured: Protocol) -> Self {
        Self { configured, spoken: Arc::default() }
    }

    /// The revision to begin with.
    pub fn first(&self) -> Protocol {
        match self.configured {
            Protocol::Auto => self.spoken().unwrap_or_default(),
            configured => configured,
        }
    }

    /// Remembers the revision of a connection; a failed one may have another revision now.
    pub fn remember(&self, peer: Option<&Peer<RoleClient>>) {
        let version = peer.and_then(Peer::peer_info).map(|info| info.protocol_version.clone());
        *self.lock() = version.map(|version| match version.has_initialize() {
            true => Protocol::V2025_11_25,
            false => Protocol::V2026_07_28,
        });
    }

    fn spoken(&self) -> Option<Protocol> {
        *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Protocol>> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of a connection in rmcp's words.
pub(super) fn lifecycle(protocol: Protocol) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match protocol {
        Protocol::Auto => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        Protocol::V2026_07_28 => ClientLifecycleMode::Discover { preferred_versions },
        Protocol::V2025_11_25 => ClientLifecycleMode::Initialize,
    }
}

/// Returns true if a server sends changes of its tools only to those that ask for them.
pub(super) fn is_asked_for_changes(peer: &Peer<RoleClient>) -> bool {
    let info = peer.peer_info().filter(|info| !info.protocol_version.has_initialize());
    info.and_then(|info| info.capabilities.tools.as_ref()?.list_changed).unwrap_or_default()
}

/// Asks for changes of the tools, until the connection ends or the server has none to tell. A subscription
/// that was lost is made again, and the tools may have changed meanwhile.
pub(super) async fn ask_for_changes(server: Arc<str>, peer: Peer<RoleClient>, changed: Arc<Notify>) {
    for attempt in 0.. {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(changes) if changes.acknowledged().tools_list_changed == Some(true) => {
                if attempt > 0 {
                    changed.notify_one();
                }
                forward(&server, changes, &changed).await;
            }
            Ok(_) => return,
            Err(error) => {
                tracing::info!(server = &*server, %error, "changes of the tools are not told");
                if matches!(error, ServiceError::McpError(_)) {
                    return;
                }
            }
        }
        let delay = DELAYS[attempt.min(DELAYS.len() - 1)];
        tokio::time::sleep(Duration::from_secs(delay)).await;
        if peer.is_transport_closed() {
            return;
        }
    }
}

async fn forward(server: &str, mut changes: Subscription, changed: &Notify) {
    while let Ok(Some(_)) = changes.next().await {
        tracing::info!(server, "the tools have changed");
        changed.notify_one();
    }
}
