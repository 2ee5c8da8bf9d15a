//! Limits of connections.

use std::time::Duration;

/// Limits of the connections of an [`Mcp`](crate::Mcp): the servers are untrusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McpLimits {
    /// Time limit of the handshake of a server, and then of the list of its tools. Default 60 s: a
    /// package manager may have to download the server first.
    pub start_timeout: Duration,
    /// Time limit of the question for the protocol's revision ([`Protocol::Auto`](crate::Protocol::Auto)),
    /// after which the connection begins with the handshake: few servers say nothing. Default 1 s. It counts
    /// as time of the handshake.
    pub probe_timeout: Duration,
    /// Time limit of a call, in addition to the limit of the toolset. `None`: none. Default 60 s.
    pub call_timeout: Option<Duration>,
    /// Maximum number of tools of a server; the others are ignored. Default 256.
    pub max_tools: usize,
    /// Maximum bytes of a tool's schema. Default 65,536.
    pub max_schema_bytes: usize,
    /// Maximum levels of a tool's schema. Default 32.
    pub max_schema_depth: usize,
    /// Maximum bytes of a tool's description; a longer one is cut. Default 8,192.
    pub max_description_bytes: usize,
    /// Maximum bytes of a message of a server. A longer one is dropped and fails its request. Default
    /// 16 MiB. (The model reads at most
    /// [`CallLimits::max_result_bytes`](lm_tools::CallLimits::max_result_bytes) of a result.)
    pub max_message_bytes: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(1),
            call_timeout: Some(Duration::from_secs(60)),
            max_tools: 256,
            max_schema_bytes: 1 << 16,
            max_schema_depth: 32,
            max_description_bytes: 1 << 13,
            max_message_bytes: 16 << 20,
        }
    }
}
