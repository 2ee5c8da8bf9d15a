//! An MCP server that needs a login, and its authorization server, which checks what it is sent. Both are at
//! one address.
#![allow(dead_code, reason = "no test program uses all of it")]

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

type Form = BTreeMap<String, String>;

/// The behaviour of the site, and its observations.
#[derive(Default)]
pub struct Settings {
    /// Seconds until tokens expire, by the answer.
    pub expires_in: u64,
    /// The user refuses.
    pub denies: bool,
    /// Clients cannot be registered: there is the client `known` with the secret `hush`.
    pub has_no_registration: bool,
    /// Refresh tokens are no longer valid.
    pub rejects_refresh: bool,
    /// Address that the token endpoint redirects to.
    pub redirects_tokens_to: Option<String>,
    /// Address that the MCP server redirects to.
    pub redirects_calls_to: Option<String>,
    /// Members of the metadata of the authorization server to replace; null takes one away.
    pub metadata: Value,
    /// Tokens with which the MCP server can be used.
    pub valid: Vec<String>,
    /// Number of pairs of tokens so far.
    pub issued: usize,
    /// Requests for tokens, in order.
    pub token_requests: Vec<Form>,
    /// Requests of the browser, in order.
    pub authorizations: Vec<Form>,
    /// Registrations of clients, in order.
    pub registrations: Vec<Value>,
    /// Values of `Authorization` of other requests than those for tokens.
    pub credentials: Vec<String>,
    /// Codes that were given, with the request of each.
    pub codes: HashMap<String, Form>,
}

/// The running site.
pub struct Site {
    pub base: String,
    settings: Arc<Mutex<Settings>>,
    _runtime: Runtime,
}

#[derive(Clone)]
struct Shared {
    base: String,
    settings: Arc<Mutex<Settings>>,
}

impl Shared {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().expect("no panic")
    }
}

impl Site {
    pub fn start(settings: Settings) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let settings = Arc::new(Mutex::new(settings));
        let shared = Shared { base: base.clone(), settings: settings.clone() };
        let router = Router::new()
            .route("/mcp", any(mcp))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(shared);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { base, settings, _runtime: runtime }
    }

    /// Address of the MCP server.
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.base)
    }

    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().expect("no panic")
    }
}

fn answer(status: StatusCode, body: Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn mcp(State(site): State<Shared>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let given = headers.get(header::AUTHORIZATION).map(|value| value.to_str().expect("text").to_owned());
    let mut settings = site.settings();
    settings.credentials.extend(given.clone());
    if let Some(to) = &settings.redirects_calls_to {
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to.clone())]).into_response();
    }
    let token = given.as_deref().and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
    if !token.is_some_and(|token| settings.valid.contains(&token)) {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", site.base);
        let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"tools\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let request: Value = serde_json::from_slice(&body).expect("a client sends JSON");
    let result = match request["method"].as_str().expect("a request") {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "ok"}]}),
        _ if request["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            return answer(StatusCode::OK, json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
        }
    };
    answer(StatusCode::OK, json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

async fn resource(State(site): State<Shared>) -> Response {
    let body = json!({"resource": format!("{}/mcp", site.base), "authorization_servers": [site.base],
        "scopes_supported": ["tools", "admin"]});
    answer(StatusCode::OK, body)
}

async fn metadata(State(site): State<Shared>) -> Response {
    let at = |path: &str| format!("{}{path}", site.base);
    let settings = site.settings();
    let mut metadata = json!({"issuer": site.base, "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"], "scopes_supported": ["tools", "offline_access"],
        "authorization_response_iss_parameter_supported": true});
    if !settings.has_no_registration {
        metadata["registration_endpoint"] = at("/register").into();
    }
    for (key, value) in settings.metadata.as_object().into_iter().flatten() {
        metadata[key] = value.clone();
    }
    answer(StatusCode::OK, metadata)
}

async fn register(State(site): State<Shared>, body: Bytes) -> Response {
    let client: Value = serde_json::from_slice(&body).expect("JSON");
    let redirects = client["redirect_uris"].clone();
    site.settings().registrations.push(client);
    answer(StatusCode::CREATED, json!({"client_id": "registered", "redirect_uris": redirects}))
}

