//! The login of a user at a server.

use super::entry::{Entry, configured, endpoints};
use super::http::{self, OAuthHttp};
use super::redirect::{Answer, Redirect};
use super::store::TokenStore;
use crate::config::{HttpConfig, OAuthConfig};
use crate::http_client;
use crate::runtime::AnyRuntime;
use crate::{Error, Result};
use reqwest::Url;
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, CredentialStore, InMemoryCredentialStore, OAuthClientConfig,
};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

/// Maximum length of a text of the authorization server in an error.
const MAX_SHOWN_CHARS: usize = 300;

/// A login at a server that asks for one (HTTP 401): OAuth with an authorization code and PKCE.
///
/// The authorization server is the one that the server names. A browser has to open an address there, and
/// brings the user's answer back to a port of this machine, 127.0.0.1. The tokens go into a [`TokenStore`];
/// connections with that store send them to the server, and refresh them when they expire
/// ([`McpBuilder::tokens`](crate::McpBuilder::tokens)).
///
/// ```no_run
/// use lm_mcp::{HttpConfig, Login, Mcp, ServerConfig, TokenStore};
///
/// let tokens = TokenStore::file("mcp-tokens.json");
/// let url = "https://example.com/mcp";
/// Login::new(HttpConfig { url: url.to_owned(), ..HttpConfig::default() })
///     .run(&tokens, |address| println!("open {address}"))?;
/// let mcp = Mcp::builder().server(ServerConfig::http("example", url)).tokens(&tokens).connect()?;
/// # Ok::<(), lm_mcp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Login {
    config: HttpConfig,
    timeout: Duration,
}

impl Login {
    /// Describes the login at a server, with the settings of [`HttpConfig::oauth`].
    pub fn new(config: HttpConfig) -> Self {
        Self { config, timeout: Duration::from_secs(300) }
    }

    /// Sets the time limit of the whole login. Default 300 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Logs in, and waits on this thread: `show` gets the address that the user has to open in a browser.
    ///
    /// On a tokio runtime use [`run_async`](Self::run_async): this blocks the thread.
    ///
    /// # Errors
    /// When the server or an address that it names is not encrypted (`https`) and not on this machine, the
    /// server names no authorization server, that one does not register clients and the configuration has no
    /// `client_id`, the user refuses, the time limit is reached, or the tokens cannot be kept.
    pub fn run(self, tokens: &TokenStore, show: impl FnOnce(&str) + Send + 'static) -> Result<()> {
        let tokens = tokens.clone();
        let runtime = AnyRuntime::start()?;
        let login = runtime.wait(async move { self.run_async(&tokens, show).await });
        login.unwrap_or_else(|| Err(Error::Runtime(std::io::Error::other("it ended during the login"))))
    }

    /// [`run`](Self::run) that does not block. Dropping the future ends the login.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_async(self, tokens: &TokenStore, show: impl FnOnce(&str)) -> Result<()> {
        let timeout = self.timeout;
        let login = tokio::time::timeout(timeout, self.log_in(tokens, show));
        login.await.unwrap_or(Err(Error::LoginTimeout { timeout }))
    }

    async fn log_in(self, tokens: &TokenStore, show: impl FnOnce(&str)) -> Result<()> {
        let server = server_url(&self.config.url)?;
        // Before the user is asked: the tokens can be kept.
        drop(tokens.lock().await?);
        tokens.read()?;
        let (mut manager, metadata) = discovered(&server).await?;
        let port = self.config.oauth.callback_port;
        let redirect = Redirect::listen(port).await.map_err(|source| Error::Listen {
            addr: (std::net::Ipv4Addr::LOCALHOST, port.unwrap_or(0)).into(),
            source,
        })?;
        let scopes = match self.config.oauth.scopes.as_slice() {
            [] => manager.select_initial_scopes(&[]).await,
            scopes => scopes.to_vec(),
        };
        if self.config.oauth.client_id.is_none() && metadata.registration_endpoint.is_none() {
            let issuer = shown(metadata.issuer.as_ref().unwrap_or(&metadata.token_endpoint));
            return Err(Error::NoRegistration { issuer });
        }
        let client = client(&mut manager, &self.config.oauth, &redirect.url, &scopes).await?;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let address = manager.get_authorization_url(&scopes).await.map_err(failed)?;
        let address = Url::parse(&address).map_err(failed)?;
        let (state, resource) = (parameter(&address, "state")?, parameter(&address, "resource")?);
        show(address.as_str());
        let answer = redirect.answer(state.clone()).await.map_err(failed)?;
        let login = Finished { manager, metadata, client, resource };
        tokens.insert(&server, login.entry(answer, &state).await?).await
    }
}

