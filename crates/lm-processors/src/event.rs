//! Events of a parser.

use lm_template::ToolCall;

/// Name of the reasoning channel, for all families.
pub const REASONING: &str = "reasoning";

/// A piece of a model's output, with its meaning.
///
/// A call is [`ToolCallStarted`](Self::ToolCallStarted), then fragments that concatenate to the text of its
/// arguments, then [`ToolCall`](Self::ToolCall); or, if it is invalid, [`Malformed`](Self::Malformed) instead
/// of the last.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ProcessorEvent {
    /// Text of the answer, never empty.
    Text(String),
    /// Text of a channel besides the answer, never empty.
    Channel {
        /// Name of the channel, such as `reasoning`.
        name: String,
        /// The text.
        text: String,
    },
    /// Start of a call.
    ToolCallStarted {
        /// Index of the call in the reply, from 0.
        index: usize,
        /// Name of the tool, if the model writes it before the arguments.
        name: Option<String>,
        /// Id of the call, if the model writes one before the arguments.
        id: Option<String>,
    },
    /// A fragment of a call's arguments as JSON text: a call's fragments concatenate to the text of its
    /// arguments.
    ///
    /// If the family writes JSON, it is the model's own text. Otherwise (markup, Python, braces) it is
    /// converted, and emitted once certain: strings of known type while they are written, other values at
    /// their end.
    ToolCallArguments {
        /// Index of the call in the reply.
        index: usize,
        /// The text, never empty.
        fragment: String,
    },
    /// A complete call. Existence of its tool and validity of its arguments are not checked.
    ToolCall {
        /// Index of the call in the reply.
        index: usize,
        /// The call; without an id if the model gives none.
        call: ToolCall,
    },
    /// Text that started as a call but is invalid.
    Malformed {
        /// Index of the call, if its start was reported.
        index: Option<usize>,
        /// Kind of the fault.
        fault: CallFault,
        /// The model's text, markers included.
        text: String,
        /// Description of the fault.
        reason: String,
    },
}

impl ProcessorEvent {
    /// Merges an event that continues this one: more text, more of the same channel, more of the same call's
    /// arguments. Returns any other event.
    ///
    /// ```
    /// use lm_processors::ProcessorEvent::Text;
    ///
    /// let mut event = Text("It is ".to_owned());
    /// assert_eq!(event.absorb(Text("sunny.".to_owned())), None);
    /// assert_eq!(event, Text("It is sunny.".to_owned()));
    /// ```
    pub fn absorb(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Text(text), Self::Text(more)) => text.push_str(&more),
            (Self::Channel { name, text }, Self::Channel { name: same, text: more }) if *name == same => {
                text.push_str(&more);
            }
            (
                Self::ToolCallArguments { index, fragment },
                Self::ToolCallArguments { index: same, fragment: more },
            ) if *index == same => fragment.push_str(&more),
            (_, next) => return Some(next),
        }
        None
    }
}

/// Reason for which a call is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallFault {
    /// Invalid syntax for the family.
    Malformed,
    /// The reply ended inside the call.
    Unfinished,
    /// Its tool is not declared, and the options or the family refuse such calls.
    Undeclared,
}

impl CallFault {
    /// Name of the fault: `malformed`, `unfinished` or `undeclared`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unfinished => "unfinished",
            Self::Undeclared => "undeclared",
        }
    }
}
