//! Servers as data: one by one, or from the usual file with `mcpServers`.

use crate::{Error, Result};
use lm_tools::{Map, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a file of servers.
const MAX_BYTES: u64 = 1 << 20;

/// A server to connect to.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Name of the server, for messages.
    pub name: String,
    /// Text before the names of its tools, followed by `_`; with an empty one the tools keep their names. Default: the server's name.
    pub prefix: String,
    /// The command to start, or the address.
    pub transport: ServerTransport,
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

/// A program to start. It gets the environment of this one, and ends with the connection. `Debug` shows no values of `env`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandConfig {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment, in addition to those of this program.
    pub env: BTreeMap<String, String>,
    /// Its working directory; `None`: that of this program.
    pub cwd: Option<PathBuf>,
}

/// A server that is reached over streamable HTTP. `Debug` shows no values of `headers`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HttpConfig {
    /// Its address, `http://…` or `https://…`.
    pub url: String,
    /// Headers of each request, such as `Authorization`. They are not sent to other hosts.
    pub headers: BTreeMap<String, String>,
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
        f.debug_struct("HttpConfig").field("url", &self.url).field("headers", &headers).finish()
    }
}

impl ServerConfig {
    /// Creates the description of a server that is enabled, with its name before the names of its tools.
    pub fn new(name: impl Into<String>, transport: ServerTransport) -> Self {
        let name = name.into();
        Self { prefix: name.clone(), name, transport, disabled: false }
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

/// The servers of a file, in its order: `{"mcpServers": {"name": {"command", "args", "env", "cwd"} | {"url", "headers"}}}`.
///
/// A server may also have `disabled` and `type` (`stdio`, `http`). Keys that are not known are listed, and have no effect.
///
/// ```
/// use lm_mcp::McpServers;
///
/// let servers: McpServers = r#"{"mcpServers": {
///     "time": {"command": "uvx", "args": ["mcp-server-time"], "autoApprove": []},
///     "search": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer …"}}
/// }}"#.parse()?;
/// assert_eq!(servers.servers[1].name, "search");
/// assert_eq!(servers.unknown_keys, ["mcpServers.time.autoApprove"]);
///
/// let error = r#"{"mcpServers": {"time": {"command": "uvx", "args": [8]}}}"#.parse::<McpServers>().unwrap_err();
/// assert_eq!(error.to_string(), "`mcpServers.time.args[0]`: expected a string, got 8");
/// # Ok::<(), lm_mcp::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpServers {
    /// The servers, those that are disabled included.
    pub servers: Vec<ServerConfig>,
    /// Paths of keys that are not known.
    pub unknown_keys: Vec<String>,
}

impl McpServers {
    /// Reads a file; a byte order mark at its start is skipped.
    ///
    /// # Errors
    /// When it cannot be read, is larger than 1 MiB, or is not of the documented form.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
        read.map_err(|source| Error::ReadFile { path: path.to_owned(), source })?;
        text.strip_prefix('\u{feff}').unwrap_or(&text).parse()
    }

    /// Reads parsed JSON.
    ///
    /// # Errors
    /// When a value has the wrong type, or a server has neither `command` nor `url`, or both.
    pub fn from_json(value: &Value) -> Result<Self> {
        let mut keys = Keys::of(value, String::new())?;
        let missing =
            || Error::MissingConfig { key: "mcpServers".to_owned(), hint: "an object of servers by name" };
        let servers = keys.take("mcpServers").ok_or_else(missing)?;
        let mut read = Self { servers: Vec::new(), unknown_keys: keys.unknown() };
        for (name, server) in object(servers, "mcpServers")? {
            let mut keys = Keys::of(server, format!("mcpServers.{name}"))?;
            read.servers.push(server_config(name, &mut keys)?);
            read.unknown_keys.extend(keys.unknown());
        }
        Ok(read)
    }

    /// Writes the servers in the form that [`from_json`](Self::from_json) reads.
    pub fn to_json(&self) -> Value {
        let servers = self.servers.iter().map(|server| (server.name.clone(), server_json(server)));
        json!({"mcpServers": servers.collect::<Map<_, _>>()})
    }
}

impl std::str::FromStr for McpServers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() as u64 > MAX_BYTES {
            return Err(Error::NotJson { message: format!("there are more than {MAX_BYTES} bytes") });
        }
        let value =
            serde_json::from_str(text).map_err(|error| Error::NotJson { message: error.to_string() })?;
        Self::from_json(&value)
    }
}

