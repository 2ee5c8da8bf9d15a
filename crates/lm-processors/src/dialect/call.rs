//! Syntax of tool calls: their markers, and the bodies that are not JSON or markup.

use super::{JsonCall, ParameterCall, Tags};

/// A call syntax: `section.open (call.open BODY call.close) separator … section.close`.
#[derive(Debug, Clone, Copy)]
pub struct CallSyntax {
    /// Markers around all calls of a reply; both may be empty.
    pub section: Tags,
    /// Separator of two calls: layout, or a text such as `; ` whose whitespace is layout.
    pub separator: &'static str,
    /// Markers around each call. If these and the section's are empty, the body's first character is the
    /// marker.
    pub call: Tags,
    /// Form of the body between them.
    pub body: CallBody,
    /// Handling of calls of undeclared tools, unless the caller overrides it.
    pub undeclared: Undeclared,
    /// Time at which calls are reported.
    pub(crate) reported: Reported,
}

impl CallSyntax {
    /// Calls between these markers, without a section.
    pub const fn new(call: Tags, body: CallBody) -> Self {
        Self {
            section: Tags::NONE,
            separator: "",
            call,
            body,
            undeclared: Undeclared::Call,
            reported: Reported::Streaming,
        }
    }
}

/// Time at which calls are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reported {
    /// During the call.
    Streaming,
    /// At the end of their section. One fault before that makes the whole section malformed.
    AtSectionEnd,
}

/// Handling of a call of an undeclared tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Undeclared {
    /// A normal call; the tool runner answers that there is no such tool.
    Call,
    /// Malformed.
    Malformed,
    /// Text of the answer, as an example of a call in prose is.
    Text,
}

/// Encoding of a call's name and arguments.
#[derive(Debug, Clone, Copy)]
pub enum CallBody {
    /// A JSON value: `{"name": …, "arguments": {…}}`, or a list of them.
    Json(JsonCall),
    /// The name as text, then the arguments as a JSON object.
    Named(NamedCall),
    /// The name as text, then each argument as a key and a value in markup.
    Parameters(&'static ParameterCall),
    /// Python: `f(a=1, b='x')`, or a list of such calls.
    Python(PythonCall),
    /// `call:f{a:1,b:<escape>x<escape>}`.
    Braces(BraceCall),
}

/// `before_name` NAME `id`… `after_name` {…} `after_arguments`.
#[derive(Debug, Clone, Copy)]
pub struct NamedCall {
    /// Text before the name; the parser accepts calls without it.
    pub before_name: &'static str,
    /// Text before and after the name in another version of the format, which the parser accepts as well; may
    /// be empty.
    pub(crate) other: (&'static str, &'static str),
    /// Text that ends the name; the parser also ends it at the `{` of the arguments.
    pub after_name: &'static str,
    /// Position of the call's id.
    pub id: NamedId,
    /// Text after the arguments, before the call's closing marker; the parser accepts calls without it.
    pub after_arguments: &'static str,
    /// Handling of a call without a name.
    pub(crate) nameless: Nameless,
    /// Name that marks text of the answer instead of a call: `all` in functionary v3.2.
    pub answer_name: Option<&'static str>,
}

impl NamedCall {
    /// NAME `after_name` {…}, without an id.
    pub const fn new(after_name: &'static str) -> Self {
        Self {
            before_name: "",
            other: ("", ""),
            after_name,
            id: NamedId::None,
            after_arguments: "",
            nameless: Nameless::Malformed,
            answer_name: None,
        }
    }
}

/// Handling of a call without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nameless {
    /// Malformed.
    Malformed,
    /// A call of a tool with an empty name; the tool runner answers that there is no such tool.
    Call,
}

/// Position of the id in a call that starts with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedId {
    /// No id.
    None,
    /// After this marker, which follows the name; the parser accepts calls without it.
    After(&'static str),
    /// The id is `before_name`, the name and `:INDEX` together.
    NameAndIndex,
}

/// `f(a=1, b='x')`.
#[derive(Debug, Clone, Copy)]
pub struct PythonCall {
    /// Form of several calls: in brackets, or one per line without brackets.
    pub list: PythonList,
    /// Quote character that the family writes.
    pub quote: char,
}

impl PythonCall {
    /// A list of calls.
    pub const LIST: Self = Self { list: PythonList::Brackets, quote: '\'' };
    /// One call per line.
    pub const LINES: Self = Self { list: PythonList::Lines, quote: '"' };
}

/// Form of several Python calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonList {
    /// `[f(), g()]`
    Brackets,
    /// One per line.
    Lines,
}

/// `open` NAME `{k:v,…}`.
#[derive(Debug, Clone, Copy)]
pub struct BraceCall {
    /// Text before the name: `call:`.
    pub before_name: &'static str,
    /// Delimiter on both sides of a string: `<escape>`.
    pub quote: &'static str,
}
