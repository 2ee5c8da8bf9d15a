//! Bounds on the size of a grammar and on its compilation time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ConstraintSpec;
use crate::error::{Error, GrammarErrorKind, Result};

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
/// Stack size of the compiling thread: enough for recursion to [`MAX_DEPTH`], and through a chain of as many
/// rules as [`MAX_BYTES`] have. Only what is used of it takes memory.
const STACK_BYTES: usize = 512 << 20;
/// Nice value that the compiling thread adds to that of the process: the steps of other requests, which use
/// all cores, have ten times its share of a core.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

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

/// Runs `compile` on its own thread and waits for at most [`MAX_TIME`]. At most [`MAX_CONCURRENT`] run
/// concurrently.
///
/// # Errors
/// [`GrammarErrorKind::TooLarge`] when it takes longer: the thread then keeps its permit until its current
/// step ends, which the library's own limits bound (see [`Abandoned`]). [`Error::CompilerBusy`] when no
/// permit becomes free in that time.
pub(super) fn with_timeout<T: Send + 'static>(
    compile: impl FnOnce(&Abandoned) -> T + Send + 'static,
) -> Result<T> {
    within(MAX_TIME, &COMPILATIONS, compile)
}

fn within<T: Send + 'static>(
    longest: Duration,
    permits: &'static Permits,
    compile: impl FnOnce(&Abandoned) -> T + Send + 'static,
) -> Result<T> {
    let (done, result) = mpsc::channel();
    let (permit, abandoned) = (permits.acquire(longest)?, Abandoned::default());
    let flag = abandoned.clone();
    let work = move || {
        let _permit = permit;
        lower_priority();
        let _ = done.send(compile(&flag)); // The receiver may have timed out.
    };
    let thread = thread::Builder::new().name("lm-grammar".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|error| Error::ConstraintFailed { message: error.to_string() })?;
    result.recv_timeout(longest).map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            abandoned.0.store(true, Ordering::Relaxed);
            too_large(format!("not compiled within {} s", longest.as_secs()))
        }
        RecvTimeoutError::Disconnected => {
            Error::ConstraintFailed { message: "the compilation panicked".to_owned() }
        }
    })
}

/// Lowers the priority of the calling thread by [`NICE`], for good. Elsewhere than on Linux nice values are
/// those of the process, and nothing is done.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let lower = getpriority_process(None).and_then(|nice| setpriority_process(None, nice + NICE));
        if let Err(error) = lower {
            tracing::debug!(%error, "a grammar is compiled at full priority");
        }
    }
}

/// Flag of an abandoned compilation. It is checked between the steps of a compilation: reading the grammar,
/// the bound on its work, the lexer, the rules for completions.
#[derive(Clone, Default)]
pub(super) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// # Errors
    /// When the compilation was abandoned.
    pub fn check(&self) -> std::result::Result<(), String> {
        if self.0.load(Ordering::Relaxed) { Err("the compilation was abandoned".to_owned()) } else { Ok(()) }
    }
}

/// Permits of the compilations of the process.
static COMPILATIONS: Permits = Permits::new();

/// Semaphore of [`MAX_CONCURRENT`] permits.
struct Permits {
    running: Mutex<usize>,
    /// Notified when a compilation ends.
    ended: Condvar,
}

/// Permit for one compilation; released on drop.
struct Permit(&'static Permits);

impl Permits {
    const fn new() -> Self {
        Self { running: Mutex::new(0), ended: Condvar::new() }
    }

    fn acquire(&'static self, longest: Duration) -> Result<Permit> {
        let until = Instant::now() + longest;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running >= MAX_CONCURRENT {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::CompilerBusy { running: *running, retry_after: MAX_TIME });
            }
            running = self.ended.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *running += 1;
        Ok(Permit(self))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_one();
    }
}

fn too_large(message: String) -> Error {
    Error::Grammar { kind: GrammarErrorKind::TooLarge, message }
}

/// Upper bound of the nesting depth of brackets; counts all brackets, also in literals.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_compilations_block_others_until_they_stop() {
        static PERMITS: Permits = Permits::new();
        const SHORT: Duration = Duration::from_millis(50);
        let steps: Vec<_> = (0..MAX_CONCURRENT)
            .map(|_| {
                let (step, next_step) = mpsc::channel::<()>();
                let (seen, checked) = mpsc::channel();
                let abandoned = within(SHORT, &PERMITS, move |abandoned| {
                    let _ = next_step.recv();
                    let _ = seen.send(abandoned.check());
                });
                assert!(matches!(abandoned, Err(Error::Grammar { kind: GrammarErrorKind::TooLarge, .. })));
                (step, checked)
            })
            .collect();
        let rejected = within(SHORT, &PERMITS, |_| ());
        assert!(matches!(rejected, Err(Error::CompilerBusy { running: MAX_CONCURRENT, .. })), "{rejected:?}");
        for (step, checked) in steps {
            drop(step);
            assert!(checked.recv().expect("the next step").is_err(), "it ends");
        }
        // Waits for the permit of an ended compilation.
        within(MAX_TIME, &PERMITS, |_| ()).expect("a free permit");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn steps_have_priority_over_compilations() {
        let nice = || rustix::process::getpriority_process(None).expect("a nice value");
        let compiling = with_timeout(move |_| nice()).expect("compiled");
        assert_eq!(compiling, (nice() + NICE).min(19));
    }
}
