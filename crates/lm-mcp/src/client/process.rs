//! A server as a program: its streams, its error output, its end.

use super::connection::{Ended, Program};
use super::environment;
use super::host::Signals;
use crate::config::CommandConfig;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// Grace period of a program after its standard input was closed.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// Time limit for reading the error output of an ended program.
const OUTPUT_DELAY: Duration = Duration::from_millis(100);
/// Maximum length of a line of error output in the log; the rest is the next line.
const MAX_LINE_BYTES: usize = 4096;
/// Length of the tail of the error output that is kept for messages.
const TAIL_BYTES: usize = 1024;

/// A started program.
pub(super) struct Process {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: Tail,
    pub program: Program,
}

/// Starts a program in its own process group, which Ctrl-C in the terminal does not reach. It is ended by
/// the signals, or with the runtime.
pub(super) fn start(server: &str, config: &CommandConfig, signals: Signals) -> Result<Process> {
    let mut command = Command::new(&config.command);
    command.args(&config.args).kill_on_drop(true);
    command.env_clear().envs(environment::inherited(std::env::vars_os())).envs(&config.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &config.cwd {
        command.current_dir(cwd);
    }
    #[cfg(unix)]
    command.process_group(0);
    let failed = |source| Error::Start { server: server.to_owned(), command: config.command.clone(), source };
    let mut child = command.spawn().map_err(failed)?;
    let piped = "the stream was asked for";
    let (stdin, stdout) = (child.stdin.take().expect(piped), child.stdout.take().expect(piped));
    let stderr = Tail::default();
    let output = tokio::spawn(stderr.clone().read(child.stderr.take().expect(piped), server.into()));
    let (ended, has_ended) = watch::channel(None);
    let kill = Arc::new(Notify::new());
    tokio::spawn(supervise(child, output, (signals, kill.clone()), ended));
    Ok(Process { stdin, stdout, stderr, program: Program { kill, ended: has_ended } })
}

/// Waits for the end of a program, or ends it.
async fn supervise(
    mut child: Child,
    output: JoinHandle<()>,
    (mut signals, kill): (Signals, Arc<Notify>),
    ended: watch::Sender<Option<Ended>>,
) {
    let group = Group(child.id());
    let status = tokio::select! {
        status = child.wait() => Some(status),
        () = stopped(&mut signals.stop) => tokio::time::timeout(GRACE, child.wait()).await.ok(),
        () = kill.notified() => None,
    };
    drop(group);
    let status = match status {
        Some(status) => status,
        None => {
            let _ = child.start_kill(); // It ended by itself.
            child.wait().await
        }
    };
    // The last output arrives before the end is reported.
    let _ = tokio::time::timeout(OUTPUT_DELAY, output).await;
    ended.send_replace(Some(Ended(
        status.map_or_else(|error| error.to_string(), |status| status.to_string()),
    )));
}

/// Waits for the stop signal, or for the drop of its senders.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await; // Either way.
}

/// The process group of a program and its children. It is killed when dropped, also with its runtime.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.0.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL); // It may be empty.
        }
    }
}

/// End of the error output of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads the error output to its end: each line into the log, the end of it for messages.
    async fn read(self, mut stream: impl AsyncRead + Unpin, server: Arc<str>) {
        let (mut chunk, mut line) = ([0; 1024], Vec::new());
        while let Ok(read @ 1..) = stream.read(&mut chunk).await {
            self.push(&chunk[..read]);
            for &byte in &chunk[..read] {
                match byte {
                    b'\n' => log(&server, &mut line),
                    byte => line.push(byte),
                }
                if line.len() >= MAX_LINE_BYTES {
                    log(&server, &mut line);
                }
            }
        }
        log(&server, &mut line);
    }

    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(bytes);
        let extra = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..extra);
    }

    /// The last line of the output as a part of a message; empty without output.
    pub fn message(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.map_or_else(String::new, |line| format!("; the last line of its stderr: {line}"))
    }
}

fn log(server: &str, line: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(line);
    if !text.trim().is_empty() {
        tracing::info!(server, "{}", text.trim_end());
    }
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn last_line_of_the_error_output_is_kept() {
        let tail = Tail::default();
        tail.clone().read(&b"first\n last words\r\n \n"[..], "a".into()).await;
        assert_eq!(tail.message(), "; the last line of its stderr: last words");
        tail.clone().read(&b"x".repeat(10_000)[..], "a".into()).await;
        let message = tail.message();
        assert_eq!(message.matches('x').count(), TAIL_BYTES);
        assert_eq!(Tail::default().message(), "");
    }
}
