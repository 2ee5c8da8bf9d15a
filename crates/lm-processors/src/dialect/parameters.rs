//! Calls whose arguments are elements of markup.

use super::Tags;

/// `before_name` `name.open` NAME `name.close`, then for each argument `key.open` KEY `key.close`
/// `value.open` VALUE `value.close`, then `end`.
#[derive(Debug, Clone, Copy)]
pub struct ParameterCall {
    /// Text before the name's marker; the parser accepts calls without it.
    pub before_name: &'static str,
    /// Markers of the tool's name. Without an `open`, whitespace, a parameter and the call's end also end the
    /// name.
    pub name: Tags,
    /// Markers of the call's number (from 1), after the name.
    pub number: Option<Tags>,
    /// Markers of a key. Without an `open`, anything but the call's end is a key.
    pub key: Tags,
    /// Layout after a key.
    pub after_key: &'static str,
    /// Attribute with the value's type, between key and value.
    pub type_attribute: Option<TypeAttribute>,
    /// Markers of a value, with layout. The parser removes `after_open`, and if it was present,
    /// `before_close`.
    pub value: Tags,
    /// Encoding of a value.
    pub written: ValueText,
    /// Meaning of a value without a schema.
    pub(crate) untyped: Untyped,
    /// Accepted parameters of a call.
    pub(crate) accepted: Accepted,
    /// Layout after the name, and between and after the parameters.
    pub between: &'static str,
    /// Marker after the last parameter; may be empty.
    pub end: &'static str,
}

impl ParameterCall {
    /// `<function=f>` and `<parameter=k>` on separate lines, values as in Qwen3-Coder.
    pub const FUNCTION: Self = Self {
        before_name: "",
        name: Tags::new("<function=", ">"),
        number: None,
        key: Tags::new("<parameter=", ">"),
        after_key: "",
        type_attribute: None,
        value: Tags { after_open: "\n", before_close: "\n", ..Tags::new("", "</parameter>") },
        written: ValueText::Verbatim,
        untyped: Untyped::Json,
        accepted: Accepted::Any,
        between: "\n",
        end: "</function>",
    };

    /// `f`, then `<arg_key>k</arg_key>` and `<arg_value>v</arg_value>`, as in GLM.
    pub const ARG_KEY: Self = Self {
        name: Tags::NONE,
        key: Tags::new("<arg_key>", "</arg_key>"),
        value: Tags::new("<arg_value>", "</arg_value>"),
        between: "",
        end: "",
        ..Self::FUNCTION
    };

    /// ` name="f">` after the call's marker, then `<parameter name="k">v</parameter>`, as in an `invoke`
    /// element.
    pub const INVOKE: Self = Self {
        name: Tags::new(" name=\"", "\">"),
        key: Tags::new("<parameter name=\"", "\">"),
        value: Tags::new("", "</parameter>"),
        end: "",
        ..Self::FUNCTION
    };
}

/// Encoding of a value between its markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueText {
    /// Verbatim for strings, JSON for other types. The first closing marker ends the value: a string cannot
    /// contain it.
    Verbatim,
    /// The same; the parser also accepts `<![CDATA[…]]>`, which protects its content.
    VerbatimOrCdata,
    /// Nested elements for members of objects and elements of lists: `key.open` K `key.close` VALUE, then
    /// `value.close` K `key.close`; list elements are named `item`. Strings are verbatim.
    Elements,
}

/// Meaning of a text without a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untyped {
    /// A JSON value if the text is one other than a string; else text.
    Json,
    /// Text in all cases.
    Text,
}

/// Accepted parameters of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// Any; the last of duplicate parameters counts.
    Any,
    /// Those in the tool's schema, each once. Others are dropped, and a call without a required one is
    /// malformed.
    Declared,
}

/// A type attribute between key and value: `open` WORD `close`. It takes precedence over the schema.
#[derive(Debug, Clone, Copy)]
pub struct TypeAttribute {
    /// Text before the word.
    pub open: &'static str,
    /// Text after the word.
    pub close: &'static str,
    /// Word for text, which is verbatim; any other value is JSON.
    pub text: &'static str,
    /// Words for other types, by JSON type name; `("", word)` covers all others.
    pub others: &'static [(&'static str, &'static str)],
}
