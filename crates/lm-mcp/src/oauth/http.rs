//! HTTP requests of logins and of refreshed tokens: encrypted, or within this machine.

use crate::http_client;
use axum::http::{Response, header};
use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use serde_json::{Map, Value};
use std::time::Duration;

/// Maximum size of a response.
const MAX_BYTES: usize = 1 << 20;
/// Time limit of a request for which rmcp names none.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Members of an answer with tokens that are used. Others, such as an id token, are dropped at once: rmcp
/// writes unknown ones to its log.
const TOKEN_MEMBERS: [&str; 8] = [
    "access_token",
    "token_type",
    "expires_in",
    "refresh_token",
    "scope",
    "error",
    "error_description",
    "error_uri",
];

/// Client for the requests of a login at a server. No redirect leaves its host.
pub(super) struct OAuthHttp {
    server: Url,
}

impl OAuthHttp {
    pub fn of(server: &Url) -> Self {
        Self { server: server.clone() }
    }

    async fn send(&self, request: OAuthHttpRequest) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let OAuthHttpRequest { request, redirect_policy, timeout, .. } = request;
        let mut request = reqwest::Request::try_from(request)?;
        check(request.url(), &self.server)?;
        *request.timeout_mut() = Some(timeout.unwrap_or(TIMEOUT));
        let mut client = http_client::client(request.url())?;
        if redirect_policy == OAuthHttpRedirectPolicy::Stop {
            client = client.redirect(Policy::none());
        }
        let is_post = request.method() == axum::http::Method::POST;
        let failed = |error: reqwest::Error| OAuthHttpClientError::from(http_client::failure(&error));
        let mut answer = client.build()?.execute(request).await.map_err(failed)?;
        let mut response = Response::builder().status(answer.status());
        for name in [header::CONTENT_TYPE, header::LOCATION, header::WWW_AUTHENTICATE] {
            for value in answer.headers().get_all(&name) {
                response = response.header(&name, value);
            }
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BYTES {
                return Err(format!(
                    "{} answered more than {MAX_BYTES} bytes",
                    http_client::shown(answer.url())
                )
                .into());
            }
        }
        let body = match is_post && !answer.status().is_success() {
            true => error_alone(body),
            false => usable(body)?,
        };
        Ok(response.body(body)?)
    }
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

/// Checks that an address is encrypted, or that it and the server are on this machine.
pub(super) fn check(url: &Url, server: &Url) -> Result<(), String> {
    let is_local = || http_client::is_loopback(url) && http_client::is_loopback(server);
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_local() => Ok(()),
        _ => Err(format!("{} is not encrypted: expected an https:// address", http_client::shown(url))),
    }
}

/// An answer with tokens without the members that are not used.
///
/// # Errors
/// When its access token cannot be sent.
fn usable(body: Vec<u8>) -> Result<Vec<u8>, String> {
    match serde_json::from_slice::<Map<String, Value>>(&body) {
        Ok(mut members) if members.contains_key("access_token") => {
            let token = members["access_token"].as_str().unwrap_or_default();
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err("the access token is empty or has characters that no header can have".to_owned());
            }
            if !members
                .get("token_type")
                .and_then(Value::as_str)
                .is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"))
            {
                return Err("the token is of another type than `Bearer`".to_owned());
            }
            members.retain(|name, _| TOKEN_MEMBERS.contains(&name.as_str()));
            Ok(Value::Object(members).to_string().into_bytes())
        }
        _ => Ok(body),
    }
}

/// The code of an error, without its description: that may quote the code or the token of the request, and
/// rmcp writes it to its log.
fn error_alone(body: Vec<u8>) -> Vec<u8> {
    match serde_json::from_slice::<Map<String, Value>>(&body) {
        Ok(mut members) if members.contains_key("error") => {
            members.retain(|name, _| name == "error");
            Value::Object(members).to_string().into_bytes()
        }
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_encryption() {
        let url = |text: &str| Url::parse(text).expect("an address");
        let (here, there) = (url("http://127.0.0.1:80/mcp"), url("https://example.com/mcp"));
        assert_eq!(check(&url("https://login.example.com/token"), &here), Ok(()));
        assert_eq!(check(&url("http://localhost:9/token"), &here), Ok(()));
        let refused = |url: &str| Err(format!("{url} is not encrypted: expected an https:// address"));
        assert_eq!(check(&url("http://localhost:9/token"), &there), refused("http://localhost:9/token"));
        assert_eq!(check(&url("http://example.com/token?a=b"), &here), refused("http://example.com/token"));
    }

    #[test]
    fn unused_tokens_are_dropped() {
        let of = |text: &str| usable(text.into()).map(|body| String::from_utf8(body).expect("text"));
        let answer = r#"{"access_token":"a","id_token":"b","token_type":"bearer","expires_in":1}"#;
        let used = r#"{"access_token":"a","token_type":"bearer","expires_in":1}"#;
        assert_eq!(of(answer), Ok(used.to_owned()));
        assert_eq!(of(r#"{"issuer": "x"}"#), Ok(r#"{"issuer": "x"}"#.to_owned()));
    }

    #[test]
    fn tokens_that_cannot_be_sent_are_refused() {
        for answer in [
            r#"{"access_token":"","token_type":"Bearer"}"#,
            r#"{"access_token":"a\r\nb","token_type":"Bearer"}"#,
            r#"{"access_token":7,"token_type":"Bearer"}"#,
            r#"{"access_token":"a","token_type":"mac"}"#,
            r#"{"access_token":"a"}"#,
        ] {
            assert!(usable(answer.into()).is_err(), "{answer}");
        }
    }

    #[test]
    fn errors_have_no_descriptions() {
        let answer = r#"{"error":"invalid_grant","error_description":"bad SECRET"}"#;
        assert_eq!(error_alone(answer.into()), br#"{"error":"invalid_grant"}"#);
        assert_eq!(error_alone(b"no JSON".to_vec()), b"no JSON");
    }
}
