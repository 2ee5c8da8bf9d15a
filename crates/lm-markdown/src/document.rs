//! Document model of Markdown, which both outputs are rendered from.

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Heading of a level from 1 to 6.
    Heading {
        /// Level, 1 for the largest.
        level: u8,
        /// The text.
        content: Vec<Inline>,
    },
    /// Paragraph.
    Paragraph(Vec<Inline>),
    /// Text of a tight list item: a paragraph without space around it.
    Plain(Vec<Inline>),
    /// Code block.
    Code {
        /// First word after the opening fence; may be empty.
        language: String,
        /// Lines of code, each with its line break.
        text: String,
    },
    /// List.
    List {
        /// Number of the first item; `None` for a bullet list.
        start: Option<u64>,
        /// Items.
        items: Vec<Item>,
    },
    /// Block quote.
    Quote(Vec<Block>),
    /// Table.
    Table {
        /// Alignment of each column.
        alignments: Vec<Alignment>,
        /// Cells of the header.
        head: Vec<Vec<Inline>>,
        /// Cells of each row, as many as the header has.
        rows: Vec<Vec<Vec<Inline>>>,
    },
    /// Thematic break.
    Rule,
    /// Definition of a footnote.
    Footnote {
        /// Label.
        label: String,
        /// Text.
        blocks: Vec<Block>,
    },
}

/// Item of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// State of the checkbox, for an item of a task list.
    pub task: Option<bool>,
    /// Content.
    pub blocks: Vec<Block>,
}

/// Alignment of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alignment {
    /// To the left, the default.
    #[default]
    Left,
    /// Centred.
    Center,
    /// To the right.
    Right,
}

/// Part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Inline {
    /// Text.
    Text(String),
    /// Code span.
    Code(String),
    /// Formula in LaTeX, without its delimiters.
    Formula {
        /// LaTeX source.
        tex: String,
        /// Displayed on a line of its own.
        display: bool,
    },
    /// Emphasis.
    Emphasis(Vec<Inline>),
    /// Strong emphasis.
    Strong(Vec<Inline>),
    /// Struck text.
    Strike(Vec<Inline>),
    /// Link or image: images are not fetched.
    Link {
        /// Address as written; not checked.
        address: String,
        /// Text; the alternative text of an image.
        content: Vec<Inline>,
    },
    /// HTML tag without attributes that is shown as such: the name, with `/` before it for an end tag.
    Tag(&'static str),
    /// Reference to a footnote, by its label.
    Footnote(String),
    /// Hard line break.
    Break,
    /// Line break of the source.
    SoftBreak,
}
