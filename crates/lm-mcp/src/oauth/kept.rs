//! Requests with the tokens of a login, which are refreshed when they have expired.

use super::entry::{Entry, key};
use super::http::OAuthHttp;
use super::store::TokenStore;
use crate::{Error, Result};
use async_trait::async_trait;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use std::sync::Arc;

/// A client whose requests to a server have the token of its login. With an `Authorization` header of the
/// configuration, or without a login, they have no token; true is returned for a token.
///
/// # Errors
/// When the tokens cannot be read.
pub(crate) async fn authorized(
    client: reqwest::Client,
    url: &Url,
    tokens: &TokenStore,
    has_header: bool,
) -> Result<(AuthClient<reqwest::Client>, bool)> {
    let entry = if has_header { None } else { tokens.read()?.remove(&key(url)) };
    let kept = Kept { tokens: tokens.clone(), key: entry.is_some().then(|| key(url)) };
    let has_token = kept.key.is_some();
    let manager = manager(url, entry, kept)
        .await
        .map_err(|error| Error::UnusableToken { url: key(url), message: error.to_string() })?;
    Ok((AuthClient::new(client, manager), has_token))
}

/// The manager of the tokens. The endpoints are those of the login: nothing is asked for again.
async fn manager(url: &Url, entry: Option<Entry>, kept: Kept) -> Result<AuthorizationManager, AuthError> {
    let http = Arc::new(OAuthHttp::of(url));
    let resource = entry.as_ref().map_or(url.as_str(), |entry| &entry.resource);
    let mut manager = AuthorizationManager::new_with_oauth_http_client(resource, http).await?;
    if let Some(entry) = entry {
        manager.set_metadata(entry.metadata.clone());
        manager.configure_client(entry.client())?;
    }
    manager.set_credential_store(kept);
    Ok(manager)
}

/// The tokens of one server in the store.
struct Kept {
    tokens: TokenStore,
    /// `None` if no tokens are used.
    key: Option<String>,
}

fn failed(error: &Error) -> AuthError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    AuthError::CredentialStoreError(format!("{error}{}", cause.unwrap_or_default()))
}

#[async_trait]
impl CredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let Some(key) = &self.key else { return Ok(None) };
        let entry = self.tokens.read().map_err(|error| failed(&error))?.remove(key);
        Ok(entry.map(|entry| entry.credentials))
    }

    /// Saves refreshed tokens, under the guard of their refresh. After a logout they are dropped.
    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let Some(key) = &self.key else { return Ok(()) };
        let mut entries = self.tokens.read().map_err(|error| failed(&error))?;
        let Some(entry) = entries.get_mut(key) else { return Ok(()) };
        entry.credentials = credentials;
        self.tokens.write(&entries).map_err(|error| failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let Some(key) = &self.key else { return Ok(()) };
        let mut entries = self.tokens.read().map_err(|error| failed(&error))?;
        entries.remove(key);
        self.tokens.write(&entries).map_err(|error| failed(&error))
    }

    /// Forgets a login whose refresh token is no longer valid: each request would ask again.
    async fn on_refresh_token_rejected(&self, _: &StoredCredentials) -> Result<(), AuthError> {
        self.clear().await
    }

    /// Keeps other connections and programs from using the refresh token, which may be valid once only.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = self.tokens.lock().await.map_err(|error| failed(&error))?;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}
