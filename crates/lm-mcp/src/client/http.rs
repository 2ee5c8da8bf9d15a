//! Transport of connections over streamable HTTP.

use crate::config::HttpConfig;
use crate::http_client;
use crate::oauth::{self, TokenStore};
use crate::{Error, Result};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::HashMap;

/// Address of a server, and the credentials that it is sent.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The address without its query.
    pub url: String,
    /// True if requests have a token, or an `Authorization` header.
    pub token_sent: bool,
}

/// Means to connect to an address; its connections share a client.
pub(super) struct Connector {
    client: AuthClient<reqwest::Client>,
    config: StreamableHttpClientTransportConfig,
}

impl Connector {
    /// Creates a transport.
    pub fn transport(&self) -> StreamableHttpClientTransport<AuthClient<reqwest::Client>> {
        StreamableHttpClientTransport::with_client(self.client.clone(), self.config.clone())
    }
}

/// Prepares connections to a server's address, with the tokens of a login if there was one.
pub(super) async fn connector(
    server: &str,
    config: &HttpConfig,
    tokens: &TokenStore,
    max_message_bytes: usize,
) -> Result<(Connector, Access)> {
    let failed =
        |message: String| Error::Connect { server: server.to_owned(), message, output: String::new() };
    let url = Url::parse(&config.url).map_err(|error| failed(format!("`{}`: {error}", config.url)))?;
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let wrong = |_| failed(format!("the header `{name}` has a name or value that HTTP does not allow"));
        let value = HeaderValue::from_str(value).map_err(|error| wrong(error.to_string()))?;
        let name = HeaderName::try_from(name.as_str()).map_err(|error| wrong(error.to_string()))?;
        headers.insert(name, value);
    }
    let client = http_client::client(&url)?.build().map_err(|error| failed(error.to_string()))?;
    let has_header = headers.contains_key(&AUTHORIZATION);
    let (client, has_token) = oauth::authorized(client, &url, tokens, has_header).await?;
    let access = Access { url: http_client::shown(&url), token_sent: has_token || has_header };
    let mut config =
        StreamableHttpClientTransportConfig::with_uri(config.url.as_str()).custom_headers(headers);
    config.max_sse_event_size = max_message_bytes;
    config.max_json_response_size = max_message_bytes;
    Ok((Connector { client, config }, access))
}

/// Description of an error of the transport, which ends with the status of a response and its body, if it has
/// one.
pub(super) fn status(error: String) -> String {
    let error = error.trim_end().trim_end_matches(':');
    match error.ends_with("HTTP 404 Not Found") {
        true => format!("{error}: nothing is at this path; MCP servers often use /mcp"),
        false => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_without_a_body_is_described() {
        let of = |text: &str| status(text.to_owned());
        assert_eq!(
            of("HTTP 404 Not Found: "),
            "HTTP 404 Not Found: nothing is at this path; MCP servers often use /mcp"
        );
        assert_eq!(of("HTTP 404 Not Found: no such route"), "HTTP 404 Not Found: no such route");
        assert_eq!(of("HTTP 500 Internal Server Error: "), "HTTP 500 Internal Server Error");
    }
}
