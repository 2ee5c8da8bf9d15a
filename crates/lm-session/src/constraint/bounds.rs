//! Bounds on the size of a grammar and on its compilation time.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ConstraintSpec;
use crate::{Error, GrammarErrorKind, Result};

/// Maximum length of a grammar's text, in bytes.
const MAX_BYTES: usize = 2 << 20;
/// Maximum number of texts of a choice.
const MAX_TEXTS: usize = 5_000;
/// Maximum number of Unicode property classes in a grammar: each has hundreds of ranges.
const MAX_PROPERTIES: usize = 2_000;
/// Maximum nesting depth of brackets in a grammar's text.
const MAX_DEPTH: usize = 128;
/// Time limit of a compilation. Real ones take milliseconds.
const MAX_TIME: Duration = Duration::from_secs(20);
/// Maximum number of concurrent compilations in a process; others wait.
const MAX_CONCURRENT: usize = 4;
/// Stack size of the compiling thread: enough for recursion to [`MAX_DEPTH`].
const STACK_BYTES: usize = 32 << 20;

/// Returns the whole content of `spec` as text, which is its cache key.
///
/// # Errors
/// [`GrammarErrorKind::TooLarge`].
pub(super) fn checked_text(spec: &ConstraintSpec) -> Result<String> {
    let (text, depth) = match spec {
        ConstraintSpec::Regex(regex) => (format!("regex {regex}"), bracket_depth(regex)),
        ConstraintSpec::Choice(texts) if texts.len() > MAX_TEXTS => {
            return Err(too_large(format!("{} texts, at most {MAX_TEXTS} are compiled", texts.len())));
        }
        ConstraintSpec::Choice(texts) => (format!("choice {}", Value::from(texts.clone())), 0),
        ConstraintSpec::Lark { text, markers } => {
            (format!("lark {} {text}", Value::from(markers.clone())), bracket_depth(text))
        }
    };
    if depth > MAX_DEPTH {
        return Err(too_large(format!("nested more than {MAX_DEPTH} deep")));
    }
    if text.len() > MAX_BYTES {
        return Err(too_large(format!("{} bytes, at most {MAX_BYTES} are compiled", text.len())));
    }
    let properties = text.matches("\\p").count() + text.matches("\\P").count();
    if properties > MAX_PROPERTIES {
        return Err(too_large(format!(
            "{properties} classes of Unicode properties, at most {MAX_PROPERTIES} are compiled"
        )));
    }
    Ok(text)
}

/// Runs `compile` on its own thread and waits for at most [`MAX_TIME`]. At most [`MAX_CONCURRENT`] run concurrently.
///
/// # Errors
/// [`GrammarErrorKind::TooLarge`] when it takes longer: the thread then keeps running, and keeps its permit, until the library's
/// own limits stop it. [`Error::CompilerBusy`] when no permit becomes free in that time.
pub(super) fn with_timeout<T: Send + 'static>(compile: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (done, result) = mpsc::channel();
    let permit = Permit::acquire(MAX_TIME)?;
    let work = move || {
        let _permit = permit;
        let _ = done.send(compile()); // The receiver may have timed out.
    };
    let thread = thread::Builder::new().name("lm-grammar".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|error| Error::ConstraintFailed { message: error.to_string() })?;
    result.recv_timeout(MAX_TIME).map_err(|error| match error {
        RecvTimeoutError::Timeout => too_large(format!("not compiled within {} s", MAX_TIME.as_secs())),
        RecvTimeoutError::Disconnected => {
            Error::ConstraintFailed { message: "the compilation panicked".to_owned() }
        }
    })
}

/// Number of running compilations.
static RUNNING: Mutex<usize> = Mutex::new(0);
/// Notified when a compilation ends.
static ENDED: Condvar = Condvar::new();

/// Permit for one compilation (a semaphore of [`MAX_CONCURRENT`]); released on drop.
struct Permit;

impl Permit {
    fn acquire(longest: Duration) -> Result<Self> {
        let until = Instant::now() + longest;
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= MAX_CONCURRENT {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::CompilerBusy { running: *running, retry_after: MAX_TIME });
            }
            running = ENDED.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *running += 1;
        Ok(Self)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

fn too_large(message: String) -> Error {
    Error::Grammar { kind: GrammarErrorKind::TooLarge, message }
}

/// Upper bound of the nesting depth of brackets; every bracket counts, also in literals.
fn bracket_depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'\n' => open = open.min(MAX_DEPTH / 2),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}
