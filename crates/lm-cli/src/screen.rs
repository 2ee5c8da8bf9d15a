//! Rendering of replies: the answer on standard output; reasoning, tool results and notes dim on standard
//! error.

use std::io::{self, IsTerminal, Write};

use lm_conversation::ConversationEvent;
use lm_markdown::{Colours, TerminalStream};
use lm_session::PrefillProgress;
use lm_template::{Content, Message, ToolCall, Value};
use serde::Serialize;

use crate::prefill_bar::PrefillBar;

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Columns of a terminal that does not say its width.
const DEFAULT_COLUMNS: usize = 80;

/// Returns true if the environment allows colours: `NO_COLOR` is unset or empty and the terminal is not
/// `dumb`.
pub fn colour_wanted() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Use of escape codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Style {
    Plain,
    Coloured,
}

/// One of the two outputs.
struct Stream {
    out: Box<dyn Write + Send>,
    style: Style,
}

impl Stream {
    fn new(out: impl Write + Send + 'static, is_terminal: bool) -> Self {
        let style = if is_terminal && colour_wanted() { Style::Coloured } else { Style::Plain };
        Self { out: Box::new(out), style }
    }

    fn painted(&self, code: &str, text: &str) -> String {
        let text = replace_control_chars(text);
        if self.style == Style::Coloured { format!("{code}{text}{PLAIN}") } else { text }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// Output of replies: the answer on standard output, reasoning and notes on standard error.
pub struct Screen {
    answer: Stream,
    notes: Stream,
    /// Stream of tool calls.
    calls: CallsTo,
    reasoning: Reasoning,
    /// Content of the unfinished line.
    line: Open,
    /// Renderer of the answer's Markdown; `None` shows the answer as it is.
    markdown: Option<TerminalStream>,
    prefill: PrefillBar,
}

/// Output stream of tool calls: standard output where the calls are the answer, standard error where this
/// program runs them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallsTo {
    Answer,
    Notes,
}

/// Display of the reasoning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reasoning {
    Shown,
    Hidden,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    Nothing,
    Text,
    Reasoning,
}

impl Screen {
    /// Creates a screen on standard output and standard error.
    pub fn new(calls: CallsTo, hide_thinking: bool) -> Self {
        let reasoning = if hide_thinking { Reasoning::Hidden } else { Reasoning::Shown };
        let answer = Stream::new(io::stdout(), io::stdout().is_terminal());
        let notes = Stream::new(io::stderr(), io::stderr().is_terminal());
        Self {
            answer,
            notes,
            calls,
            reasoning,
            line: Open::Nothing,
            markdown: None,
            prefill: PrefillBar::new(),
        }
    }

    /// Formats the Markdown of answers from now on, if standard output is a terminal.
    pub fn format_answers(mut self) -> Self {
        let colours = if self.answer.style == Style::Coloured { Colours::Ansi } else { Colours::None };
        self.markdown = io::stdout().is_terminal().then(|| TerminalStream::new(columns(), colours));
        self
    }

    /// Shows or hides the reasoning from now on.
    pub fn set_reasoning(&mut self, reasoning: Reasoning) {
        self.reasoning = reasoning;
    }

    /// Display of the reasoning.
    pub fn reasoning_display(&self) -> Reasoning {
        self.reasoning
    }

    /// Shows an event of a reply, if it is of a shown kind.
    pub fn event(&mut self, event: &ConversationEvent) -> io::Result<()> {
        match event {
            ConversationEvent::Text(text) => self.text(text),
            ConversationEvent::Reasoning(text) => self.reasoning(text),
            ConversationEvent::ToolCall(call) => self.tool_call(call),
            ConversationEvent::Prefill(progress) => {
                self.prefill(progress);
                Ok(())
            }
            ConversationEvent::Dropped(dropped) => {
                let (turns, s) = (dropped.turns, if dropped.turns == 1 { "" } else { "s" });
                self.note(&format!("(the context is full: {turns} more turn{s}, the oldest, left it)"))
            }
            ConversationEvent::ContextShift(shift) => {
                let tokens = shift.reply_tokens;
                self.note(&format!(
                    "(the context is full: earlier turns and {tokens} more tokens of the reply left it)"
                ))
            }
            _ => Ok(()),
        }
    }

