//! HTTP client of a hub: handles redirects itself, so that the token is sent to the hub only, and retries
//! transient failures.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use ureq::http::{self, HeaderMap, StatusCode, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

use crate::settings::{HubSettings, Network, Token};
use crate::{Error, RepoId, Result};

const USER_AGENT: &str = concat!("lm-hub/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 10;
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Time limit of a connection attempt, after which a first request is not repeated.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum characters of a server's message to show.
const MAX_MESSAGE: usize = 300;

/// HTTP client of one hub.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    endpoint: String,
    origin: Origin,
    token: Option<Token>,
    offline: bool,
    pub(crate) retries: u32,
    retry_pause: Duration,
}

/// Subject of a request, for error messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub repo: &'a RepoId,
    pub revision: &'a str,
    /// The file, if the request is about one.
    pub file: Option<&'a str>,
}

/// Redirect policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// Only redirects to the same origin: the response of a redirect elsewhere already describes the file.
    SameOrigin,
    All,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub method: Method,
    /// Path and query, appended to the endpoint.
    pub path: &'a str,
    /// Offset of the first byte to fetch; `None` for the start of the file.
    pub from: Option<u64>,
    pub follow: Follow,
    pub subject: Subject<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
}

/// A response whose status is not an error, with its final URL.
pub(crate) struct Response {
    pub url: String,
    response: http::Response<Body>,
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    authority: String,
}

impl Client {
    pub(crate) fn new(settings: &HubSettings) -> Result<Self> {
        let endpoint = settings.endpoint.trim_end_matches('/').to_owned();
        let origin =
            Origin::of(&endpoint).filter(|_| !endpoint.contains(['?', '#', '@'])).ok_or_else(|| {
                let value = settings.endpoint.clone();
                Error::InvalidSetting {
                    setting: "HF_ENDPOINT",
                    value,
                    expected: "http:// or https:// and a host",
                }
            })?;
        Ok(Self {
            agent: agent(settings),
            endpoint,
            origin,
            token: settings.token.clone(),
            offline: settings.network == Network::Offline,
            retries: settings.retries,
            retry_pause: settings.retry_pause,
        })
    }

    /// Sends a request and follows redirects; transient failures are retried, those of the connection for
    /// [`CONNECT_TIMEOUT`] at most: without a network, a command fails soon.
    pub(crate) fn send(&self, request: &Request<'_>) -> Result<Response> {
        let (mut attempt, start) = (0, Instant::now());
        let in_time = |error: &Error, attempt| {
            let is_answered = matches!(error, Error::Status { .. });
            is_answered || start.elapsed().saturating_add(self.pause_before(attempt)) < CONNECT_TIMEOUT
        };
        loop {
            match self.send_once(request) {
                Err(error) if attempt < self.retries && may_pass(&error) && in_time(&error, attempt) => {
                    tracing::debug!(%error, attempt, "retrying");
                    self.pause(attempt);
                    attempt += 1;
                }
                response => return response,
            }
        }
    }

    /// Waits before a retry.
    pub(crate) fn pause(&self, attempt: u32) {
        thread::sleep(self.pause_before(attempt));
    }

    /// Delay before a retry (exponential backoff).
    fn pause_before(&self, attempt: u32) -> Duration {
        let factor = 1_u32.checked_shl(attempt).unwrap_or(u32::MAX);
        self.retry_pause.saturating_mul(factor).min(MAX_PAUSE)
    }

