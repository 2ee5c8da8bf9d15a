//! What a family's text looks like, as data. The parser reads by it and the grammar is written from it, so that the two
//! cannot disagree.
//!
//! Two kinds of text stand in a dialect. *Markers* (`open`, `close`, …) tell the parser where something begins or ends;
//! they must come as they are. *Layout* (`after_open`, `before_close`, `separator`, …) is the whitespace the family
//! writes between them: a grammar writes it, the parser takes any whitespace in its place.

use crate::event::REASONING;

/// One family's text.
#[derive(Debug)]
pub struct Dialect {
    /// The family's name.
    pub name: &'static str,
    /// Texts that are erased from a reply before anything else: each from its `open` to its `close`, or just the `open`
    /// where that is empty.
    pub erased: &'static [Tags],
    /// Channels beside the answer; the first is the one that thinking switches and budgets mean.
    pub channels: &'static [ChannelSyntax],
    /// The answer itself.
    pub answer: AnswerSyntax,
    /// The syntaxes of calls: the first is the one the family writes, the others are understood too.
    pub calls: &'static [CallSyntax],
}

impl Dialect {
    /// Plain text; the base that dialects are written over.
    pub const PLAIN: Self =
        Self { name: "plain", erased: &[], channels: &[], answer: AnswerSyntax::PLAIN, calls: &[] };
}

/// Two markers around something, and the layout inside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tags {
    /// The marker before; may be empty.
    pub open: &'static str,
    /// The marker after; may be empty.
    pub close: &'static str,
    /// The layout after `open`.
    pub after_open: &'static str,
    /// The layout before `close`.
    pub before_close: &'static str,
}

impl Tags {
    /// No markers.
    pub const NONE: Self = Self::new("", "");

    /// Markers that stand right beside what they enclose.
    pub const fn new(open: &'static str, close: &'static str) -> Self {
        Self { open, close, after_open: "", before_close: "" }
    }

    /// Markers on lines of their own.
    pub const fn lines(open: &'static str, close: &'static str) -> Self {
        Self { open, close, after_open: "\n", before_close: "\n" }
    }
}

/// A channel of a reply beside its answer, and what its family does around it.
#[derive(Debug, Clone, Copy)]
pub struct ChannelSyntax {
    /// The name its text is reported under, such as [`REASONING`](crate::REASONING).
    pub name: &'static str,
    /// The markers around it, and the layout the family writes inside them.
    pub tags: Tags,
    /// Whether the start is text of the channel too: the beginning of a sentence that the prompt wrote.
    pub start_is_text: bool,
    /// Where its text goes, unless the caller wants all text in the answer.
    pub place: Place,
    /// A label that may stand right after the start and is no text: `thought\n` in Gemma 4.
    pub label: &'static str,
    /// What a reply without any marker is, when its prompt is not known.
    pub unmarked: Unmarked,
    /// What a call's marker, or the answer's own, means before the channel has ended.
    pub calls_inside: CallsInside,
    /// What an end marker means in the answer.
    pub stray_end: StrayEnd,
    /// What is taken off the beginning of the channel's text.
    pub trim_start: Trim,
    /// What is taken off its end.
    pub trim_end: Trim,
    /// What is taken off the beginning of the answer after it.
    pub trim_after: Trim,
}

impl ChannelSyntax {
    /// Reasoning of the most frequent behaviour: opened by its marker or by the prompt, line breaks at the borders are layout.
    pub const fn new(tags: Tags) -> Self {
        Self {
            name: REASONING,
            tags,
            start_is_text: false,
            place: Place::Apart,
            label: "",
            unmarked: Unmarked::Answer,
            calls_inside: CallsInside::Text,
            stray_end: StrayEnd::EndsChannel,
            trim_start: Trim::LineBreaks,
            trim_end: Trim::LineBreaks,
            trim_after: Trim::LineBreaks,
        }
    }

    /// Reasoning that is kept to the letter, and so is the answer after it.
    pub const fn untrimmed(tags: Tags) -> Self {
        let (trim_start, trim_end, trim_after) = (Trim::Nothing, Trim::Nothing, Trim::Nothing);
        Self { trim_start, trim_end, trim_after, ..Self::new(tags) }
    }
}

/// Where the text of a channel goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Apart from the answer.
    Apart,
    /// Into the answer, markers included.
    InAnswer,
}

/// What a reply without any marker is, when its prompt is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmarked {
    /// The answer.
    Answer,
    /// Text of the channel: all templates of the family open it.
    Channel,
}

/// What a call's marker, or the answer's own, means before the channel has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsInside {
    /// It is text of the channel.
    Text,
    /// At the very start of a channel that the prompt opened it ends the channel: the model skipped it. Later it is text.
    AtStart,
    /// It ends the channel.
    End,
}

