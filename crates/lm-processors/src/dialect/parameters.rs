//! Calls whose arguments are elements of markup.

use super::Tags;

/// `before_name` `name.open` NAME `name.close`, then for each argument `key.open` KEY `key.close` `value.open` VALUE `value.close`,
/// then `end`.
#[derive(Debug, Clone, Copy)]
pub struct ParameterCall {
    /// A text before the name's marker; the parser takes calls without it.
    pub before_name: &'static str,
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
        before_name: "",
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