    /// Sends a request once and follows redirects.
    pub(crate) fn send_once(&self, request: &Request<'_>) -> Result<Response> {
        let mut url = format!("{}{}", self.endpoint, request.path);
        if self.offline {
            return Err(Error::Offline { what: format!("requesting {url}") });
        }
        for _ in 0..MAX_REDIRECTS {
            let response = self.send_hop(&url, request)?;
            let status = response.status();
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                return self.checked(Response { url, response }, request);
            }
            let next = redirect(&url, &response)?;
            if request.follow == Follow::SameOrigin && Origin::of(&next) != Origin::of(&url) {
                return Ok(Response { url, response });
            }
            url = next;
        }
        Err(Error::Protocol { url, what: format!("more than {MAX_REDIRECTS} redirects") })
    }

    fn send_hop(&self, url: &str, request: &Request<'_>) -> Result<http::Response<Body>> {
        let mut builder = match request.method {
            Method::Get => self.agent.get(url),
            Method::Head => self.agent.head(url),
        };
        // Otherwise a server could compress the body, and lengths and ranges would refer to the compressed
        // bytes.
        builder = builder.header("accept-encoding", "identity");
        if let Some(token) = self.token.as_ref().filter(|_| Origin::of(url).as_ref() == Some(&self.origin)) {
            builder = builder.header("authorization", format!("Bearer {}", token.as_str()));
        }
        if let Some(from) = request.from {
            builder = builder.header("range", format!("bytes={from}-"));
        }
        builder.call().map_err(|source| connection(url, source))
    }

    /// Returns the response unless its status is an error.
    fn checked(&self, response: Response, request: &Request<'_>) -> Result<Response> {
        let status = response.response.status();
        if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(response);
        }
        let Subject { repo, revision, file } = request.subject;
        let (token_sent, repo_name) = (self.token.is_some(), repo.to_string());
        let message = response.header("x-error-message").map(|text| plain(&text));
        Err(match (response.header("x-error-code").as_deref(), status.as_u16()) {
            (Some("GatedRepo"), _) => {
                Error::Gated { page: format!("{}/{repo}", self.endpoint), repo: repo_name, token_sent }
            }
            (Some("RevisionNotFound"), _) => {
                Error::NoSuchRevision { repo: repo_name, revision: revision.to_owned() }
            }
            (Some("RepoNotFound"), _) => Error::NoSuchRepo { repo: repo_name, token_sent },
            (_, 401) if token_sent && message.as_ref().is_some_and(|text| text.starts_with("Invalid")) => {
                Error::TokenRefused { repo: repo_name }
            }
            // To unauthorised users the hub gives the same response for private and missing repositories.
            (_, 401) | (None, 404) if file.is_none() => Error::NoSuchRepo { repo: repo_name, token_sent },
            (_, status) => Error::Status { url: response.url, status, message },
        })
    }
}

impl Response {
    /// Value of a header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        text_of(self.response.headers(), name)
    }

    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The body, limited to `limit` bytes.
    pub(crate) fn into_body(self, limit: u64) -> impl Read {
        self.response.into_body().into_with_config().limit(limit).reader()
    }

    /// Creates a protocol error about this response.
    pub(crate) fn fault(&self, what: impl Into<String>) -> Error {
        Error::Protocol { url: self.url.clone(), what: what.into() }
    }
}

impl Origin {
    fn of(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme))?.to_owned();
        let authority = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase())?;
        (!uri.host()?.is_empty()).then_some(Self { scheme, authority })
    }
}

fn agent(settings: &HubSettings) -> Agent {
    // The system's certificates: a company's own certificate authority works as in the browser.
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    let proxy = match settings.network {
        Network::ProxyOfEnvironment => Proxy::try_from_env(),
        Network::Direct | Network::Offline => None,
    };
    let config = Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy)
        .user_agent(USER_AGENT)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_resolve(Some(settings.stall_timeout.min(CONNECT_TIMEOUT)))
        .timeout_connect(Some(settings.stall_timeout.min(CONNECT_TIMEOUT)))
        .timeout_per_read(Some(settings.stall_timeout))
        .timeout_per_write(Some(settings.stall_timeout))
        .build();
    Agent::new_with_config(config)
}

