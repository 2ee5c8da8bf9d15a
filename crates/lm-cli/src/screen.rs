//! Rendering of replies: text as it comes, reasoning and tool results dim, calls with name and arguments.

use std::io::{self, IsTerminal, Write};

use lm_conversation::ConversationEvent;
use lm_template::{Content, Message, ToolCall, Value};
use serde::Serialize;

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Returns true if the environment allows colours: `NO_COLOR` is unset or empty and the terminal is not `dumb`.
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

/// Output of replies.
pub struct Screen<W> {
    out: W,
    style: Style,
    /// Content of the unfinished line.
    line: Open,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    Nothing,
    Text,
    Reasoning,
}

impl Screen<io::Stdout> {
    pub fn stdout() -> Self {
        let coloured = io::stdout().is_terminal() && colour_wanted();
        Self::new(io::stdout(), if coloured { Style::Coloured } else { Style::Plain })
    }
}

impl<W: Write> Screen<W> {
    pub fn new(out: W, style: Style) -> Self {
        Self { out, style, line: Open::Nothing }
    }

    /// Shows an event of a reply, if it is of a shown kind.
    pub fn event(&mut self, event: &ConversationEvent) -> io::Result<()> {
        match event {
            ConversationEvent::Text(text) => self.text(text),
            ConversationEvent::Reasoning(text) => self.reasoning(text),
            ConversationEvent::ToolCall(call) => self.tool_call(call),
            _ => Ok(()),
        }
    }

    /// Shows a piece of the answer.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        if self.line == Open::Reasoning {
            self.end_line()?;
        }
        self.line = Open::Text;
        self.write(text)
    }

    /// Shows a piece of the reasoning; without colours it is marked by `[thinking]`.
    pub fn reasoning(&mut self, text: &str) -> io::Result<()> {
        if self.line != Open::Reasoning {
            self.end_line()?;
            self.out.write_all(if self.style == Style::Coloured { DIM } else { "[thinking] " }.as_bytes())?;
        }
        self.line = Open::Reasoning;
        self.write(text)
    }

    /// Shows a complete call.
    pub fn tool_call(&mut self, call: &ToolCall) -> io::Result<()> {
        self.end_line()?;
        let name = self.painted(BOLD, &call.name);
        writeln!(self.out, "→ {name}({})", visible(&json_line(&call.arguments)))
    }

    /// Shows the result of a call.
    pub fn tool_result(&mut self, result: &Message) -> io::Result<()> {
        self.end_line()?;
        let text = match &result.content {
            Content::Json(value) => json_line(value),
            content => content.text().to_string(),
        };
        let line = self.painted(DIM, &format!("← {text}"));
        writeln!(self.out, "{line}")
    }

    /// Shows a message of the program itself.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        let line = self.painted(DIM, text);
        writeln!(self.out, "{line}")
    }

    /// Ends an unfinished line.
    pub fn end_line(&mut self) -> io::Result<()> {
        if self.line == Open::Reasoning && self.style == Style::Coloured {
            self.out.write_all(PLAIN.as_bytes())?;
        }
        if self.line != Open::Nothing {
            writeln!(self.out)?;
        }
        self.line = Open::Nothing;
        self.out.flush()
    }

    fn painted(&self, code: &str, text: &str) -> String {
        let text = visible(text);
        if self.style == Style::Coloured { format!("{code}{text}{PLAIN}") } else { text }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(visible(text).as_bytes())?;
        self.out.flush()
    }
}

/// Replaces control characters by U+FFFD; line ends and tabs stay.
pub fn visible(text: &str) -> String {
    let shown = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
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

    fn shown(style: Style, show: impl FnOnce(&mut Screen<Vec<u8>>) -> io::Result<()>) -> String {
        let mut screen = Screen::new(Vec::new(), style);
        show(&mut screen).and_then(|()| screen.end_line()).expect("memory takes every write");
        String::from_utf8(screen.out).expect("text")
    }

    fn reply(screen: &mut Screen<Vec<u8>>) -> io::Result<()> {
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
    fn a_plain_reply_has_no_escape_codes() {
        let expected = "[thinking] Let me look.\n→ get_weather({\"location\": \"Paris\", \"days\": [1, 2]})\n← {\"temperature\": 15}\nIt is 15.\n";
        assert_eq!(shown(Style::Plain, reply), expected);
    }

    #[test]
    fn a_coloured_reply_dims_reasoning_and_results() {
        let expected = "\x1b[2mLet me look.\x1b[0m\n→ \x1b[1mget_weather\x1b[0m({\"location\": \"Paris\", \"days\": [1, 2]})\n\x1b[2m← {\"temperature\": 15}\x1b[0m\nIt is 15.\n";
        assert_eq!(shown(Style::Coloured, reply), expected);
    }

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        let text = shown(Style::Coloured, |screen| screen.text("a\x1b[2Jb\tc\n\u{9b}d\x07"));
        assert_eq!(text, "a\u{fffd}[2Jb\tc\n\u{fffd}d\u{fffd}\n");
    }
}
