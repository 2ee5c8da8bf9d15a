//! Colours of code.

use std::sync::OnceLock;
use std::time::Duration;

use cpu_time::ThreadTime;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

/// Longest line that is coloured, in bytes.
const MAX_LINE: usize = 1_000;
/// Longest code block that is coloured to its end, in bytes.
const MAX_BLOCK: usize = 128 << 10;
/// Time of the processor that the colours of one block may take.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Kind of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Plain,
    Comment,
    Constant,
    Deleted,
    Function,
    Inserted,
    Keyword,
    String,
    Type,
}

/// Scopes of TextMate grammars and the kinds that they mean; the first that fits the innermost scope counts.
const SCOPES: [(&str, Token); 24] = [
    ("comment", Token::Comment),
    ("punctuation.definition.comment", Token::Comment),
    ("punctuation.definition.string", Token::String),
    ("string", Token::String),
    ("constant", Token::Constant),
    ("keyword.operator.word", Token::Keyword),
    ("keyword.operator.logical.python", Token::Keyword),
    ("keyword.operator", Token::Plain),
    ("keyword", Token::Keyword),
    ("storage.type.numeric", Token::Constant),
    ("storage", Token::Keyword),
    ("entity.name.function", Token::Function),
    ("entity.name.tag", Token::Keyword),
    ("entity.name", Token::Type),
    ("entity.other.attribute-name", Token::Type),
    ("entity.other.inherited-class", Token::Type),
    ("support.function", Token::Function),
    ("variable.function", Token::Function),
    ("support.type", Token::Type),
    ("support.class", Token::Type),
    ("variable.language", Token::Keyword),
    ("markup.inserted", Token::Inserted),
    ("markup.deleted", Token::Deleted),
    ("meta.diff.header", Token::Comment),
];

/// Names of languages that models use, and the names of their grammars.
const ALIASES: [(&str, &str); 9] = [
    ("console", "sh"),
    ("golang", "go"),
    ("jsonc", "json"),
    ("jsonl", "json"),
    ("python3", "py"),
    ("shell", "sh"),
    ("shell-session", "sh"),
    ("svelte", "html"),
    ("zsh", "sh"),
];

fn grammars() -> &'static SyntaxSet {
    static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
    GRAMMARS.get_or_init(two_face::syntax::extra_newlines)
}

fn scopes() -> &'static [(Scope, Token)] {
    static ALL: OnceLock<Vec<(Scope, Token)>> = OnceLock::new();
    ALL.get_or_init(|| {
        SCOPES.iter().filter_map(|(name, token)| Some((Scope::new(name).ok()?, *token))).collect()
    })
}

/// State of a code block after its lines so far.
#[derive(Clone)]
pub(crate) struct Highlighter {
    /// `None` for an unknown language, and beyond the limits.
    state: Option<(ParseState, ScopeStack)>,
    bytes: usize,
    time: Duration,
}

impl Highlighter {
    pub fn new(language: &str) -> Self {
        let language = language.to_ascii_lowercase();
        let name = ALIASES.iter().find(|(alias, _)| *alias == language).map_or(&*language, |(_, name)| *name);
        let grammar = if name.is_empty() { None } else { grammars().find_syntax_by_token(name) };
        let state = grammar.filter(|grammar| grammar.name != "Plain Text");
        let state = state.map(|grammar| (ParseState::new(grammar), ScopeStack::new()));
        Self { state, bytes: 0, time: Duration::ZERO }
    }

    /// Splits the next line, which may have a line break, to pieces of one kind.
    pub fn line<'a>(&mut self, line: &'a str) -> Vec<(Token, &'a str)> {
        self.bytes += line.len();
        if self.bytes > MAX_BLOCK || self.time > MAX_TIME {
            self.state = None;
        }
        let began = ThreadTime::now();
        let pieces = self.coloured(line).unwrap_or_else(|| vec![(Token::Plain, line)]);
        self.time += began.elapsed();
        pieces
    }

    fn coloured<'a>(&mut self, line: &'a str) -> Option<Vec<(Token, &'a str)>> {
        let (parser, stack) = self.state.as_mut().filter(|_| line.len() <= MAX_LINE)?;
        let Ok(ops) = parser.parse_line(line, grammars()) else {
            self.state = None;
            return None;
        };
        let mut pieces: Vec<(Token, &str)> = Vec::new();
        let mut from = 0;
        let mut add = |token, piece: std::ops::Range<usize>| match pieces.last_mut() {
            Some((last, text)) if *last == token => *text = &line[piece.start - text.len()..piece.end],
            _ => pieces.push((token, &line[piece])),
        };
        for (at, op) in ops {
            let at = at.clamp(from, line.len());
            if at > from {
                add(kind(stack), from..at);
                from = at;
            }
            stack.apply(&op).ok()?;
        }
        if from < line.len() {
            add(kind(stack), from..line.len());
        }
        Some(pieces)
    }
}

fn kind(stack: &ScopeStack) -> Token {
    let of = |scope: &Scope| {
        scopes().iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, token)| *token)
    };
    stack.scopes.iter().rev().find_map(of).unwrap_or(Token::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(language: &str, line: &str) -> Vec<(Token, String)> {
        let pieces = Highlighter::new(language).line(line);
        pieces.into_iter().map(|(token, text)| (token, text.trim().to_owned())).collect()
    }

    #[test]
    fn code_of_common_languages_has_colours() {
        for language in [
            "bash",
            "c",
            "c++",
            "cpp",
            "cs",
            "css",
            "diff",
            "dockerfile",
            "go",
            "html",
            "java",
            "javascript",
            "js",
            "json",
            "kotlin",
            "lua",
            "makefile",
            "php",
            "python",
            "py",
            "ruby",
            "rust",
            "scala",
            "shell",
            "sql",
            "swift",
            "toml",
            "typescript",
            "ts",
            "tsx",
            "xml",
            "yaml",
        ] {
            assert!(Highlighter::new(language).state.is_some(), "{language}");
        }
        assert_eq!(kinds("nonsense", "let x"), [(Token::Plain, "let x".to_owned())]);
        let rust = kinds("rust", "let x = \"a\"; // b\n");
        for expected in [(Token::Keyword, "let"), (Token::String, "\"a\""), (Token::Comment, "// b")] {
            assert!(rust.contains(&(expected.0, expected.1.to_owned())), "{rust:?}");
        }
    }
}
