//! What a parser makes of a model's text.

use lm_template::ToolCall;

/// The channel of reasoning, whatever a family calls it.
pub const REASONING: &str = "reasoning";

/// A piece of a model's output, with its meaning.
///
/// A call is [`ToolCallStarted`](Self::ToolCallStarted), then fragments whose concatenation is the text of its
/// arguments, then [`ToolCall`](Self::ToolCall); or, when it turns out not to be one, [`Malformed`](Self::Malformed) in
/// the last one's place.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ProcessorEvent {
    /// Text of the answer, never empty.
    Text(String),
    /// Text of a channel beside the answer, never empty.
    Channel {
        /// The channel's name, such as [`REASONING`].
        name: String,
        /// The text.
        text: String,
    },
    /// A call has begun.
    ToolCallStarted {
        /// The call's number within the reply, from 0.
        index: usize,
        /// The tool, when the model names it before the arguments.
        name: Option<String>,
        /// The call's id, when the model writes one before the arguments.
        id: Option<String>,
    },
    /// More of a call's arguments, as JSON text: together the fragments of a call are the text of its arguments.
    ///
    /// Where the family writes JSON it is the model's own text. Where it writes anything else (markup, Python, braces)
    /// it is what that text means, and comes as it becomes certain: a string whose type is known while it is
    /// written, any other value when it has ended.
    ToolCallArguments {
        /// The call's number within the reply.
        index: usize,
        /// The text, never empty.
        fragment: String,
    },
    /// A call is complete. Whether its tool exists and its arguments fit is not checked here.
    ToolCall {
        /// The call's number within the reply.
        index: usize,
        /// The call; without an id when the model gives none.
        call: ToolCall,
    },
    /// What began as a call is not one.
    Malformed {
        /// The number of the call, when its beginning was reported.
        index: Option<usize>,
        /// What is wrong, by kind.
        fault: CallFault,
        /// The model's text, markers included.
        text: String,
        /// What is wrong, in words.
        reason: String,
    },
}

impl ProcessorEvent {
    /// Takes in an event that only goes on with this one: more text, more of the same channel, more of the same call's arguments.
    /// Gives back any other.
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

/// Why what began as a call is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallFault {
    /// It is not written as the family writes calls.
    Malformed,
    /// The reply ended before it did.
    Unfinished,
    /// No tool of its name was declared, and the options or the family want such calls refused.
    Undeclared,
}

impl CallFault {
    /// Its name: `malformed`, `unfinished` or `undeclared`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unfinished => "unfinished",
            Self::Undeclared => "undeclared",
        }
    }
}
