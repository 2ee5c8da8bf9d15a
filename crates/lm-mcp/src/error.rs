//! Error types of this crate.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a connection, of a file of servers or of serving. A failed call is not such an error: it is a
/// [`ToolError`](lm_tools::ToolError), which the model reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of servers cannot be read.
    #[error("the file of MCP servers `{}` cannot be read", path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of servers does not have the documented form.
    #[error("the file of MCP servers `{}` cannot be used", path.display())]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<Error>,
    },
    /// The description of servers is not JSON.
    #[error(
        "invalid JSON at line {line}, column {column}: {message}; expected {{\"mcpServers\": {{\"NAME\": {{…}}}}}}"
    )]
    InvalidJson {
        /// Line of the error, from 1.
        line: usize,
        /// Column of the error, from 1, in bytes; 0 is the end of the line before.
        column: usize,
        /// Description of the error.
        message: String,
    },
    /// The description of servers is too large.
    #[error("there are more than {max_bytes} bytes")]
    TooLarge {
        /// Maximum size.
        max_bytes: u64,
    },
    /// A value of a file of servers has the wrong type or form.
    #[error("`{key}`: expected {expected}, got {got}")]
    InvalidConfig {
        /// Path of the key, such as `mcpServers.files.args[1]`.
        key: String,
        /// Description of what is possible.
        expected: &'static str,
        /// The value, or its type.
        got: String,
    },
    /// A required key is missing.
    #[error("`{key}` is missing: expected {expected}{}", found_keys(found))]
    MissingConfig {
        /// Path of the key.
        key: String,
        /// Description of what is needed.
        expected: &'static str,
        /// Unknown keys at its place, the first ones.
        found: Vec<String>,
    },
    /// Two servers have the same name, or the same name after cleaning.
    #[error("there are two MCP servers named `{name}`; names keep only letters, digits, `_` and `-`")]
    DuplicateServer {
        /// The common name.
        name: String,
    },
    /// The program of a server cannot be started.
    #[error("MCP server `{server}`: `{command}` cannot be started")]
    Start {
        /// The server's name.
        server: String,
        /// The program.
        command: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The program of a server ended before it answered the handshake.
    #[error("MCP server `{server}`: the program ended at the start ({status}){output}")]
    Ended {
        /// The server's name.
        server: String,
        /// Its exit status, such as `exit status: 1`.
        status: String,
        /// Last line of its error output, if any.
        output: String,
    },
    /// A server did not complete the handshake and the list of its tools in time.
    #[error("MCP server `{server}`: not ready after {} s{output}", timeout.as_secs_f32())]
    StartTimeout {
        /// The server's name.
        server: String,
        /// The time limit, [`McpLimits::start_timeout`](crate::McpLimits::start_timeout).
        timeout: Duration,
        /// Last line of the server's error output, if any.
        output: String,
    },
    /// The handshake failed, or the tools could not be listed.
    #[error("MCP server `{server}`: {message}{output}")]
    Connect {
        /// The server's name.
        server: String,
        /// Description of the problem.
        message: String,
        /// Last line of the server's error output, if any.
        output: String,
    },
    /// A server over HTTP answered 401: it needs a [`Login`](crate::Login), or refuses its tokens or the
    /// `Authorization` header of its configuration.
    #[error(
        "MCP server `{server}`: {url} {} (HTTP 401)",
        if *token_sent { "refuses the token" } else { "needs a login" }
    )]
    Unauthorized {
        /// The server's name.
        server: String,
        /// Its address without the query.
        url: String,
        /// True if it was sent a token.
        token_sent: bool,
    },
    /// A login failed.
    #[error("the login failed: {message}")]
    Login {
        /// Description of the problem.
        message: String,
    },
    /// The authorization server does not register clients, and the configuration names none.
    #[error("the login needs a `client_id`: {issuer} does not register clients")]
    NoRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// The user or the authorization server refused a login.
    #[error("the login was refused: {error}{}", described(description.as_deref()))]
    LoginRefused {
        /// The code of RFC 6749, such as `access_denied`.
        error: String,
        /// Description by the server.
        description: Option<String>,
    },
    /// A login took too long.
    #[error("the login was not finished within {} s", timeout.as_secs_f32())]
    LoginTimeout {
        /// The time limit, [`Login::timeout`](crate::Login::timeout).
        timeout: Duration,
    },
    /// An address cannot be used for a login.
    #[error("`{url}`: {message}")]
    InvalidUrl {
        /// The address.
        url: String,
        /// Description of the problem.
        message: String,
    },
    /// The tokens of a login cannot be used.
    #[error("the login at {url} cannot be used: {message}")]
    UnusableToken {
        /// Address of the server.
        url: String,
        /// Description of the problem.
        message: String,
    },
    /// The file of tokens cannot be read or written.
    #[error("the file of tokens `{}` cannot be used", path.display())]
    TokenStore {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Tools of two servers have the same name, after it was cleaned and cut to 64 characters, and after the
    /// server's name was put before it.
    #[error("tool `{tool}` of MCP server `{server}` and {other} are both called `{name}`; rename the server")]
    DuplicateTool {
        /// The common name.
        name: String,
        /// Name of the tool at its server.
        tool: String,
        /// The server.
        server: String,
        /// The other tool.
        other: String,
    },
    /// A request for a resource or a prompt failed.
    #[error("{message}")]
    Request {
        /// Description of the problem, with the server's name.
        message: String,
    },
    /// No server offers resources.
    #[error("no MCP server has the resource `{uri}`: none has resources")]
    NoResource {
        /// The address that was asked for.
        uri: String,
    },
    /// No server, or more than one, has a prompt of this name.
    #[error("{}", prompt_of(name, several))]
    NoPrompt {
        /// The name that was asked for.
        name: String,
        /// The names with their servers, if several have it.
        several: Vec<String>,
    },
    /// An argument that a prompt needs is missing.
    #[error("the prompt `{prompt}` needs the argument `{argument}`")]
    MissingArgument {
        /// Name of the prompt.
        prompt: String,
        /// Name of the argument.
        argument: String,
    },
    /// No runtime for connections can be made.
    #[error("the runtime of MCP connections cannot be started")]
    Runtime(#[source] std::io::Error),
    /// No TLS connections can be made.
    #[error("the TLS connection cannot be set up")]
    Tls(#[source] rustls::Error),
    /// An address cannot be listened on.
    #[error("{addr} cannot be listened on")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// An address that other hosts can reach, without the list of served hosts.
    #[error("{addr} can be reached by other machines: name the hosts that clients use to reach it")]
    OpenAddress {
        /// The address.
        addr: SocketAddr,
    },
    /// Standard input ended before a client started the handshake.
    #[error("standard input ended before a client sent `initialize`")]
    NoClient,
    /// The server of tools failed.
    #[error("the MCP server failed: {message}")]
    Serve {
        /// Description of the problem.
        message: String,
    },
}

/// The end of a message: the available keys.
fn found_keys(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(", found `{}`", found.join("`, `")) }
}

/// The end of a message: a description.
fn described(description: Option<&str>) -> String {
    description.map_or_else(String::new, |text| format!(": {text}"))
}

fn prompt_of(name: &str, several: &[String]) -> String {
    match several.is_empty() {
        true => format!("no MCP server has a prompt `{name}`"),
        false => {
            format!("several MCP servers have a prompt `{name}`: expected one of {}", several.join(", "))
        }
    }
}
