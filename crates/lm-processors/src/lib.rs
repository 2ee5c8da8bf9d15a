#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod dialect;
mod error;
mod event;
mod families;
mod grammar;
mod json_text;
mod message_builder;
mod parser;
mod parsers;
mod processor;
mod values;

pub use dialect::{
    AfterCalls, AnswerSyntax, BeforeCalls, BraceCall, CallBody, CallSyntax, CallsInside, Channel,
    ChannelSyntax, Count, Dialect, JsonCall, JsonKey, JsonObject, NamedCall, NamedId, Opening, ParameterCall,
    PythonCall, PythonList, StrayEnd, Tags, Trim, TypeAttribute, Undeclared,
};
pub use error::{Error, Result};
pub use event::{ProcessorEvent, REASONING};
pub use families::{ALL, Family, detect};
pub use grammar::{
    Calls, Grammar, GrammarRequest, Layout, Reading, Relaxed, ReplyGrammar, ResponseFormat, SchemaError,
    SchemaFault, Thinking, ToolChoice, relax,
};
pub use lm_template::{Message, ToolCall, ToolSpec, Value};
pub use message_builder::MessageBuilder;
pub use parser::{OnMalformed, OutputParser, ParserOptions};
pub use processor::ModelDataProcessor;
