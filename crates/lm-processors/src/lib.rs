#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod call_ids;
mod call_prefixes;
mod channel;
mod declared_names;
mod dialect;
mod dialect_processor;
mod error;
mod event;
mod families;
mod grammar;
mod grammar_request;
mod handle;
mod json_text;
mod layout;
mod marker_guard;
mod message_builder;
mod parser;
mod parsers;
mod preformatted;
mod processor;
mod reply_form;
mod schema;
mod tokens;
mod values;

pub use call_ids::{CallIdForm, FreshCallIds, random_id};
pub use channel::Channel;
pub use dialect::{
    AnswerSyntax, BraceCall, CallBody, CallSyntax, ChannelSyntax, Count, Dialect, JsonCall, JsonKey,
    JsonObject, NamedCall, NamedId, ParameterCall, Place, PythonCall, PythonList, Tags, TypeAttribute,
    Undeclared, UnmarkedCalls, ValueText,
};
pub use dialect_processor::{DialectProcessor, TemplateInput};
pub use error::{Error, Result};
pub use event::{CallFault, ProcessorEvent, REASONING};
pub use families::{ALL, Family, by_name, detect};
pub use grammar::{GbnfError, Grammar, ReplyGrammar, gbnf_grammar, is_gbnf, json_grammar, lark_pattern};
pub use grammar_request::{Calls, GrammarRequest, ResponseFormat, Thinking, ToolChoice};
pub use handle::Processor;
pub use layout::Layout;
pub use lm_template::{Message, ToolCall, ToolSpec, Value};
pub use message_builder::MessageBuilder;
pub use parser::{OnMalformed, OutputParser, ParserOptions, ReadCalls, ReasoningText, Recovery};
pub use processor::ModelDataProcessor;
pub use reply_form::ReplyForm;
pub use schema::{SchemaError, SchemaFault, SchemaValidator, UnenforcedKeyword, schema_pattern, validator};
pub use tokens::MarkerTokens;
