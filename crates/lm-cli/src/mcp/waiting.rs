//! Line about servers whose start takes long.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use lm_mcp::ServerConfig;

use crate::screen::one_line;

/// Time after which a start is reported.
const DELAY: Duration = Duration::from_secs(2);

/// Prints the names of the servers on standard error if they are not connected in time. Connected ones end
/// the value.
pub struct Waiting {
    _connected: Sender<()>,
}

impl Waiting {
    pub fn start(servers: &[ServerConfig]) -> Self {
        let line = line(servers);
        let (connected, ended) = channel();
        thread::spawn(move || {
            if ended.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{line}");
            }
        });
        Self { _connected: connected }
    }
}

fn line(servers: &[ServerConfig]) -> String {
    let names: Vec<_> = servers.iter().map(|server| format!("\"{}\"", server.name)).collect();
    let s = if names.len() == 1 { "" } else { "s" };
    one_line(&format!("waiting for MCP server{s} {} …", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_servers_are_named() {
        let server = |name: &str| ServerConfig::command(name, "sh", [""; 0]);
        assert_eq!(line(&[server("a")]), "waiting for MCP server \"a\" …");
        assert_eq!(line(&[server("a"), server("b\n")]), "waiting for MCP servers \"a\", \"b\\n\" …");
    }
}