impl Serialize for McpServers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for McpServers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn server_config(name: &str, keys: &mut Keys<'_>) -> Result<ServerConfig> {
    let kind = keys.take("type").map(|value| text(value, &keys.path("type"))).transpose()?;
    let disabled = keys.take("disabled").map(|value| boolean(value, &keys.path("disabled"))).transpose()?;
    let command = keys.take("command").map(|value| text(value, &keys.path("command"))).transpose()?;
    let url = keys.take("url").map(|value| text(value, &keys.path("url"))).transpose()?;
    let transport = match (command, url) {
        (Some(command), None) => ServerTransport::Command(command_config(command, keys)?),
        (None, Some(url)) => ServerTransport::Http(http_config(url, keys)?),
        (None, None) => {
            return Err(Error::MissingConfig {
                key: keys.path("command"),
                hint: "a server has `command` or `url`",
            });
        }
        (Some(_), Some(url)) => {
            return Err(invalid(&keys.path("url"), "no `url` beside `command`", &url.into()));
        }
    };
    let expected = match &transport {
        ServerTransport::Command(_) => (&["stdio"][..], "`stdio`, or no type"),
        ServerTransport::Http(_) => (
            &["http", "streamable-http", "streamableHttp"][..],
            "`http`, or no type (servers of the type `sse` are not supported)",
        ),
    };
    match kind {
        Some(kind) if !expected.0.contains(&kind.as_str()) => {
            Err(invalid(&keys.path("type"), expected.1, &kind.into()))
        }
        _ => {
            Ok(ServerConfig { disabled: disabled.unwrap_or_default(), ..ServerConfig::new(name, transport) })
        }
    }
}

fn command_config(command: String, keys: &mut Keys<'_>) -> Result<CommandConfig> {
    if command.is_empty() {
        return Err(invalid(&keys.path("command"), "the name of a program", &command.into()));
    }
    let args = match keys.take("args") {
        None => Vec::new(),
        Some(Value::Array(args)) => {
            let arg = |(index, arg)| text(arg, &format!("{}[{index}]", keys.path("args")));
            args.iter().enumerate().map(arg).collect::<Result<_>>()?
        }
        Some(other) => return Err(invalid(&keys.path("args"), "an array of strings", other)),
    };
    let env = keys.take("env").map(|env| texts(env, &keys.path("env"))).transpose()?.unwrap_or_default();
    let cwd = keys.take("cwd").map(|cwd| text(cwd, &keys.path("cwd"))).transpose()?;
    Ok(CommandConfig { command, args, env, cwd: cwd.map(PathBuf::from) })
}

fn http_config(url: String, keys: &mut Keys<'_>) -> Result<HttpConfig> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(invalid(
            &keys.path("url"),
            "an address that begins with http:// or https://",
            &url.into(),
        ));
    }
    let headers = keys.take("headers").map(|headers| texts(headers, &keys.path("headers"))).transpose()?;
    Ok(HttpConfig { url, headers: headers.unwrap_or_default() })
}

fn server_json(server: &ServerConfig) -> Value {
    let mut json = match &server.transport {
        ServerTransport::Command(CommandConfig { command, args, env, cwd }) => {
            let mut json = json!({"command": command, "args": args, "env": env});
            if let Some(cwd) = cwd {
                json["cwd"] = cwd.to_string_lossy().into();
            }
            json
        }
        ServerTransport::Http(HttpConfig { url, headers }) => json!({"url": url, "headers": headers}),
    };
    if server.disabled {
        json["disabled"] = true.into();
    }
    json
}

/// The keys of an object, taken one by one.
struct Keys<'a> {
    values: Vec<(&'a String, &'a Value)>,
    at: String,
}

impl<'a> Keys<'a> {
    fn of(value: &'a Value, at: String) -> Result<Self> {
        Ok(Self { values: object(value, &at)?.iter().collect(), at })
    }

    /// Takes the value of a key; `null` is no value.
    fn take(&mut self, key: &str) -> Option<&'a Value> {
        let index = self.values.iter().position(|(name, _)| *name == key)?;
        Some(self.values.remove(index).1).filter(|value| !value.is_null())
    }

    fn path(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }

    /// Paths of the keys that nobody took.
    fn unknown(&self) -> Vec<String> {
        self.values.iter().map(|(name, _)| self.path(name)).collect()
    }
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>> {
    let at = if at.is_empty() { "the file" } else { at };
    value.as_object().ok_or_else(|| invalid(at, "an object", value))
}

fn text(value: &Value, at: &str) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| invalid(at, "a string", value))
}

fn boolean(value: &Value, at: &str) -> Result<bool> {
    value.as_bool().ok_or_else(|| invalid(at, "true or false", value))
}

fn texts(value: &Value, at: &str) -> Result<BTreeMap<String, String>> {
    let value = value.as_object().ok_or_else(|| invalid(at, "an object of strings", value))?;
    value.iter().map(|(key, value)| Ok((key.clone(), text(value, &format!("{at}.{key}"))?))).collect()
}

/// Error for a value: a short one is quoted, so that it is found in the file.
fn invalid(key: &str, expected: &'static str, got: &Value) -> Error {
    let got = match got {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string().chars().take(80).collect(),
    };
    Error::InvalidConfig { key: key.to_owned(), expected, got }
}

#[cfg(test)]
mod tests;
