//! The program on a terminal (a pty).
#![allow(dead_code, reason = "no test program uses all of it")]

use std::path::Path;
use std::process::Command;

use rexpect::process::WaitStatus;
use rexpect::session::{Options, PtySession, spawn_with_options};
use tempfile::TempDir;

/// Time in which an expected text must appear; machines that run tests can be slow.
pub const TIMEOUT_MS: u64 = 30_000;

pub const ENTER: &str = "\r";
pub const ALT_ENTER: &str = "\x1b\r";
pub const UP: &str = "\x1b[A";

/// A running program, with its state in a folder of its own.
pub struct Terminal {
    pub session: PtySession,
}

impl Terminal {
    /// Starts `lm` through a shell that appends `redirect` to the command.
    pub fn start_redirected(args: &[&str], state: &Path, redirect: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec \"$0\" \"$@\" {redirect}"), env!("CARGO_BIN_EXE_lm")]).args(args);
        command.env("XDG_STATE_HOME", state).env("HOME", state).env("TERM", "xterm").env("NO_COLOR", "1");
        command.env_remove("LM_LOG").env_remove("LM_STORE").env_remove("XDG_DATA_HOME");
        let options = Options::new().timeout_ms(Some(TIMEOUT_MS)).strip_ansi_escape_codes(true);
        Self { session: spawn_with_options(command, options).expect("the program starts") }
    }

    pub fn start(args: &[&str], state: &Path) -> Self {
        Self::start_redirected(args, state, "")
    }

    /// Starts a chat and waits for its prompt.
    pub fn chat(args: &[&str], state: &Path) -> Self {
        let mut terminal = Self::start(&[&["chat"], args].concat(), state);
        terminal.expect("/help shows the commands");
        terminal.expect("> ");
        terminal
    }

    pub fn send(&mut self, keys: &str) {
        self.session.send(keys).and_then(|_| self.session.flush()).expect("the program reads");
    }

    /// Types a line and presses Enter.
    pub fn line(&mut self, line: &str) {
        self.send(&format!("{line}{ENTER}"));
    }

    /// Waits for a text; returns what was shown before it.
    pub fn expect(&mut self, text: &str) -> String {
        self.session.exp_string(text).unwrap_or_else(|error| panic!("no {text:?}: {error}"))
    }

    /// Types a line and waits for a text.
    pub fn ask(&mut self, line: &str, expected: &str) -> String {
        self.line(line);
        self.expect(expected)
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&mut self) {
        self.session.send_control('c').expect("the program runs");
    }

    /// Types the command that ends a chat, which must succeed.
    pub fn exit(mut self) {
        self.line("/exit");
        assert_eq!(self.end(), 0);
    }

    /// Waits for the end; returns the exit code.
    pub fn end(mut self) -> i32 {
        self.session.exp_eof().expect("the program ends");
        match self.session.process().wait().expect("it has a status") {
            WaitStatus::Exited(_, code) => code,
            other => panic!("{other:?}"),
        }
    }
}

pub fn state() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}