    /// Shows the progress of a prefill until the next output; one of less than a second is not shown.
    pub fn prefill(&mut self, progress: &PrefillProgress) {
        if self.line == Open::Nothing {
            self.prefill.show(progress);
        }
    }

    /// Begins to wait for a reply.
    pub fn wait(&mut self) {
        self.prefill.restart();
    }

    /// Shows a piece of the answer.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.prefill.restart();
        if self.line == Open::Reasoning {
            self.end_line()?;
        }
        self.line = Open::Text;
        let Some(markdown) = &mut self.markdown else {
            return self.answer.write(&replace_control_chars(text));
        };
        markdown.set_width(columns());
        let formatted = markdown.push(text);
        self.answer.write(&formatted)
    }

    /// Prints a piece of reasoning, dimmed, or prefixed with `[thinking]` without colours. Prints nothing if
    /// reasoning is hidden.
    pub fn reasoning(&mut self, text: &str) -> io::Result<()> {
        if self.reasoning == Reasoning::Hidden {
            return Ok(());
        }
        self.prefill.restart();
        if self.line != Open::Reasoning {
            self.end_line()?;
            self.notes.write(if self.notes.style == Style::Coloured { DIM } else { "[thinking] " })?;
        }
        self.line = Open::Reasoning;
        self.notes.write(&replace_control_chars(text))
    }

    /// Shows a complete call.
    pub fn tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.end_line()?;
        let stream = if self.calls == CallsTo::Answer { &mut self.answer } else { &mut self.notes };
        let name = stream.painted(BOLD, &one_line(&call.name));
        stream.write(&format!("→ {name}({})\n", one_line(&json_line(&call.arguments))))
    }

    /// Shows the result of a call.
    pub fn tool_result(&mut self, result: &Message) -> io::Result<()> {
        let text = match &result.content {
            Content::Json(value) => json_line(value),
            content => content.text_with_notes(),
        };
        self.note(&format!("← {text}"))
    }

    /// Shows a message of the program itself.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        let line = self.notes.painted(DIM, text);
        self.notes.write(&format!("{line}\n"))
    }

    /// Ends an unfinished line.
    pub fn end_line(&mut self) -> io::Result<()> {
        self.prefill.restart();
        match std::mem::replace(&mut self.line, Open::Nothing) {
            Open::Nothing => self.answer.out.flush(),
            Open::Text => {
                let rest = self.markdown.as_mut().map(TerminalStream::finish).unwrap_or_default();
                self.answer.write(&format!("{rest}\n"))
            }
            Open::Reasoning if self.notes.style == Style::Coloured => self.notes.write(&format!("{PLAIN}\n")),
            Open::Reasoning => self.notes.write("\n"),
        }
    }
}

/// Columns of the terminal of standard output.
fn columns() -> usize {
    terminal_size::terminal_size().map_or(DEFAULT_COLUMNS, |(width, _)| usize::from(width.0))
}

/// Replaces control characters by U+FFFD; line ends and tabs stay.
pub fn replace_control_chars(text: &str) -> String {
    let replaced = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(replaced).collect()
}

