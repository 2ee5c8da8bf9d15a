//! A login: the client, the authorization server and the tokens.

use crate::config::OAuthConfig;
use reqwest::Url;
use rmcp::transport::auth::{AuthorizationMetadata, OAuthClientConfig, StoredCredentials};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The logins, by the [`key`] of their servers.
pub(super) type Entries = BTreeMap<String, Entry>;

/// A login at a server. It has no `Debug`: its tokens are secrets.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The server's own name for what the tokens are for, `resource` of RFC 8707.
    pub resource: String,
    /// Address that the browser was sent to, which is part of the client.
    pub redirect_uri: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_secret: Option<String>,
    /// Endpoints of the authorization server.
    pub metadata: AuthorizationMetadata,
    /// Id of the client, tokens and their times.
    pub credentials: StoredCredentials,
}

impl Entry {
    /// The client of the login.
    pub fn client(&self) -> OAuthClientConfig {
        client(
            self.credentials.client_id.clone(),
            self.client_secret.clone(),
            &self.redirect_uri,
            self.credentials.granted_scopes.clone(),
        )
    }
}

/// Describes a client.
fn client(id: String, secret: Option<String>, redirect_uri: &str, scopes: Vec<String>) -> OAuthClientConfig {
    let client = OAuthClientConfig::new(id, redirect_uri).with_scopes(scopes);
    match secret {
        Some(secret) => client.with_client_secret(secret),
        None => client,
    }
}

/// Describes the client of the configuration, if it has one.
pub(super) fn configured(
    config: &OAuthConfig,
    redirect_uri: &str,
    scopes: Vec<String>,
) -> Option<OAuthClientConfig> {
    let id = config.client_id.clone()?;
    Some(client(id, config.client_secret.clone(), redirect_uri, scopes))
}

/// Name of a server in the store: its address without query, password and last `/`.
pub(super) fn key(url: &Url) -> String {
    crate::http_client::shown(url).trim_end_matches('/').to_owned()
}

/// The endpoints that requests of tokens need; a server may say much more.
pub(super) fn endpoints(mut metadata: AuthorizationMetadata) -> AuthorizationMetadata {
    metadata.additional_fields.retain(|name, _| name == "token_endpoint_auth_methods_supported");
    metadata.scopes_supported = None;
    metadata
}