/// What an end marker means in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrayEnd {
    /// It is text.
    Text,
    /// It is text. But where the prompt is not known it tells, as the first marker of a reply, that the prompt opened
    /// the channel: the reply is held back until its first marker comes.
    EndsChannel,
    /// At the start of the reply it is dropped, later it is text.
    DroppedAtStart,
    /// It is dropped.
    Dropped,
}

/// What is taken off the ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// Nothing.
    Nothing,
    /// Line breaks.
    LineBreaks,
    /// All whitespace.
    Whitespace,
}

/// The answer's own markers and layout.
#[derive(Debug)]
pub struct AnswerSyntax {
    /// Markers the family writes around the answer; the parser drops them wherever they stand.
    pub tags: Tags,
    /// Other texts that are dropped: each from its `open` to its `close`, or just the `open` where that is empty.
    pub dropped: &'static [Tags],
    /// What the parser takes off both ends of the answer.
    pub trim: Trim,
    /// The whitespace between the answer and the calls after it.
    pub before_calls: BeforeCalls,
    /// Text after a call.
    pub after_calls: AfterCalls,
}

impl AnswerSyntax {
    /// Text as it comes.
    pub const PLAIN: Self = Self {
        tags: Tags::NONE,
        dropped: &[],
        trim: Trim::Nothing,
        before_calls: BeforeCalls::Text,
        after_calls: AfterCalls::Text(Trim::Nothing),
    };
}

/// What the whitespace between the answer and the first call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeCalls {
    /// Text of the answer.
    Text,
    /// A line break is layout when another one follows the marker, which so has a line of its own.
    OwnLine,
    /// This text is layout: the family's template writes it itself. Whitespace before it is text.
    Layout(&'static str),
    /// All of it is layout.
    Dropped,
}

/// What text after a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCalls {
    /// Text of the answer; this is taken off its beginning.
    Text(Trim),
    /// Noise of a model that should have ended its turn: it is dropped. Further calls are still read.
    Dropped,
}

/// Messages with headers, which say whom a message is for and which channel it belongs to: `start` HEADER `text` TEXT `end`.
///
/// What the family writes is said by the dialect's channels and calls, headers included. This says how headers are
/// taken apart, so that their parts are understood in any order.
#[derive(Debug)]
pub struct MessageSyntax {
    /// Begins a message after the first, whose beginning the prompt has written.
    pub start: &'static str,
    /// Stands before the channel's name; may be empty.
    pub channel: &'static str,
    /// Stands before the recipient's name.
    pub recipient: &'static str,
    /// Ends a header.
    pub text: &'static str,
    /// End a message.
    pub ends: &'static [&'static str],
    /// What messages in these channels, and for these recipients, are. A message for anyone else is a call.
    pub names: &'static [(&'static str, Meaning)],
    /// What a recipient's name begins with when it is a tool.
    pub tool_prefix: &'static str,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A part of the answer.
    Answer,
    /// Reasoning: text of the dialect's first channel.
    Reasoning,
    /// A call. Of [`CallBody::Named`] the header says the name and the text the arguments; any other call is in the text.
    Call,
}

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

/// A call as a JSON value.
#[derive(Debug, Clone, Copy)]
pub struct JsonCall {
    /// One object per block, or a list.
    pub count: Count,
    /// How an object says what it says.
    pub object: JsonObject,
    /// Between a key and its value, as the family writes it: `: ` or `:`.
    pub colon: &'static str,
    /// Between two members, as the family writes it: `, ` or `,`.
    pub comma: &'static str,
}

impl JsonCall {
    /// `{"name": …, "arguments": {…}}`, with blanks as Python writes them.
    pub const ONE: Self = Self { count: Count::One, object: JsonObject::NAMED, colon: ": ", comma: ", " };
    /// The same with `parameters` in place of `arguments`.
    pub const ONE_WITH_PARAMETERS: Self = Self { object: JsonObject::NAMED_WITH_PARAMETERS, ..Self::ONE };
    /// A list in one line.
    pub const LIST: Self =
        Self { count: Count::List { after_open: "", comma: ", ", before_close: "" }, ..Self::ONE };
    /// A list with a line for each call.
    pub const LINES: Self = Self {
        count: Count::List { after_open: "\n    ", comma: ",\n    ", before_close: "\n" },
        ..Self::ONE
    };
}

/// How many calls stand in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// One.
    One,
    /// A list. A parser takes a single call in its place.
    List {
        /// The layout after `[`.
        after_open: &'static str,
        /// Between two calls.
        comma: &'static str,
        /// The layout before `]`.
        before_close: &'static str,
    },
}

/// The keys of a call's JSON object.
#[derive(Debug, Clone, Copy)]
pub enum JsonObject {
    /// A key for each part. The parser takes them in any order and ignores other keys.
    Keys {
        /// The parts in the order the family writes them.
        written: &'static [(JsonKey, &'static str)],
        /// Further names under which a part is understood.
        understood: &'static [(JsonKey, &'static str)],
    },
    /// The tool's name is the only key, the arguments are its value.
    NameIsKey,
}