/// Formats a text from others on one line: control characters, other invisible ones, and those that change
/// the direction of text are escaped as in Rust, `\n` and `\u{202e}`.
pub fn one_line(text: &str) -> String {
    let is_hidden = |c: char| {
        matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    let shown = |c: char| match c.is_control() || is_hidden(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Formats JSON on one line with a space after `:` and `,`.
pub fn json_line(value: &impl Serialize) -> String {
    struct Spaced;
    impl serde_json::ser::Formatter for Spaced {
        fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
            out.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
            out.write_all(if first { b"" } else { b", " })
        }
        fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
            out.write_all(b": ")
        }
    }
    let mut bytes = Vec::new();
    match value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Spaced)) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        // Our maps have text keys: only a value that fails to serialise gets here.
        Err(error) => Value::String(error.to_string()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    /// Bytes that two writers share.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Shared {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
        }
    }

    /// Runs `show`; returns standard output and standard error.
    fn shown(
        style: Style,
        calls: CallsTo,
        show: impl FnOnce(&mut Screen) -> io::Result<()>,
    ) -> (String, String) {
        let (out, err) = (Shared::default(), Shared::default());
        let stream = |out: &Shared| Stream { out: Box::new(out.clone()), style };
        let (answer, notes) = (stream(&out), stream(&err));
        let (reasoning, line) = (Reasoning::Shown, Open::Nothing);
        let (markdown, prefill) = (None, PrefillBar::new());
        let mut screen = Screen { answer, notes, calls, reasoning, line, markdown, prefill };
        show(&mut screen).and_then(|()| screen.end_line()).expect("memory takes every write");
        (out.text(), err.text())
    }

    fn reply(screen: &mut Screen) -> io::Result<()> {
        let arguments = json!({"location": "Paris", "days": [1, 2]});
        let call = ToolCall::new("get_weather", arguments.as_object().cloned().unwrap_or_default());
        screen.reasoning("Let me")?;
        screen.reasoning(" look.")?;
        screen.tool_call(&call)?;
        screen.tool_result(&Message::tool(None, "get_weather", json!({"temperature": 15})))?;
        screen.text("It is ")?;
        screen.text("15.")
    }

    #[test]
    fn plain_reply_prints_answer_without_escape_codes() {
        let (out, err) = shown(Style::Plain, CallsTo::Notes, reply);
        assert_eq!(out, "It is 15.\n");
        let call = "→ get_weather({\"location\": \"Paris\", \"days\": [1, 2]})\n";
        assert_eq!(err, format!("[thinking] Let me look.\n{call}← {{\"temperature\": 15}}\n"));
        assert_eq!(shown(Style::Plain, CallsTo::Answer, reply).0, format!("{call}It is 15.\n"));
    }

    #[test]
    fn coloured_reply_dims_reasoning_and_results() {
        let (out, err) = shown(Style::Coloured, CallsTo::Notes, reply);
        assert_eq!(out, "It is 15.\n");
        let expected = "\x1b[2mLet me look.\x1b[0m\n→ \x1b[1mget_weather\x1b[0m({\"location\": \"Paris\", \"days\": [1, 2]})\n\x1b[2m← {\"temperature\": 15}\x1b[0m\n";
        assert_eq!(err, expected);
    }

    #[test]
    fn formatted_answer_is_complete_before_what_follows_it() {
        let (out, err) = shown(Style::Plain, CallsTo::Notes, |screen| {
            screen.markdown = Some(TerminalStream::new(20, Colours::None));
            screen.text("# Title\n\nSome *te")?;
            screen.text("xt* and\n\n| a |\n|---|\n| b |")?;
            screen.note("(a note)")?;
            screen.text("- next")
        });
        assert_eq!(out, "Title\n\nSome text and\n\na\n─\nb\n• next\n");
        assert_eq!(err, "(a note)\n");
    }

    #[test]
    fn hidden_reasoning_is_not_shown() {
        let (out, err) = shown(Style::Plain, CallsTo::Notes, |screen| {
            screen.set_reasoning(Reasoning::Hidden);
            screen.reasoning("Let me look.")?;
            screen.text("15")
        });
        assert_eq!((out.as_str(), err.as_str()), ("15\n", ""));
    }

    #[test]
    fn model_output_cannot_control_the_terminal() {
        let (text, _) =
            shown(Style::Coloured, CallsTo::Notes, |screen| screen.text("a\x1b[2Jb\tc\n\u{9b}d\x07"));
        assert_eq!(text, "a\u{fffd}[2Jb\tc\n\u{fffd}d\u{fffd}\n");
    }

    #[test]
    fn foreign_names_are_shown_on_one_line() {
        let shown_as = [
            ("a\nerror: b\r\tc", r"a\nerror: b\r\tc"),
            ("\x1b[2J\u{9b}m\x7f", r"\u{1b}[2J\u{9b}m\u{7f}"),
            ("a\u{202e}b\u{200b}c\u{2028}d", r"a\u{202e}b\u{200b}c\u{2028}d"),
            ("größe 🌍 \\ \"'", "größe 🌍 \\ \"'"),
        ];
        for (text, expected) in shown_as {
            assert_eq!(one_line(text), expected);
        }
        let call = ToolCall::new("a\n← 5", Default::default());
        assert_eq!(
            shown(Style::Plain, CallsTo::Notes, |screen| screen.tool_call(&call)).1,
            "→ a\\n← 5({})\n"
        );
    }
}
