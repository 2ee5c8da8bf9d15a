//! The log on standard error.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Metadata;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::screen;

/// Default log: warnings, without those of the MCP and audio libraries, whose failures are reported as
/// errors.
const DEFAULT_LOG: &str = "warn,rmcp=off,symphonia=off";

/// Starts logging to standard error: warnings, or what `LM_LOG` asks for (`LM_LOG=debug`,
/// `LM_LOG=lm_session=trace`). Colours are for terminals.
pub fn start() {
    let wanted = std::env::var("LM_LOG").ok();
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(DEFAULT_LOG)).unwrap_or_else(|error| {
        eprintln!("warning: LM_LOG: {error}");
        EnvFilter::new(DEFAULT_LOG)
    });
    let colours = io::stderr().is_terminal() && screen::colour_wanted();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours);
    match wanted {
        Some(_) => log.with_writer(io::stderr).init(),
        None => log.with_writer(Log::default()).without_time().with_target(false).compact().init(),
    }
}

/// Lines that were written.
type Written = Arc<Mutex<HashSet<Vec<u8>>>>;

/// Standard error, with each line about a model's files once: they are read for the memory plan and again to
/// be loaded.
#[derive(Default)]
struct Log {
    about_files: Written,
}

/// Writer of one event, which is a single write.
struct Event {
    out: Stderr,
    /// Lines that are not repeated.
    written: Option<Written>,
}

impl MakeWriter<'_> for Log {
    type Writer = Event;

    fn make_writer(&self) -> Event {
        Event { out: io::stderr(), written: None }
    }

    fn make_writer_for(&self, event: &Metadata<'_>) -> Event {
        let source = event.target().split("::").next();
        let is_about_files = matches!(source, Some("lm_model" | "lm_formats"));
        Event { written: is_about_files.then(|| self.about_files.clone()), ..self.make_writer() }
    }
}

impl Write for Event {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let is_new = self.written.as_ref().is_none_or(|written| {
            written.lock().unwrap_or_else(PoisonError::into_inner).insert(line.to_vec())
        });
        if is_new { self.out.write(line) } else { Ok(line.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
