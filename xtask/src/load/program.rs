//! `lm` as a child process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process;

/// The program, with its model.
#[derive(Default)]
pub struct Lm {
    /// The program's file; the one that cargo builds if absent.
    pub program: Option<PathBuf>,
    pub model: Option<PathBuf>,
    pub quantize: Option<String>,
}

impl Lm {
    /// Creates a command that runs `lm` with the model; cargo replaces itself by it.
    pub fn command(&self, name: &str) -> Command {
        let mut command = self.program.as_ref().map_or_else(
            || process::cargo(&["run", "--quiet", "--release", "--package", "lm-cli", "--"]),
            Command::new,
        );
        command.arg(name).args(&self.model);
        if let Some(format) = &self.quantize {
            command.args(["--quantize", format]);
        }
        command
    }
}

/// A running `lm serve`; it is killed when it is dropped.
pub struct Server {
    child: Child,
    pub addr: String,
}

impl Server {
    /// Starts it on a free port, and waits until it listens.
    pub fn start(lm: &Lm, args: &[&str]) -> Result<Self> {
        let mut command = lm.command("serve");
        command
            .args(["--listen", "0", "--no-store"])
            .args(args)
            .env_remove("LM_API_KEY")
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start `lm serve`")?;
        let mut errors = BufReader::new(child.stderr.take().context("`lm serve` has no standard error")?);
        let mut server = Self { child, addr: String::new() };
        let mut line = String::new();
        while server.addr.is_empty() {
            line.clear();
            ensure!(errors.read_line(&mut line)? > 0, "`lm serve` ended before it listened");
            server.addr = address(&line).unwrap_or_default().to_owned();
        }
        std::thread::spawn(move || errors.lines().map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        Ok(server)
    }

    /// Resident memory in MB; NaN where the system does not say.
    pub fn resident(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.map_or(f64::NAN, |kilobytes| kilobytes * 1024.0 / 1e6)
    }

    /// Asks it to end.
    pub fn terminate(&self) -> Result<()> {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(sent.success(), "`kill -TERM` ended with {sent}");
        Ok(())
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Address in the line that says that the server listens.
fn address(line: &str) -> Option<&str> {
    line.split("http://").nth(1)?.split(';').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_from_the_first_line() {
        let line = "serving pocket, the API at /v1, a chat page at http://127.0.0.1:4711; Ctrl-C ends";
        assert_eq!(address(line), Some("127.0.0.1:4711"));
        assert_eq!(address("loading"), None);
    }
}