/// The address of a server without the parts that are not of the resource.
fn server_url(text: &str) -> Result<Url> {
    let invalid = |url: String, message: String| Error::InvalidUrl { url, message };
    let mut url = Url::parse(text).map_err(|error| invalid(text.to_owned(), error.to_string()))?;
    url.set_query(None);
    url.set_fragment(None);
    let _ = (url.set_username(""), url.set_password(None)); // An address of HTTP can have both.
    http::check(&url, &url).map_err(|_| {
        invalid(http_client::shown(&url), "it is not encrypted: expected an https:// address".to_owned())
    })?;
    Ok(url)
}

/// The manager of a login, with the endpoints of the authorization server that the server names.
async fn discovered(server: &Url) -> Result<(AuthorizationManager, AuthorizationMetadata)> {
    let http = Arc::new(OAuthHttp::of(server));
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(server.as_str(), http).await.map_err(because)?;
    let found = manager.resolve_metadata().await.map_err(because)?;
    if !found.source.is_discovered() {
        return Err(failed("it names no authorization server (no metadata of OAuth)"));
    }
    for endpoint in [&found.metadata.authorization_endpoint, &found.metadata.token_endpoint] {
        let endpoint =
            Url::parse(endpoint).map_err(|error| failed(format!("`{}`: {error}", shown(endpoint))))?;
        http::check(&endpoint, server).map_err(failed)?;
    }
    manager.set_metadata(found.metadata.clone());
    Ok((manager, found.metadata))
}

/// The client of the configuration, or one that is registered now.
async fn client(
    manager: &mut AuthorizationManager,
    config: &OAuthConfig,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<OAuthClientConfig> {
    if let Some(client) = configured(config, redirect_uri, scopes.to_vec()) {
        manager.configure_client(client.clone()).map_err(failed)?;
        return Ok(client);
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    manager.register_client("lm", redirect_uri, &scopes).await.map_err(because)
}

/// Value of a parameter of the address for the browser.
fn parameter(address: &Url, name: &str) -> Result<String> {
    let mut pairs = address.query_pairs();
    let value = pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()));
    value.ok_or_else(|| failed(format!("the address for the browser has no `{name}`")))
}

/// A login whose answer has come.
struct Finished {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    client: OAuthClientConfig,
    resource: String,
}

impl Finished {
    /// Exchanges the code of the answer for tokens.
    async fn entry(mut self, answer: Answer, state: &str) -> Result<Entry> {
        let (code, issuer) = match answer {
            Answer::Code { code, issuer } => (code, issuer),
            Answer::Refused { error, description } => {
                let description = description.as_deref().map(shown);
                return Err(Error::LoginRefused { error: shown(&error), description });
            }
        };
        let kept = InMemoryCredentialStore::new();
        self.manager.set_credential_store(kept.clone());
        let exchange = self.manager.exchange_code_for_token_with_issuer(&code, state, issuer.as_deref());
        // rmcp writes the code to its log.
        exchange.with_subscriber(NoSubscriber::new()).await.map_err(failed)?;
        let credentials = kept.load().await.map_err(failed)?.ok_or_else(|| failed("there are no tokens"))?;
        Ok(Entry {
            resource: self.resource,
            redirect_uri: self.client.redirect_uri,
            client_secret: self.client.client_secret,
            metadata: endpoints(self.metadata),
            credentials,
        })
    }
}

fn failed(error: impl Display) -> Error {
    Error::Login { message: shown(&error.to_string()) }
}

/// [`failed`] with the causes of the error.
fn because(error: impl std::error::Error) -> Error {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let texts = std::iter::once(error.to_string()).chain(causes.map(ToString::to_string));
    failed(texts.collect::<Vec<_>>().join(": "))
}

/// A text of another program in an error: the beginning, on one line.
fn shown(text: &str) -> String {
    let one_line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    one_line.take(MAX_SHOWN_CHARS).collect()
}
