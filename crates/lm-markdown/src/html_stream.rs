//! HTML of a growing text, a part at a time.

use crate::code::Highlighter;
use crate::segments::{Part, Segments};
use crate::{html, parse, sanitise::sanitised};

/// A part of the page: sanitised HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Elements of blocks.
    Html(String),
    /// Begin of a code block with this language, which is text; may be empty.
    CodeStart(String),
    /// Content of the code block's element `code`.
    CodeLines(String),
    /// End of the code block.
    CodeEnd,
}

/// Renderer of a growing text. Only the last, unfinished part is rendered again.
///
/// The pieces of a text are the same wherever it is cut; neighbouring [`Piece::CodeLines`] count as one.
#[derive(Clone, Default)]
pub struct HtmlStream {
    segments: Segments,
    code: Option<Highlighter>,
}

impl HtmlStream {
    /// Creates a renderer of an empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of text; returns the pieces that it completes.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        let parts = self.segments.push(text);
        parts.into_iter().map(|part| piece(part, &mut self.code)).collect()
    }

    /// Pieces of the rest, which the next piece of text may change.
    pub fn open(&self) -> Vec<Piece> {
        self.clone().finish()
    }

    /// Ends the text; returns the last pieces.
    pub fn finish(self) -> Vec<Piece> {
        let Self { segments, mut code } = self;
        segments.finish().into_iter().map(|part| piece(part, &mut code)).collect()
    }
}

fn piece(part: Part, code: &mut Option<Highlighter>) -> Piece {
    match part {
        Part::Blocks(text) => Piece::Html(sanitised(&html::blocks(&parse(&text)))),
        Part::CodeStart(language) => {
            *code = Some(Highlighter::new(&language));
            Piece::CodeStart(crate::characters::visible(&language).into_owned())
        }
        Part::CodeLines(lines) => {
            let mut out = String::new();
            let highlighter = code.get_or_insert_with(|| Highlighter::new(""));
            for line in crate::characters::visible(&lines).split_inclusive('\n') {
                html::push_code(&highlighter.line(line), &mut out);
            }
            Piece::CodeLines(sanitised(&out))
        }
        Part::CodeEnd => {
            *code = None;
            Piece::CodeEnd
        }
    }
}
