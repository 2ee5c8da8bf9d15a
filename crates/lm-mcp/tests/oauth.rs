//! Logins at servers over HTTP, with an authorization server of our own that checks each request.

use crate::common::LONG;
use crate::common::authorization::{Settings, Site, browse, get_page, other_site};
use lm_mcp::{
    Error, HttpConfig, Login, Mcp, McpLimits, OAuthConfig, ServerConfig, ServerTransport, TokenStore,
};
use lm_tools::{ToolCall, Value};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const HOUR: u64 = 3600;

fn site(settings: Settings) -> Site {
    Site::start(Settings { expires_in: HOUR, ..settings })
}

fn config(site: &Site) -> HttpConfig {
    HttpConfig { url: site.mcp(), ..HttpConfig::default() }
}

/// Logs in with a browser that agrees, or does what the site says.
fn log_in(config: HttpConfig, tokens: &TokenStore) -> Result<(), Error> {
    let browser = |address: &str| {
        let address = address.to_owned();
        std::thread::spawn(move || browse(&address));
    };
    Login::new(config).timeout(LONG).run(tokens, browser)
}

fn connect(config: HttpConfig, tokens: &TokenStore) -> Result<Mcp, Error> {
    let limits = McpLimits { start_timeout: LONG, call_timeout: Some(LONG), ..McpLimits::default() };
    let server = ServerConfig::new("s", ServerTransport::Http(config));
    Mcp::builder().server(server).limits(limits).tokens(tokens).connect()
}

fn call(mcp: &Mcp) -> Value {
    mcp.tools().call(&ToolCall::new("s_t", Default::default())).to_json()["content"].clone()
}

#[test]
fn login_makes_the_server_usable() {
    let site = site(Settings::default());
    let tokens = TokenStore::in_memory();
    let error = connect(config(&site), &tokens).expect_err("there is no token");
    assert!(
        matches!(&error, Error::Unauthorized { server, url, token_sent: false } if server == "s" && *url == site.mcp())
    );
    assert_eq!(error.to_string(), format!("MCP server `s`: {} needs a login (HTTP 401)", site.mcp()));

    log_in(config(&site), &tokens).expect("logs in");
    assert_eq!(tokens.servers().expect("in memory"), [site.mcp()]);
    let mcp = connect(config(&site), &tokens).expect("connects");
    assert_eq!(call(&mcp), "ok");

    let settings = site.settings();
    assert_eq!(settings.registrations[0]["client_name"], "lm");
    assert_eq!(settings.registrations[0]["token_endpoint_auth_method"], "none");
    let asked = &settings.authorizations[0];
    assert_eq!(asked["scope"], "tools offline_access", "the challenge names the first");
    assert!(
        asked["state"].len() >= 16 && asked["redirect_uri"].starts_with("http://127.0.0.1:"),
        "{asked:?}"
    );
    assert_eq!(settings.credentials[0], "Bearer access-1", "the login itself sends no token");
}

#[test]
fn logout_forgets_the_tokens() {
    let site = site(Settings::default());
    let tokens = TokenStore::in_memory();
    log_in(config(&site), &tokens).expect("logs in");
    assert!(tokens.remove(&format!("{}/?key=1", site.mcp())).expect("in memory"), "the query does not count");
    assert!(!tokens.remove(&site.mcp()).expect("in memory"));
    assert!(matches!(connect(config(&site), &tokens), Err(Error::Unauthorized { token_sent: false, .. })));
}

#[test]
fn expired_and_revoked_tokens_are_refreshed() {
    let site = Site::start(Settings { expires_in: 0, ..Settings::default() });
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = TokenStore::file(folder.path().join("tokens.json"));
    log_in(config(&site), &tokens).expect("logs in");
    site.settings().expires_in = HOUR;
    // Another program with the same file.
    let tokens = TokenStore::file(folder.path().join("tokens.json"));
    let mcp = connect(config(&site), &tokens).expect("connects with a new token");
    assert_eq!(call(&mcp), "ok");
    let refreshes = |site: &Site| site.settings().token_requests.len() - 1;
    assert_eq!(refreshes(&site), 1);
    assert_eq!(site.settings().token_requests[1]["grant_type"], "refresh_token");

    site.settings().valid.clear();
    assert_eq!(call(&mcp), "ok", "a token that the server no longer takes is refreshed, too");
    assert_eq!((refreshes(&site), site.settings().issued), (2, 3));
    let kept = std::fs::read_to_string(folder.path().join("tokens.json")).expect("a file");
    assert!(
        kept.contains("refresh-3") && !kept.contains("refresh-2") && !kept.contains("identity"),
        "{kept}"
    );
}

