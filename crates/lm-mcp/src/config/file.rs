//! File of servers as Claude Desktop, Claude Code and Cursor write it: an object with `mcpServers`.

use super::keys::{Keys, UnknownKey, boolean, invalid, object, text, texts};
use super::{CommandConfig, HttpConfig, ServerConfig, ServerTransport};
use crate::{Error, Result};
use lm_tools::{Map, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a file.
const MAX_BYTES: u64 = 1 << 20;

/// The servers of a file, in its order:
/// `{"mcpServers": {"name": {"command", "args", "env", "cwd"} | {"url", "headers"}}}`.
///
/// A server may also have `disabled` and `type` (`stdio`, `http`). Unknown keys are listed and have no
/// effect.
///
/// ```
/// use lm_mcp::McpServers;
///
/// let servers: McpServers = r#"{"mcpServers": {
///     "time": {"command": "uvx", "args": ["mcp-server-time"], "autoApprove": []},
///     "search": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer …"}}
/// }}"#.parse()?;
/// assert_eq!(servers.servers[1].name, "search");
/// assert_eq!(servers.unknown_keys[0].path, "mcpServers.time.autoApprove");
///
/// let error = r#"{"mcpServers": {"time": {"command": "uvx", "args": [8]}}}"#.parse::<McpServers>().unwrap_err();
/// assert_eq!(error.to_string(), "`mcpServers.time.args[0]`: expected a string, got 8");
/// # Ok::<(), lm_mcp::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpServers {
    /// The servers, including disabled ones.
    pub servers: Vec<ServerConfig>,
    /// Keys that are not known.
    pub unknown_keys: Vec<UnknownKey>,
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
        let servers = text.strip_prefix('\u{feff}').unwrap_or(&text).parse();
        servers.map_err(|source| Error::InvalidFile { path: path.to_owned(), source: Box::new(source) })
    }

    /// Reads parsed JSON.
    ///
    /// # Errors
    /// When a value has the wrong type, or a server has neither `command` nor `url`, or both.
    pub fn from_json(value: &Value) -> Result<Self> {
        let mut keys = Keys::of(value, String::new())?;
        let servers = keys.take("mcpServers");
        let servers = servers.ok_or_else(|| keys.missing("mcpServers", "an object of servers by name"))?;
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
            return Err(Error::TooLarge { max_bytes: MAX_BYTES });
        }
        Self::from_json(&serde_json::from_str(text).map_err(|error| not_json(&error))?)
    }
}

fn not_json(error: &serde_json::Error) -> Error {
    let (line, column, message) = (error.line(), error.column(), error.to_string());
    let place = format!(" at line {line} column {column}");
    let message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
    Error::InvalidJson { line, column, message }
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
        (None, None) => return Err(keys.missing("command", "`command` or `url`")),
        (Some(_), Some(_)) => return Err(keys.contradiction("either `command` or `url`")),
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