async fn authorize(State(site): State<Shared>, Query(request): Query<Form>) -> Response {
    let mut settings = site.settings();
    settings.authorizations.push(request.clone());
    let client = if settings.has_no_registration { "known" } else { "registered" };
    let resource = format!("{}/mcp", site.base);
    for (name, expected) in [
        ("response_type", "code"),
        ("client_id", client),
        ("code_challenge_method", "S256"),
        ("resource", &resource),
    ] {
        assert_eq!(request.get(name).map(String::as_str), Some(expected), "{name}");
    }
    let code = format!("code-{}", settings.authorizations.len());
    let end = match settings.denies {
        true => "error=access_denied&error_description=The%20user%20said%20no".to_owned(),
        false => format!("code={code}&iss={}", site.base),
    };
    let location = format!("{}?{end}&state={}", request["redirect_uri"], request["state"]);
    settings.codes.insert(code, request);
    (StatusCode::FOUND, [(header::LOCATION, location)]).into_response()
}

/// Reads the text of a form.
fn form(text: &str) -> Form {
    let uri: Uri = format!("/?{text}").parse().expect("a form");
    Query::try_from_uri(&uri).map(|Query(form)| form).expect("a form")
}

async fn token(State(site): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let request = form(std::str::from_utf8(&body).expect("text"));
    let mut settings = site.settings();
    settings.token_requests.push(request.clone());
    if let Some(to) = &settings.redirects_tokens_to {
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to.clone())]).into_response();
    }
    let refused = |error: &str| answer(StatusCode::BAD_REQUEST, json!({"error": error}));
    if settings.has_no_registration {
        let expected = format!("Basic {}", BASE64_STANDARD.encode("known:hush"));
        if headers.get(header::AUTHORIZATION).is_none_or(|given| given != expected.as_str()) {
            return refused("invalid_client");
        }
    } else if request.get("client_id").is_none_or(|id| id != "registered") {
        return refused("invalid_client");
    }
    if request.get("resource") != Some(&format!("{}/mcp", site.base)) {
        return refused("invalid_target");
    }
    let is_good = match request["grant_type"].as_str() {
        "authorization_code" => settings.codes.remove(&request["code"]).is_some_and(|asked| {
            let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&request["code_verifier"]));
            asked["code_challenge"] == challenge && asked["redirect_uri"] == request["redirect_uri"]
        }),
        "refresh_token" => {
            let current = format!("refresh-{}", settings.issued);
            !settings.rejects_refresh && request["refresh_token"] == current
        }
        _ => false,
    };
    if !is_good {
        return refused("invalid_grant");
    }
    settings.issued += 1;
    let number = settings.issued;
    let access = format!("access-{number}");
    settings.valid = vec![access.clone()];
    let expires_in = settings.expires_in;
    let tokens = json!({"access_token": access, "refresh_token": format!("refresh-{number}"),
        "token_type": "Bearer", "expires_in": expires_in, "id_token": "identity-1"});
    answer(StatusCode::OK, tokens)
}

/// A site that notes the requests it gets.
pub fn other_site() -> (String, Arc<Mutex<Vec<String>>>, Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let router = Router::new().fallback(any(move |RawQuery(query): RawQuery, body: Bytes| async move {
        let body = String::from_utf8_lossy(&body).into_owned();
        notes.lock().expect("no panic").push(format!("{query:?} {body}"));
        StatusCode::OK
    }));
    runtime.spawn(async move { axum::serve(listener, router).await });
    (base, seen, runtime)
}

/// Requests a page of this machine as a browser does; returns its status and text.
pub fn get_page(address: &str) -> (u16, String, Option<String>) {
    let (host, path) = address.strip_prefix("http://").expect("http").split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("connects");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("is sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("is answered");
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let location = response.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    (status, response, location)
}

/// Opens the address of a login, and follows it back; returns the last status.
pub fn browse(address: &str) -> u16 {
    let (status, _, location) = get_page(address);
    assert_eq!(status, 302);
    get_page(&location.expect("the browser is sent back")).0
}
