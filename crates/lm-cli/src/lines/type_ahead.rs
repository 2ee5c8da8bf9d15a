//! Keys that are typed or pasted while no prompt is shown: they wait for the next one.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::quotes;

/// Most bytes that wait.
const MAX_BYTES: usize = 4 << 20;
/// Longest time that the reader needs to end, and time after which Esc is no beginning of other codes.
const POLL_NANOS: i64 = 20_000_000;

/// Stands for the key Enter, other than the line breaks of a pasted text.
const ENTER: char = '\0';

const PASTE_START: &str = "\x1b[200~";
const PASTE_END: &str = "\x1b[201~";

/// Modes of the terminal before the reader changed them; `None` while it does not run.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Gives the terminal its modes back, before the program ends.
pub fn restore_terminal() {
    if let Some(modes) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &modes);
        set_bracketed_paste(false);
    }
}

/// Called for the key Esc.
pub type OnEscape = Arc<dyn Fn() + Send + Sync>;

/// Reader of the keys between prompts.
pub struct TypeAhead {
    on_escape: OnEscape,
    reader: Option<Reader>,
    typed: Vec<u8>,
    /// Text that was taken and put back.
    rest: String,
}

struct Reader {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<u8>>,
}

impl TypeAhead {
    /// Creates a reader that does not read yet.
    pub fn new(on_escape: OnEscape) -> Self {
        Self { on_escape, reader: None, typed: Vec::new(), rest: String::new() }
    }

    /// Begins to read keys. The terminal does not show them meanwhile.
    pub fn start(&mut self) {
        if self.reader.is_some() || !take_terminal() {
            return;
        }
        let ends = Arc::new(AtomicBool::new(false));
        let (seen, on_escape) = (ends.clone(), self.on_escape.clone());
        let thread = thread::spawn(move || read_until(&seen, &*on_escape));
        self.reader = Some(Reader { ends, thread });
    }

    /// Ends the reading, for a prompt.
    pub fn stop(&mut self) {
        let Some(Reader { ends, thread }) = self.reader.take() else { return };
        ends.store(true, Ordering::Relaxed);
        self.typed.extend(thread.join().unwrap_or_default());
        restore_terminal();
    }

    /// Takes the text that was typed, with line breaks for Enter, but not at its end.
    pub fn take(&mut self) -> String {
        self.take_keys().replace(ENTER, "\n").trim_end_matches('\n').to_owned()
    }

    /// Takes the first line that was ended with Enter; one with a Tab waits for the prompt, which completes
    /// it.
    pub fn take_line(&mut self) -> Option<String> {
        let keys = self.take_keys();
        let line = keys.split_once(ENTER).filter(|(line, _)| !quotes::is_open(line) && !line.contains('\t'));
        self.rest = line.map_or(&*keys, |(_, rest)| rest).to_owned();
        line.map(|(line, _)| line.to_owned())
    }

    fn take_keys(&mut self) -> String {
        let typed = std::mem::take(&mut self.typed);
        std::mem::take(&mut self.rest) + &text(&String::from_utf8_lossy(&typed))
    }
}

