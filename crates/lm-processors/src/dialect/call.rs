//! Calls: what stands around them, and the bodies that are not JSON or markup.

use super::{JsonCall, ParameterCall, Tags};

/// One way to write calls: `section.open (call.open BODY call.close) separator … section.close`.
#[derive(Debug, Clone, Copy)]
pub struct CallSyntax {
    /// Markers around all calls of a reply; both may be empty.
    pub section: Tags,
    /// Between two calls: layout, or a text such as `; ` whose whitespace is layout.
    pub separator: &'static str,
    /// Markers around each call. When these and the section's are empty, the body's first character is the marker.
    pub call: Tags,
    /// What stands between them.
    pub body: CallBody,
    /// What becomes of a call of a tool that was not declared, unless the caller says otherwise.
    pub undeclared: Undeclared,
    /// When calls are reported.
    pub reported: Reported,
}

impl CallSyntax {
    /// Calls between these markers, without a section around them.
    pub const fn new(call: Tags, body: CallBody) -> Self {
        Self {
            section: Tags::NONE,
            separator: "",
            call,
            body,
            undeclared: Undeclared::Call,
            reported: Reported::AtOnce,
        }
    }
}

/// When calls are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// While they are written.
    AtOnce,
    /// When their section has ended. Until then one fault makes all of it malformed.
    WithSection,
}

/// What becomes of a call of a tool that was not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Undeclared {
    /// It is a call like any other; whoever runs tools answers that there is no such tool.
    Call,
    /// It is malformed.
    Malformed,
}

/// How a call says which tool and which arguments.
#[derive(Debug, Clone, Copy)]
pub enum CallBody {
    /// One JSON value: `{"name": …, "arguments": {…}}`, or a list of such.
    Json(JsonCall),
    /// The name as text, then the arguments as a JSON object.
    Named(NamedCall),
    /// The name as text, then each argument as a key and a value in markup.
    Parameters(&'static ParameterCall),
    /// Python: `f(a=1, b='x')`, or a list of such.
    Python(PythonCall),
    /// `call:f{a:1,b:<escape>x<escape>}`.
    Braces(BraceCall),
}

/// `before_name` NAME `id`… `after_name` {…} `after_arguments`.
#[derive(Debug, Clone, Copy)]
pub struct NamedCall {
    /// A text before the name; the parser takes calls without it.
    pub before_name: &'static str,
    /// The text that ends the name; the parser also takes the `{` of the arguments for its end.
    pub after_name: &'static str,
    /// How the call's id is written.
    pub id: NamedId,
    /// A text after the arguments, before the call's closing marker; the parser takes calls without it.
    pub after_arguments: &'static str,
    /// What a call without a name is.
    pub nameless: Nameless,
    /// The name that means text of the answer instead of a call: `all` in functionary v3.2.
    pub answer_name: Option<&'static str>,
}

impl NamedCall {
    /// NAME `after_name` {…}, without an id.
    pub const fn new(after_name: &'static str) -> Self {
        Self {
            before_name: "",
            after_name,
            id: NamedId::None,
            after_arguments: "",
            nameless: Nameless::Malformed,
            answer_name: None,
        }
    }
}

/// What a call without a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nameless {
    /// It is malformed.
    Malformed,
    /// A call of a tool whose name is empty: whoever runs tools answers that there is no such tool.
    Call,
}

/// Where the id of a call stands that begins with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedId {
    /// Nowhere.
    None,
    /// After this marker, which follows the name; the parser takes calls without it.
    After(&'static str),
    /// `before_name`, the name and `:INDEX` together are the id.
    NameAndIndex,
}

/// `f(a=1, b='x')`.
#[derive(Debug, Clone, Copy)]
pub struct PythonCall {
    /// Several calls in brackets, or each on its own line without brackets.
    pub list: PythonList,
    /// The quote the family writes.
    pub quote: char,
}

impl PythonCall {
    /// A list of calls.
    pub const LIST: Self = Self { list: PythonList::Brackets, quote: '\'' };
    /// One call a line.
    pub const LINES: Self = Self { list: PythonList::Lines, quote: '"' };
}

/// How several Python calls stand together.
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
    /// The text before the name: `call:`.
    pub before_name: &'static str,
    /// The text on both sides of a string: `<escape>`.
    pub quote: &'static str,
}