#[test]
fn refused_refresh_needs_a_login() {
    let site = Site::start(Settings { expires_in: 0, ..Settings::default() });
    let tokens = TokenStore::in_memory();
    log_in(config(&site), &tokens).expect("logs in");
    site.settings().rejects_refresh = true;
    assert!(matches!(connect(config(&site), &tokens), Err(Error::Unauthorized { .. })));
    assert!(tokens.servers().expect("in memory").is_empty());
}

#[test]
fn refused_refresh_forgets_no_other_login() {
    let [site, other] =
        [0, HOUR].map(|expires_in| Site::start(Settings { expires_in, ..Settings::default() }));
    let tokens = TokenStore::in_memory();
    log_in(config(&site), &tokens).expect("logs in");
    log_in(config(&other), &tokens).expect("logs in");
    site.settings().rejects_refresh = true;
    assert!(matches!(connect(config(&site), &tokens), Err(Error::Unauthorized { .. })));
    assert_eq!(tokens.servers().expect("in memory"), [other.mcp()]);
    assert_eq!(call(&connect(config(&other), &tokens).expect("connects")), "ok");
}

/// A refresh token may be valid once.
#[test]
fn refresh_waits_for_another_program() {
    let site = Site::start(Settings { expires_in: 0, ..Settings::default() });
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = TokenStore::file(folder.path().join("tokens.json"));
    log_in(config(&site), &tokens).expect("logs in");
    site.settings().expires_in = HOUR;
    let requests = || site.settings().token_requests.len();
    let lock = std::fs::File::open(folder.path().join("tokens.json.lock")).expect("a file");
    lock.lock().expect("is free");
    let (before, mcp) = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| connect(config(&site), &tokens));
        std::thread::sleep(Duration::from_millis(500));
        let before = requests();
        drop(lock);
        (before, connecting.join().expect("no panic"))
    });
    assert_eq!(before, 1, "the login alone");
    assert_eq!((call(&mcp.expect("connects")), requests()), (json!("ok"), 2));
}

#[test]
fn answers_of_the_authorization_server_are_bounded() {
    let padding =
        |bytes: usize| Settings { metadata: json!({"x": "x".repeat(bytes)}), ..Settings::default() };
    let tokens = TokenStore::in_memory();
    log_in(config(&site(padding(1 << 19))), &tokens).expect("logs in");
    let site = site(padding(1 << 20));
    log_in(config(&site), &tokens).expect_err("more than 1 MiB");
    assert!(site.settings().registrations.is_empty());
}

#[test]
fn call_without_a_valid_token_says_so() {
    let site = site(Settings::default());
    let tokens = TokenStore::in_memory();
    log_in(config(&site), &tokens).expect("logs in");
    let mcp = connect(config(&site), &tokens).expect("connects");
    site.settings().valid.clear();
    tokens.remove(&site.mcp()).expect("in memory");
    let expected = "MCP server `s` needs a login of the user (HTTP 401); the call did not reach its tool";
    assert_eq!(call(&mcp)["error"], expected);
}

#[test]
fn other_state_is_not_an_answer() {
    let site = site(Settings::default());
    let tokens = TokenStore::in_memory();
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let seen = statuses.clone();
    let browser = move |address: &str| {
        let address = address.to_owned();
        std::thread::spawn(move || {
            let (_, _, location) = get_page(&address);
            let location = location.expect("the browser is sent back");
            let (callback, _) = location.split_once('?').expect("a query");
            for forged in ["?code=stolen&state=guessed", "?code=stolen", "?error=access_denied&state=", ""] {
                seen.lock().expect("no panic").push(get_page(&format!("{callback}{forged}")).0);
            }
            get_page(&location)
        });
    };
    Login::new(config(&site)).timeout(LONG).run(&tokens, browser).expect("the right answer counts");
    assert_eq!(*statuses.lock().expect("no panic"), [400; 4]);
    assert_eq!(site.settings().token_requests.len(), 1);
}