impl Drop for TypeAhead {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Switches the terminal to single keys that are not shown; Ctrl-C stays a signal, and keeps what was typed
/// before it. Returns false if it is no
/// terminal.
fn take_terminal() -> bool {
    let stdin = rustix::stdio::stdin();
    let Ok(before) = tcgetattr(stdin) else { return false };
    let mut modes = before.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    modes.local_modes |= LocalModes::NOFLSH;
    if tcsetattr(stdin, OptionalActions::Now, &modes).is_err() {
        return false;
    }
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    set_bracketed_paste(true);
    true
}

fn set_bracketed_paste(is_on: bool) {
    let mut stdout = io::stdout();
    if stdout.is_terminal() {
        let code: &[u8] = if is_on { b"\x1b[?2004h" } else { b"\x1b[?2004l" };
        let _ = stdout.write_all(code).and_then(|()| stdout.flush());
    }
}

/// Reads keys. Esc alone, other than as the beginning of the codes of another key, is not kept.
fn read_until(ends: &AtomicBool, on_escape: &dyn Fn()) -> Vec<u8> {
    let stdin = rustix::stdio::stdin();
    let timeout = Timespec { tv_sec: 0, tv_nsec: POLL_NANOS };
    let mut typed = Vec::new();
    let mut bytes = [0; 4096];
    let mut is_escape = false;
    while !ends.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => {
                if std::mem::take(&mut is_escape) {
                    typed.pop();
                    on_escape();
                }
                continue;
            }
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        match rustix::io::read(stdin, &mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(count) if typed.len() < MAX_BYTES => {
                typed.extend_from_slice(&bytes[..count]);
                is_escape = bytes[..count] == *b"\x1b";
            }
            Ok(_) => {}
        }
    }
    typed
}

/// The text of keys: Backspace and Ctrl-U remove, pasted text is as it is, Enter is [`ENTER`], Alt-Enter a
/// line break, other keys without a character are left out.
fn text(keys: &str) -> String {
    let mut out = String::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        if let Some(pasted) = rest.strip_prefix(PASTE_START) {
            let (inner, after) = pasted.split_once(PASTE_END).unwrap_or((pasted, ""));
            out.extend(inner.replace("\r\n", "\n").replace('\r', "\n").chars().filter(|c| is_text(*c)));
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\x7f' | '\x08' => drop(out.pop()),
            '\x15' => out.truncate(out.rfind(['\n', ENTER]).map_or(0, |at| at + 1)),
            '\x1b' if rest.starts_with(['\r', '\n']) => {
                out.push('\n');
                rest = &rest[1..];
            }
            '\x1b' => rest = after_escape(rest),
            '\r' | '\n' => out.push(ENTER),
            c if is_text(c) => out.push(c),
            _ => {}
        }
    }
    out
}

fn is_text(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}

/// The keys after an escape sequence.
fn after_escape(rest: &str) -> &str {
    match rest.strip_prefix('[') {
        Some(codes) => codes.find(|c: char| ('\x40'..='\x7e').contains(&c)).map_or("", |at| &codes[at + 1..]),
        None => match rest.strip_prefix('O') {
            Some(code) => code.get(1..).unwrap_or_default(),
            None => rest,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> TypeAhead {
        let mut typed = TypeAhead::new(Arc::new(|| {}));
        typed.typed = keys.as_bytes().to_vec();
        typed
    }

    #[test]
    fn keys_are_text() {
        for (keys, expected) in [
            ("hello\n", "hello"),
            ("one\ntwo\n\n", "one\ntwo"),
            ("helo\x7flo", "hello"),
            ("wrong\x15right", "right"),
            ("a\x1b[Ab\x1b[1;5Cc\x1bOPd", "abcd"),
            ("one\x1b\ntwo", "one\ntwo"),
            (
                "say \x1b[200~fn main() {\r\n\tx\x1b[31m\r}\r\x1b[201~ now\n",
                "say fn main() {\n\tx[31m\n}\n now",
            ),
            ("\x1b[200~not ended", "not ended"),
            ("\x04\x00a", "a"),
        ] {
            let mut typed = typed(keys);
            assert_eq!(typed.take(), expected, "{keys:?}");
        }
    }

    #[test]
    fn first_line_is_taken_alone() {
        let keys = "on\x1b\re\n\x1b[200~two\nthree\x1b[201~\nfour";
        let mut typed = typed(keys);
        let lines: Vec<_> = std::iter::from_fn(|| typed.take_line()).collect();
        assert_eq!(lines, ["on\ne", "two\nthree"]);
        assert_eq!(typed.take(), "four");
        let mut open = self::typed("\"\"\"one\ntwo");
        assert_eq!(open.take_line(), None);
        assert_eq!(open.take(), "\"\"\"one\ntwo");
    }
}
