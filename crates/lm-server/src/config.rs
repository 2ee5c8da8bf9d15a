//! Configuration of a server.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use lm_api::Limits;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::downloads::ServedDownloads;
use crate::start_error::{Error, Result};
use crate::tools::ServedTools;

/// Configuration of a [`Server`](crate::Server): address, access, and the limits of requests.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; port 0 picks a free one. Default 127.0.0.1:8080.
    pub addr: SocketAddr,
    /// Keys; each request needs one of them. Default: none, every request is accepted.
    pub keys: ApiKeys,
    /// Permits an address that other machines can reach without a key. Default false.
    pub insecure: bool,
    /// Host names of this server for its clients, such as `llm.example.com`, in addition to `localhost` and
    /// IP addresses, which are always accepted. Requests for other names are refused: a web page whose name
    /// is made to resolve to this machine (DNS rebinding) sends its own.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the server, such as `https://chat.example.com`, in addition to those
    /// of this machine. `*` is all.
    pub allowed_origins: Vec<String>,
    /// Number of requests that the engines run at the same time, for `/props` and `/slots`. Default 64, as
    /// `EngineSettings::max_running_requests`.
    pub parallel: usize,
    /// Tools that the server runs for its clients. Default: none.
    pub tools: ServedTools,
    /// Store of the conversations of the page, each key's own; without keys those of [`Owner::local`], which
    /// everybody who reaches the server then sees. Default: none, and the page keeps them in the browser.
    ///
    /// [`Owner::local`]: lm_store::Owner::local
    pub store: Option<Arc<lm_store::Store>>,
    /// Reader of the files that people add to messages in the page. Default: in this process; a
    /// [`Reader::isolated`](lm_documents::Reader::isolated) bounds memory and time of PDF files.
    pub documents: lm_documents::Reader,
    /// Downloads of models by clients. Default: none.
    pub downloads: Option<ServedDownloads>,
    /// Presets that the page offers. Default: none.
    pub presets: Vec<Preset>,
    /// Limits of connections and requests.
    pub limits: ServerLimits,
}

/// Settings of conversations under a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preset {
    /// Name in the page's menu.
    pub name: String,
    /// Values by the names of the options of `lm chat`: `system`, `temperature`, `top-p`, `stop`, …; the page
    /// ignores those it does not have.
    pub options: Map<String, Value>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            addr: (Ipv4Addr::LOCALHOST, 8080).into(),
            keys: ApiKeys::default(),
            insecure: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            parallel: 64,
            tools: ServedTools::default(),
            store: None,
            documents: lm_documents::Reader::in_process(),
            downloads: None,
            presets: Vec::new(),
            limits: ServerLimits::default(),
        }
    }
}

impl ServerConfig {
    /// Checks that a public address is protected; [`Server::bind`](crate::Server::bind) does so too.
    ///
    /// # Errors
    /// [`Error::OpenAddress`].
    pub fn check(&self) -> Result<()> {
        let is_open = !self.addr.ip().is_loopback() && self.keys.is_empty() && !self.insecure;
        if is_open { Err(Error::OpenAddress { addr: self.addr }) } else { Ok(()) }
    }
}

/// Limits of connections and requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum size of a request's body, in bytes; a larger one is answered with 413. Default 16 MiB.
    pub body_bytes: usize,
    /// Maximum time for a request's body to arrive; a slower one is answered with 408. Default 30 s.
    pub body_time: Duration,
    /// Maximum time for the headers of the next request on a connection, including an idle one, which is then
    /// closed: longer than proxies keep idle connections, 50 s in `deploy/nginx`. Default 60 s.
    pub header_time: Duration,
    /// Maximum time for a client to take a piece of a response that waits to be sent; then its connection is
    /// closed. Default 60 s.
    pub write_time: Duration,
    /// Maximum number of connections; further ones wait to be accepted. Default 512.
    pub connections: usize,
    /// Maximum number of requests that are being prepared (prompt and grammar), each on its own thread, and
    /// of running calls of the server's tools; further ones are answered with 429. Default 64.
    pub preparing: usize,
    /// Maximum time of a request, from its arrival to the end of its answer. Default 1 h.
    pub request_time: Duration,
    /// Maximum time that running requests have to end after a shutdown has started; then they are cancelled.
    /// Default 30 s.
    pub shutdown_time: Duration,
    /// Interval of the comments, in Anthropic's API of the events `ping`, that keep a silent stream open.
    /// Default 15 s.
    pub keep_alive: Duration,
    /// Limits of the fields of a request.
    pub request: Limits,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            body_time: Duration::from_secs(30),
            header_time: Duration::from_secs(60),
            write_time: Duration::from_secs(60),
            connections: 512,
            preparing: 64,
            request_time: Duration::from_secs(60 * 60),
            shutdown_time: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            request: Limits::default(),
        }
    }
}

/// API keys. They are kept and compared as SHA-256 digests, and never shown.
#[derive(Clone, Default)]
pub struct ApiKeys(Vec<[u8; 32]>);

impl ApiKeys {
    /// Creates a set of keys.
    ///
    /// ```
    /// use lm_server::ApiKeys;
    ///
    /// let keys = ApiKeys::new(["one", "another"])?;
    /// assert!(keys.accept(b"another") && !keys.accept(b"ano"));
    /// # Ok::<(), lm_server::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidKey`].
    pub fn new<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Result<Self> {
        let digest = |(index, key): (usize, K)| {
            let bytes = key.as_ref().as_bytes();
            let is_valid = (1..=512).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
            if is_valid {
                Ok(Sha256::digest(bytes).into())
            } else {
                Err(Error::InvalidKey { number: index + 1 })
            }
        };
        keys.into_iter().enumerate().map(digest).collect::<Result<_>>().map(Self)
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `key` is one of the keys, in constant time.
    pub fn accept(&self, key: &[u8]) -> bool {
        let digest: [u8; 32] = Sha256::digest(key).into();
        self.0.iter().fold(Choice::from(0), |found, known| found | known.ct_eq(&digest)).into()
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKeys({} keys)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_address_needs_a_key() {
        let with = |addr: &str, keys: &[&str], insecure| {
            let keys = ApiKeys::new(keys).expect("valid keys");
            let addr = addr.parse().expect("an address");
            ServerConfig { addr, keys, insecure, ..ServerConfig::default() }.check().is_ok()
        };
        assert!(with("127.0.0.1:0", &[], false) && with("[::1]:0", &[], false));
        assert!(!with("0.0.0.0:0", &[], false) && !with("192.168.0.1:0", &[], false));
        assert!(with("0.0.0.0:0", &["key"], false) && with("0.0.0.0:0", &[], true));
    }

    #[test]
    fn keys_invalid_in_headers_are_rejected_and_hidden() {
        for (keys, number) in [(vec![""], 1), (vec!["key", "a b"], 2), (vec!["key", "key", "schlüssel"], 3)]
        {
            let error = ApiKeys::new(keys).expect_err("is invalid");
            assert!(matches!(error, Error::InvalidKey { number: at } if at == number), "{error}");
        }
        let keys = ApiKeys::new(["secret"]).expect("valid");
        assert_eq!(format!("{keys:?}"), "ApiKeys(1 keys)");
        assert!(!keys.accept(b"") && !keys.accept(b"secret ") && keys.accept(b"secret"));
    }
}
