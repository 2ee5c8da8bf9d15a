//! `lm mcp login` and `logout` with an authorization server of our own.
#![cfg(feature = "mcp")]

#[path = "../../lm-mcp/tests/common/authorization.rs"]
mod authorization;

use authorization::{Settings, Site, browse};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::program::{Run, refused, shown, text_file};

/// The program with a home of its own.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn start(&self, args: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_lm"))
            .args(args)
            .env_remove("LM_LOG")
            .env("HOME", self.0.path())
            .env("LOCALAPPDATA", self.0.path())
            .env("XDG_STATE_HOME", self.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts")
    }

    fn lm(&self, args: &[&str]) -> Run {
        finished(self.start(args))
    }

    /// Starts a login; returns the address for the browser, too.
    fn log_in(&self, args: &[&str]) -> (Child, String) {
        let mut child = self.start(&[&["mcp", "login"], args].concat());
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("is piped"));
        out.read_line(&mut address).expect("an address");
        (child, address.trim_end().to_owned())
    }
}

fn finished(mut child: Child) -> Run {
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().map(|mut stream| stream.read_to_string(&mut out));
    child.stderr.take().map(|mut stream| stream.read_to_string(&mut err));
    Run { code: child.wait().expect("ends").code(), out, err }
}

#[test]
fn login_and_logout_change_what_servers_answer() {
    let site = Site::start(Settings { expires_in: 3600, ..Settings::default() });
    let (home, url) = (Home::new(), site.mcp());
    let tools = ["mcp", "tools", "--mcp", &url];
    let host = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let refused = home.lm(&tools);
    let expected = format!(
        "error: MCP server `{host}`: {url} needs a login (HTTP 401)\n\
         hint: `lm mcp login {url}` logs in, or `lm mcp login {host} --mcp-config FILE` at a server of a file\n"
    );
    assert_eq!((refused.code, refused.err), (Some(1), expected.clone()));

    let (login, address) = home.log_in(&[&url]);
    assert!(address.starts_with(&format!("{}/authorize?", site.base)), "{address}");
    assert_eq!(browse(&address), 200);
    let login = finished(login);
    let said =
        format!("open this address in a browser on this machine; Ctrl-C gives up\nlogged in at {url}\n");
    assert_eq!((login.code, login.err), (Some(0), said));
    let listed = home.lm(&tools);
    assert_eq!((listed.code, listed.out.starts_with("t(")), (Some(0), true), "{}{}", listed.out, listed.err);

    let logout = home.lm(&["mcp", "logout", &url]);
    let said = format!("logged out at {url}; the server was not told\n");
    assert_eq!((logout.code, logout.err), (Some(0), said));
    assert_eq!(home.lm(&tools).err, expected);
    let again = home.lm(&["mcp", "logout", &url]);
    assert_eq!((again.code, again.err), (Some(0), format!("note: there is no login at {url}\n")));
}

#[test]
fn server_of_a_file_has_its_client() {
    let site = Site::start(Settings { has_no_registration: true, ..Settings::default() });
    let home = Home::new();
    let failed = home.lm(&["mcp", "login", &site.mcp()]);
    let expected = format!(
        "error: the login needs a `client_id`: {} does not register clients\nhint: --client-id ID names a client that is registered \
         there, as does \"oauth\": {{\"clientId\": …}} in a file of servers\n",
        site.base
    );
    assert_eq!((failed.code, failed.err), (Some(1), expected));
    let oauth = json!({"clientId": "known", "clientSecret": "hush", "scopes": ["admin"]});
    let servers =
        json!({"mcpServers": {"site": {"url": site.mcp(), "oauth": oauth}, "local": {"command": "x"}}});
    let file = text_file(servers.to_string().as_bytes());
    let config = ["--mcp-config", shown(file.path())];
    let (login, address) = home.log_in(&["site", config[0], config[1], "--scope", "tools"]);
    assert_eq!(browse(&address), 200);
    assert_eq!(finished(login).code, Some(0));
    assert_eq!(site.settings().authorizations[0]["scope"], "tools");

    let failed = home.lm(&["mcp", "login", "local", config[0], config[1]]);
    let expected = "error: MCP server `local` is a program: only servers with a `url` have logins\n";
    assert_eq!((failed.code, failed.err.as_str()), (Some(1), expected));
    let failed = home.lm(&["mcp", "login", "sites", config[0], config[1]]);
    let expected = format!("error: {} has no MCP server `sites` (did you mean `site`?)\n", config[1]);
    assert_eq!((failed.code, failed.err), (Some(1), expected));
}

#[test]
fn names_need_a_file() {
    refused(
        &["mcp", "login", "search"],
        "`search` is not an address (https://…): --mcp-config FILE names the file",
    );
    refused(&["mcp", "logout", "localhost:80/mcp"], "did you mean `http://localhost:80/mcp`?");
}

#[test]
fn login_ends_at_its_time_limit() {
    let site = Site::start(Settings::default());
    let login = Home::new().lm(&["mcp", "login", &site.mcp(), "--timeout", "1"]);
    assert!(login.err.ends_with("error: the login was not finished within 1 s\n"), "{}", login.err);
    assert_eq!((login.code, site.settings().token_requests.len()), (Some(1), 0));
}

#[cfg(unix)]
#[test]
fn interrupt_ends_a_login() {
    let site = Site::start(Settings::default());
    let home = Home::new();
    let (login, _) = home.log_in(&[&site.mcp()]);
    let killed = Command::new("kill").args(["-INT", &login.id().to_string()]).status().expect("runs");
    assert!(killed.success());
    assert_eq!(finished(login).code, Some(130));
}