#[test]
fn refusal_of_the_user_is_an_error() {
    let site = site(Settings { denies: true, ..Settings::default() });
    let tokens = TokenStore::in_memory();
    let error = log_in(config(&site), &tokens).expect_err("is refused");
    assert!(matches!(&error, Error::LoginRefused { error, .. } if error == "access_denied"), "{error}");
    assert_eq!(error.to_string(), "the login was refused: access_denied: The user said no");
    assert!(site.settings().token_requests.is_empty() && tokens.servers().expect("in memory").is_empty());
}

#[test]
fn login_has_a_time_limit() {
    let site = site(Settings::default());
    let start = Instant::now();
    let login = Login::new(config(&site)).timeout(Duration::from_secs(1));
    let error = login.run(&TokenStore::in_memory(), |_| {}).expect_err("nobody answers");
    assert_eq!(error.to_string(), "the login was not finished within 1 s");
    assert!(start.elapsed() < LONG);
}

#[test]
fn client_of_the_configuration_is_used() {
    let site = site(Settings { has_no_registration: true, ..Settings::default() });
    let tokens = TokenStore::in_memory();
    let error = log_in(config(&site), &tokens).expect_err("no client can be registered");
    let expected = format!("the login needs a `client_id`: {} does not register clients", site.base);
    assert_eq!(error.to_string(), expected);

    let oauth = OAuthConfig {
        client_id: Some("known".to_owned()),
        client_secret: Some("hush".to_owned()),
        scopes: vec!["admin".to_owned()],
        ..OAuthConfig::default()
    };
    let config = HttpConfig { oauth, ..config(&site) };
    log_in(config.clone(), &tokens).expect("logs in");
    assert_eq!(site.settings().authorizations[0]["scope"], "admin");
    site.settings().valid.clear();
    let mcp = connect(config, &tokens).expect("the refresh has the secret");
    assert_eq!((call(&mcp), site.settings().issued), (json!("ok"), 2));
}

#[test]
fn header_of_the_configuration_is_sent_instead_of_tokens() {
    let site = site(Settings::default());
    let tokens = TokenStore::in_memory();
    log_in(config(&site), &tokens).expect("logs in");
    let headers = [("Authorization".to_owned(), "Bearer mine".to_owned())].into();
    let error = connect(HttpConfig { headers, ..config(&site) }, &tokens).expect_err("is refused");
    assert_eq!(error.to_string(), format!("MCP server `s`: {} refuses the token (HTTP 401)", site.mcp()));
    assert_eq!(site.settings().credentials, ["Bearer mine"]);
}

#[test]
fn tokens_reach_no_other_host() {
    let (other, seen, _runtime) = other_site();
    let site = site(Settings::default());
    let tokens = TokenStore::in_memory();
    log_in(config(&site), &tokens).expect("logs in");
    site.settings().redirects_calls_to = Some(format!("{other}/mcp"));
    connect(config(&site), &tokens).expect_err("the redirect is not followed");
    assert_eq!(site.settings().credentials.last().map(String::as_str), Some("Bearer access-1"));
    site.settings().redirects_calls_to = None;
    site.settings().redirects_tokens_to = Some(format!("{other}/token"));
    let error = log_in(config(&site), &tokens).expect_err("the redirect is not followed").to_string();
    assert!(error.starts_with("the login failed: "), "{error}");
    assert_eq!(site.settings().token_requests.len(), 2);
    assert_eq!(*seen.lock().expect("no panic"), [""; 0]);
}

#[test]
fn login_is_encrypted_or_local() {
    let tokens = TokenStore::in_memory();
    let plain = HttpConfig { url: "http://example.com/mcp?key=1".to_owned(), ..HttpConfig::default() };
    let error = log_in(plain, &tokens).expect_err("is not sent");
    assert_eq!(
        error.to_string(),
        "`http://example.com/mcp`: it is not encrypted: expected an https:// address"
    );
    for endpoint in ["authorization_endpoint", "token_endpoint"] {
        let metadata = json!({endpoint: "http://example.com/x"});
        let site = site(Settings { metadata, ..Settings::default() });
        let error = log_in(config(&site), &tokens).expect_err("is not sent");
        let expected =
            "the login failed: http://example.com/x is not encrypted: expected an https:// address";
        assert_eq!(error.to_string(), expected);
        assert!(site.settings().registrations.is_empty());
    }
}