/// Resolves the target of a redirect.
fn redirect(url: &str, response: &http::Response<Body>) -> Result<String> {
    let fault = |what: &str| Error::Protocol { url: url.to_owned(), what: what.to_owned() };
    let location =
        text_of(response.headers(), "location").ok_or_else(|| fault("a redirect without a location"))?;
    let from = Origin::of(url).ok_or_else(|| fault("not a valid URL"))?;
    let next = match location.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => format!("{}:{location}", from.scheme),
        Some(_) => format!("{}://{}{location}", from.scheme, from.authority),
        None => location,
    };
    let to = Origin::of(&next).ok_or_else(|| fault("a redirect to a scheme other than http and https"))?;
    if from.scheme == "https" && to.scheme != "https" {
        return Err(fault("a redirect from https to http"));
    }
    Ok(next)
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Sanitises a server's message for a terminal: short and without control characters.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect()
}

pub(crate) fn connection(url: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Connection { url: url.to_owned(), source: source.into() }
}

/// Returns true for transient errors, after which a retry may succeed.
pub(crate) fn may_pass(error: &Error) -> bool {
    match error {
        Error::Status { status, .. } => [408, 429, 500, 502, 503, 504].contains(status),
        Error::Connection { source, .. } => match source.downcast_ref::<ureq::Error>() {
            Some(ureq::Error::Io(error)) => error.kind() != io::ErrorKind::InvalidInput,
            Some(ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed | ureq::Error::Protocol(_)) => true,
            Some(_) => false,
            None => true,
        },
        _ => false,
    }
}

/// Percent-encodes a path segment or query value: all but letters, digits and `-._~`.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_addresses_are_encoded() {
        assert_eq!(encoded("refs/pr/1 ü"), "refs%2Fpr%2F1%20%C3%BC");
    }

    #[test]
    fn origins_are_scheme_host_and_port() {
        let same = |a: &str, b: &str| Origin::of(a) == Origin::of(b);
        assert!(same("https://Hub.example/a", "https://hub.example/b?c"));
        for other in ["http://hub.example/", "https://hub.example:444/", "https://hub.example.evil/"] {
            assert!(!same("https://hub.example/", other), "{other}");
        }
        for wrong in ["file:///etc/passwd", "hub.example", "http://", "ftp://hub.example/"] {
            assert_eq!(Origin::of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn redirect_never_leaves_tls() {
        let redirection = |location: &str| {
            let response = http::Response::builder().status(302).header("location", location);
            response.body(Body::builder().data("")).expect("a response")
        };
        for (from, location, wanted) in [
            ("https://hub.example/a", "http://hub.example/b", None),
            ("https://hub.example/a", "HTTP://cdn.example/b", None),
            ("https://hub.example/a", "ftp://cdn.example/b", None),
            ("https://hub.example/a", "https://cdn.example/b", Some("https://cdn.example/b")),
            ("https://hub.example/a", "//cdn.example/b", Some("https://cdn.example/b")),
            ("https://hub.example:8443/a", "/b?c", Some("https://hub.example:8443/b?c")),
            ("http://hub.example/a", "http://cdn.example/b", Some("http://cdn.example/b")),
            ("http://hub.example/a", "https://cdn.example/b", Some("https://cdn.example/b")),
        ] {
            let next = redirect(from, &redirection(location));
            assert_eq!(next.as_deref().ok(), wanted, "{from} → {location}: {next:?}");
            assert!(matches!(next, Ok(_) | Err(Error::Protocol { .. })));
        }
    }

    #[test]
    fn endpoints_are_checked() {
        for endpoint in ["", "hub", "ftp://hub", "http://u:p@hub", "http://hub?x"] {
            let settings = HubSettings::new(endpoint, crate::Cache::new("c"));
            assert!(matches!(Client::new(&settings), Err(Error::InvalidSetting { .. })), "{endpoint}");
        }
        for endpoint in ["http://127.0.0.1:8080", "https://hub.example/artifactory/api/huggingfaceml/x/"] {
            Client::new(&HubSettings::new(endpoint, crate::Cache::new("c"))).expect(endpoint);
        }
    }
}
