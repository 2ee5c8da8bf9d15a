//! File of servers as Claude Desktop, Claude Code and Cursor write it: an object with `mcpServers`.

use super::keys::{Keys, UnknownKey, boolean, invalid, list_of_texts, object, port, text, texts};
use super::{CommandConfig, HttpConfig, OAuthConfig, PROTOCOLS, Protocol, ServerConfig, ServerTransport};
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
/// `{"mcpServers": {"name": {"command", "args", "env", "cwd"} | {"url", "headers", "oauth"}}}`.
///
/// A server may also have `disabled`, `type` (`stdio`, `http`) and `protocol` (`auto`, `2026-07-28`,
/// `2025-11-25`; see [`Protocol`](crate::Protocol)); `oauth` has `clientId`, `clientSecret`,
/// `scopes` and `callbackPort`, as [`OAuthConfig`]. Unknown keys are listed and have no effect.
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
            let (server, unknown) = server_config(name, &mut keys)?;
            read.servers.push(server);
            read.unknown_keys.extend(keys.unknown().into_iter().chain(unknown));
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

/// Reads a server, and the unknown keys of its parts.
fn server_config(name: &str, keys: &mut Keys<'_>) -> Result<(ServerConfig, Vec<UnknownKey>)> {
    let mut unknown = Vec::new();
    let kind = keys.take("type").map(|value| text(value, &keys.path("type"))).transpose()?;
    let disabled = keys.take("disabled").map(|value| boolean(value, &keys.path("disabled"))).transpose()?;
    let protocol = keys.take("protocol").map(|value| protocol(value, &keys.path("protocol"))).transpose()?;
    let command = keys.take("command").map(|value| text(value, &keys.path("command"))).transpose()?;
    let url = keys.take("url").map(|value| text(value, &keys.path("url"))).transpose()?;
    let transport = match (command, url) {
        (Some(command), None) => ServerTransport::Command(command_config(command, keys)?),
        (None, Some(url)) => ServerTransport::Http(http_config(url, keys, &mut unknown)?),
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
            let disabled = disabled.unwrap_or_default();
            let protocol = protocol.unwrap_or_default();
            Ok((ServerConfig { protocol, disabled, ..ServerConfig::new(name, transport) }, unknown))
        }
    }
}

fn protocol(value: &Value, at: &str) -> Result<Protocol> {
    let named = PROTOCOLS.into_iter().find(|(name, _)| value == name);
    let (_, protocol) = named.ok_or_else(|| invalid(at, "`auto`, `2026-07-28` or `2025-11-25`", value))?;
    Ok(protocol)
}

fn command_config(command: String, keys: &mut Keys<'_>) -> Result<CommandConfig> {
    if command.is_empty() {
        return Err(invalid(&keys.path("command"), "the name of a program", &command.into()));
    }
    let args = keys.take("args").map(|args| list_of_texts(args, &keys.path("args"))).transpose()?;
    let env = keys.take("env").map(|env| texts(env, &keys.path("env"))).transpose()?.unwrap_or_default();
    let cwd = keys.take("cwd").map(|cwd| text(cwd, &keys.path("cwd"))).transpose()?;
    Ok(CommandConfig { command, args: args.unwrap_or_default(), env, cwd: cwd.map(PathBuf::from) })
}

fn http_config(url: String, keys: &mut Keys<'_>, unknown: &mut Vec<UnknownKey>) -> Result<HttpConfig> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(invalid(
            &keys.path("url"),
            "an address that begins with http:// or https://",
            &url.into(),
        ));
    }
    let headers = keys.take("headers").map(|headers| texts(headers, &keys.path("headers"))).transpose()?;
    let mut oauth = OAuthConfig::default();
    if let Some(settings) = keys.take("oauth") {
        let mut keys = Keys::of(settings, keys.path("oauth"))?;
        oauth = oauth_config(&mut keys)?;
        unknown.extend(keys.unknown());
    }
    Ok(HttpConfig { url, headers: headers.unwrap_or_default(), oauth })
}

fn oauth_config(keys: &mut Keys<'_>) -> Result<OAuthConfig> {
    let client_id = keys.take("clientId").map(|id| text(id, &keys.path("clientId"))).transpose()?;
    let secret = keys.take("clientSecret").map(|secret| text(secret, &keys.path("clientSecret")));
    let client_secret = secret.transpose()?;
    let scopes = keys.take("scopes").map(|scopes| list_of_texts(scopes, &keys.path("scopes"))).transpose()?;
    let callback_port = keys.take("callbackPort").map(|value| port(value, &keys.path("callbackPort")));
    let callback_port = callback_port.transpose()?;
    if client_secret.is_some() && client_id.is_none() {
        return Err(keys.missing("clientId", "the client that `clientSecret` belongs to"));
    }
    Ok(OAuthConfig { client_id, client_secret, scopes: scopes.unwrap_or_default(), callback_port })
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
        ServerTransport::Http(HttpConfig { url, headers, oauth }) => {
            let mut json = json!({"url": url, "headers": headers});
            if *oauth != OAuthConfig::default() {
                json["oauth"] = oauth_json(oauth);
            }
            json
        }
    };
    let named = PROTOCOLS.into_iter().find(|(_, protocol)| *protocol == server.protocol);
    if let Some((name, _)) = named.filter(|_| server.protocol != Protocol::Auto) {
        json["protocol"] = name.into();
    }
    if server.disabled {
        json["disabled"] = true.into();
    }
    json
}

fn oauth_json(oauth: &OAuthConfig) -> Value {
    let OAuthConfig { client_id, client_secret, scopes, callback_port } = oauth;
    let members = [
        ("clientId", client_id.as_ref().map(|id| json!(id))),
        ("clientSecret", client_secret.as_ref().map(|secret| json!(secret))),
        ("scopes", (!scopes.is_empty()).then(|| json!(scopes))),
        ("callbackPort", callback_port.map(|port| json!(port))),
    ];
    let set = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(set.collect())
}
