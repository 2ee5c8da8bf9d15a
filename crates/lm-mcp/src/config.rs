//! Servers as data: one by one, or from a file with `mcpServers`.

mod file;
mod keys;
#[cfg(test)]
mod tests;

pub use file::McpServers;
pub use keys::UnknownKey;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A server to connect to.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Name of the server, for messages.
    pub name: String,
    /// Text before the names of its tools, followed by `_`; with an empty one the tools keep their names.
    /// Default: the server's name.
    pub prefix: String,
    /// The command to start, or the address.
    pub transport: ServerTransport,
    /// The revision of the protocol. Default: found out.
    pub protocol: Protocol,
    /// A disabled server is not started. Default false.
    pub disabled: bool,
}

/// Connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTransport {
    /// A program that reads from standard input and writes to standard output.
    Command(CommandConfig),
    /// A server that is reached over streamable HTTP.
    Http(HttpConfig),
}

/// Revision of the protocol to speak with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// 2026-07-28 if the server knows it, by its answer to `server/discover`, and otherwise the handshake. A
    /// server that ignores this gets the handshake when it answers a `ping`, or after
    /// [`McpLimits::probe_timeout`](crate::McpLimits::probe_timeout). The answer is remembered for restarts
    /// and new connections of the same [`Mcp`](crate::Mcp).
    #[default]
    Auto,
    /// 2026-07-28, which has no handshake: each request is complete.
    V2026_07_28,
    /// The handshake `initialize`, with the revisions up to 2025-11-25.
    V2025_11_25,
}

/// The revisions by their names in files.
const PROTOCOLS: [(&str, Protocol); 3] =
    [("auto", Protocol::Auto), ("2026-07-28", Protocol::V2026_07_28), ("2025-11-25", Protocol::V2025_11_25)];

/// A program to start, which ends with the connection. `Debug` shows no values of `env`.
///
/// From the environment of this program it inherits only variables without secrets: of the search for
/// programs (`PATH`), of the user (`HOME`, `USER`, `LOGNAME`, `SHELL`), of the terminal and language (`TERM`,
/// `LANG`, `LANGUAGE`, `LC_*`, `TZ`), of temporary files (`TMPDIR`, `TMP`, `TEMP`), of certificates
/// (`SSL_CERT_FILE`, `SSL_CERT_DIR`) and of proxies without a password (`HTTP_PROXY`, `HTTPS_PROXY`,
/// `ALL_PROXY`, `NO_PROXY`); on Windows also those of the system's folders.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandConfig {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Further variables of its environment, such as a key that it needs.
    pub env: BTreeMap<String, String>,
    /// Its working directory; `None`: the directory of this program.
    pub cwd: Option<PathBuf>,
}

/// A server that is reached over streamable HTTP. `Debug` shows no values of `headers`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HttpConfig {
    /// Its address, `http://…` or `https://…`.
    pub url: String,
    /// Headers of each request, such as `Authorization`. They are not sent to other hosts. With an
    /// `Authorization` header the tokens of a [`Login`](crate::Login) are not used.
    pub headers: BTreeMap<String, String>,
    /// Settings of a [`Login`](crate::Login) at the server. Default: none, which suffices for servers that
    /// register their clients.
    pub oauth: OAuthConfig,
}

/// Settings of a [`Login`](crate::Login). `Debug` does not show `client_secret`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthConfig {
    /// Id of this client at the authorization server. Default: the program registers itself there.
    pub client_id: Option<String>,
    /// Secret of the client with this id, if it has one.
    pub client_secret: Option<String>,
    /// Scopes to ask for. Default: those that the server names.
    pub scopes: Vec<String>,
    /// Port of `http://127.0.0.1:PORT/callback`, for clients that are registered with that address. Default:
    /// a free one.
    pub callback_port: Option<u16>,
}

impl fmt::Debug for CommandConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, args, env, cwd } = self;
        let env: Vec<_> = env.keys().collect();
        let mut shown = f.debug_struct("CommandConfig");
        shown.field("command", command).field("args", args).field("env", &env).field("cwd", cwd).finish()
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().collect();
        let Self { url, oauth, .. } = self;
        let mut shown = f.debug_struct("HttpConfig");
        shown.field("url", url).field("headers", &headers).field("oauth", oauth).finish()
    }
}

impl fmt::Debug for OAuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client_id, client_secret, scopes, callback_port } = self;
        f.debug_struct("OAuthConfig")
            .field("client_id", client_id)
            .field("has_client_secret", &client_secret.is_some())
            .field("scopes", scopes)
            .field("callback_port", callback_port)
            .finish()
    }
}

impl ServerConfig {
    /// Creates the description of a server that is enabled, with its name before the names of its tools.
    pub fn new(name: impl Into<String>, transport: ServerTransport) -> Self {
        let name = name.into();
        Self { prefix: name.clone(), name, transport, protocol: Protocol::Auto, disabled: false }
    }

    /// Creates the description of a server that is started as a program.
    pub fn command<A: Into<String>>(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        let command = CommandConfig { command: command.into(), args, ..CommandConfig::default() };
        Self::new(name, ServerTransport::Command(command))
    }

    /// Creates the description of a server with an address.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, ServerTransport::Http(HttpConfig { url: url.into(), ..HttpConfig::default() }))
    }
}
