//! `llama-server` of llama.cpp as a child process.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::load::Connection;

/// Number of half seconds that a model may take to load.
const PATIENCE: usize = 240;

/// A running server; it is killed when it is dropped.
pub struct LlamaServer {
    child: Child,
    pub addr: String,
}

impl LlamaServer {
    /// Starts the program on a free port with two threads and one slot, and waits until it is ready.
    pub fn start(program: &Path, model: &Path) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let mut command = Command::new(program);
        command.arg("-m").arg(model).args(["--host", "127.0.0.1", "--port", &port, "--jinja"]);
        command.args(["-c", "8192", "-np", "1", "-t", "2", "--poll", "0", "-ngl", "0"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| program.display().to_string())?;
        let mut server = Self { child, addr: format!("127.0.0.1:{port}") };
        for _ in 0..PATIENCE {
            ensure!(server.child.try_wait()?.is_none(), "{} ended while loading", program.display());
            if server.is_ready() {
                return Ok(server);
            }
            sleep(Duration::from_millis(500));
        }
        bail!("{} does not answer", program.display())
    }

    fn is_ready(&self) -> bool {
        let head = Connection::open(&self.addr).and_then(|mut server| server.get("/health"));
        head.is_ok_and(|head| head.status == 200)
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