impl JsonObject {
    /// `name`, then `arguments`; also understood: `parameters` and `args`.
    pub const NAMED: Self = Self::Keys {
        written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "arguments")],
        understood: &[(JsonKey::Arguments, "parameters"), (JsonKey::Arguments, "args"), (JsonKey::Id, "id")],
    };

    /// `name`, then `parameters`; also understood: `arguments` and `args`.
    pub const NAMED_WITH_PARAMETERS: Self = Self::Keys {
        written: &[(JsonKey::Name, "name"), (JsonKey::Arguments, "parameters")],
        understood: &[(JsonKey::Arguments, "arguments"), (JsonKey::Arguments, "args"), (JsonKey::Id, "id")],
    };
}

/// A part of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKey {
    /// The tool's name.
    Name,
    /// The arguments: an object.
    Arguments,
    /// The call's id.
    Id,
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

/// `name.open` NAME `name.close`, then for each argument `key.open` KEY `key.close` `value.open` VALUE `value.close`,
/// then `end`.
#[derive(Debug, Clone, Copy)]
pub struct ParameterCall {
    /// Around the tool's name. Without an `open`, whitespace, a parameter and the call's end also end the name.
    pub name: Tags,
    /// After the name: the text around the call's number, from 1.
    pub number: Option<Tags>,
    /// Around a key. Without an `open`, whatever is not the call's end is a key.
    pub key: Tags,
    /// Layout after a key.
    pub after_key: &'static str,
    /// Between key and value: an attribute that tells the value's type.
    pub type_attribute: Option<TypeAttribute>,
    /// Around a value, layout included. The parser takes `after_open` off, and where that stood also `before_close`.
    pub value: Tags,
    /// How a value is written.
    pub written: ValueText,
    /// What a value means about which no schema says anything.
    pub untyped: Untyped,
    /// Which parameters a call may have.
    pub accepted: Accepted,
    /// Layout after the name, and between and after the parameters.
    pub between: &'static str,
    /// After the last parameter; may be empty.
    pub end: &'static str,
}

impl ParameterCall {
    /// `<function=f>` and `<parameter=k>` on lines of their own, values as Qwen3-Coder writes them.
    pub const FUNCTION: Self = Self {
        name: Tags::new("<function=", ">"),
        number: None,
        key: Tags::new("<parameter=", ">"),
        after_key: "",
        type_attribute: None,
        value: Tags { after_open: "\n", before_close: "\n", ..Tags::new("", "</parameter>") },
        written: ValueText::AsItIs,
        untyped: Untyped::Json,
        accepted: Accepted::Any,
        between: "\n",
        end: "</function>",
    };

    /// `f`, then `<arg_key>k</arg_key>` and `<arg_value>v</arg_value>`, as GLM writes them.
    pub const ARG_KEY: Self = Self {
        name: Tags::NONE,
        key: Tags::new("<arg_key>", "</arg_key>"),
        value: Tags::new("<arg_value>", "</arg_value>"),
        between: "",
        end: "",
        ..Self::FUNCTION
    };

    /// ` name="f">` after the call's marker, then `<parameter name="k">v</parameter>`, as in an `invoke` element.
    pub const INVOKE: Self = Self {
        name: Tags::new(" name=\"", "\">"),
        key: Tags::new("<parameter name=\"", "\">"),
        value: Tags::new("", "</parameter>"),
        end: "",
        ..Self::FUNCTION
    };
}

/// How a value stands between its markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueText {
    /// As it is; what is no string is JSON. The first closing marker ends it: a string cannot contain that.
    AsItIs,
    /// The same; but `<![CDATA[…]]>` is understood too, and protects what is in it.
    OrCdata,
    /// Members of objects and elements of lists are elements themselves: `key.open` K `key.close` VALUE, with
    /// `value.close` K `key.close` after it; those of a list are named `item`. A string stands as it is.
    Elements,
}

/// What a text means about which no schema says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {
    /// The JSON value that it is, other than a string; else the text.
    Json,
    /// Always the text.
    Text,
}

/// Which parameters a call may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Whatever the model writes; of a parameter that stands twice the last one counts.
    Any,
    /// Those that the tool's schema names, each once. Others are dropped, a call without a required one is malformed.
    Declared,
}

/// An attribute between key and value: `open` WORD `close`. It counts for more than the schema.
#[derive(Debug, Clone, Copy)]
pub struct TypeAttribute {
    /// The text before the word.
    pub open: &'static str,
    /// The text after it.
    pub close: &'static str,
    /// The word for text, which is taken as it is; any other value is JSON.
    pub text: &'static str,
    /// The words for other types by JSON type name; `("", word)` stands for all others.
    pub others: &'static [(&'static str, &'static str)],
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