#[test]
fn server_without_pkce_or_metadata_is_refused() {
    let tokens = TokenStore::in_memory();
    let site = site(Settings {
        metadata: json!({"code_challenge_methods_supported": ["plain"]}),
        ..Settings::default()
    });
    let error = log_in(config(&site), &tokens).expect_err("is refused").to_string();
    assert!(error.contains("PKCE") && error.contains("S256"), "{error}");
    let (other, _, _runtime) = other_site();
    let url = format!("{other}/mcp");
    let error = log_in(HttpConfig { url, ..HttpConfig::default() }, &tokens).expect_err("is no server");
    assert_eq!(
        error.to_string(),
        "the login failed: it names no authorization server (no metadata of OAuth)"
    );
}

#[cfg(unix)]
/// An address that refuses connections.
#[test]
fn unreachable_server_is_named_with_the_cause() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
    drop(listener);
    let config = HttpConfig { url: url.clone(), ..HttpConfig::default() };
    let Err(Error::Login { message }) = log_in(config, &TokenStore::in_memory()) else { panic!("no login") };
    assert!(message.contains(url.trim_end_matches("/mcp")), "{message}");
    assert!(message.to_lowercase().contains("refused"), "{message}");
}

#[test]
fn store_that_cannot_keep_tokens_is_found_before_the_browser_is_opened() {
    let site = site(Settings::default());
    let folder = tempfile::tempdir().expect("a folder");
    let damaged = folder.path().join("tokens.json");
    std::fs::write(&damaged, "{").expect("written");
    let not_a_folder = damaged.join("tokens.json");
    for path in [damaged, not_a_folder] {
        let shown = |address: &str| panic!("{address} is shown");
        let login = Login::new(config(&site)).timeout(LONG).run(&TokenStore::file(&path), shown);
        assert!(matches!(login, Err(Error::TokenStore { .. })), "{login:?}");
    }
    assert!(site.settings().authorizations.is_empty());
}

#[test]
fn only_the_user_reads_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let site = site(Settings::default());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new/tokens.json");
    let tokens = TokenStore::file(&path);
    assert!(tokens.servers().expect("without a file").is_empty() && !path.exists());
    log_in(config(&site), &tokens).expect("logs in");
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("exists").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&folder.path().join("new/tokens.json.lock")), 0o600);
    assert!(!format!("{tokens:?}").contains("access-1"));

    std::fs::write(&path, r#"{"version": 1, "servers": {"x": "secret"}}"#).expect("is written");
    let error = tokens.servers().expect_err("is damaged");
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(cause.contains("is not what this program writes") && !cause.contains("secret"), "{cause}");
    std::fs::write(&path, r#"{"version": 2, "servers": {}}"#).expect("is written");
    let error = tokens.servers().expect_err("is of the future");
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert_eq!(cause, "expected version 1 of the file, got 2");
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_token_is_logged() {
    let site = Site::start(Settings { expires_in: 0, ..Settings::default() });
    let tokens = TokenStore::in_memory();
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _guard = tracing::subscriber::set_default(subscriber);
    runtime.block_on(async {
        let browser = |address: &str| {
            let address = address.to_owned();
            std::thread::spawn(move || browse(&address));
        };
        Login::new(config(&site)).timeout(LONG).run_async(&tokens, browser).await.expect("logs in");
        let server = ServerConfig::http("s", site.mcp());
        let handle = tokio::runtime::Handle::current();
        let mcp = Mcp::builder().server(server).tokens(&tokens).runtime(handle).connect_async().await;
        assert_eq!(mcp.expect("connects with a refreshed token").tool_list().len(), 1);
    });
    let log = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    assert!(log.contains("discovery url"), "the login is logged: {log}");
    for secret in ["access-", "refresh-1", "refresh-2", "code-1", "identity-"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}
