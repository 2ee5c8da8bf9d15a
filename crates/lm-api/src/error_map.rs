//! Errors of the lower layers as errors of the API.

use std::time::Duration;

use lm_conversation::Error;
use lm_processors::{Error as Processor, ToolChoice};
use lm_session::{Error as Session, MediaKind};
use lm_template::{Error as Template, ToolSpec};

use crate::chat_completions::NAMES;
use crate::client_tools::ClientTools;
use crate::error::{ApiError, PromptLength};
use crate::request::{ChatRequest, FieldNames};

/// Code of a prompt, or of a reply's minimum, that exceeds the context.
const CONTEXT: &str = "context_length_exceeded";
/// Code of a schema that has no grammar, or compiles to no validator.
const SCHEMA: &str = "invalid_schema";
/// Code of a reply whose tool call is invalid in every attempt.
const CALL: &str = "tool_use_failed";

impl From<Error> for ApiError {
    /// Converts an error without its request: parameters are named as a whole.
    fn from(error: Error) -> Self {
        let (names, choice, client_tools) = (&NAMES, &ToolChoice::Auto, &ClientTools::default());
        Mapping { names, tools: &[], client_tools, choice, limit: None, has_format: false }.error(&error)
    }
}

impl ChatRequest {
    /// Converts an error of the conversation that answers this request; its `param` is a path into the
    /// request.
    pub fn api_error(&self, error: &Error) -> ApiError {
        let mapping = Mapping {
            names: &self.names,
            tools: &self.preface.tools,
            client_tools: &self.client_tools,
            choice: &self.turn.tool_choice,
            limit: self.max_output_tokens,
            has_format: self.turn.response_format.is_some(),
        };
        mapping.error(error)
    }
}

/// Parts of a request that errors refer to.
struct Mapping<'a> {
    names: &'a FieldNames,
    tools: &'a [ToolSpec],
    client_tools: &'a ClientTools,
    choice: &'a ToolChoice,
    limit: Option<(&'static str, usize)>,
    has_format: bool,
}

impl Mapping<'_> {
    fn error(&self, error: &Error) -> ApiError {
        let param = |param: &str| ApiError::invalid_param(param, error.to_string());
        match error {
            Error::Session(error) => self.session(error),
            Error::Template(error) => self.template(error),
            Error::Processor(error) => self.processor(error),
            Error::NoChatTemplate { .. } => {
                ApiError::invalid_request(error.to_string()).with_code("no_chat_template")
            }
            Error::TooManyMediaRows { rows, context_tokens, .. } => {
                let length = PromptLength { tokens: *rows, context: *context_tokens };
                let too_long = ApiError::prompt_too_long(self.names.messages, length);
                ApiError { message: format!("{}; {error}", too_long.message), ..too_long }
            }
            Error::NoMessage | Error::Placeholders { .. } | Error::MediaRows { .. } => {
                param(self.names.messages)
            }
            Error::Medium { kind, source, .. } => {
                let code = match kind {
                    MediaKind::Image => "invalid_image",
                    MediaKind::Audio => "invalid_audio",
                };
                let message = format!("{error}: {source}");
                ApiError::invalid_param(self.names.messages, message).with_code(code)
            }
            Error::MediaFile { .. } | Error::UnreadMedium { .. } => {
                param(self.names.messages).with_code("unsupported_content")
            }
            Error::UnusableSchema { tool, .. } => param(&self.schema(tool.as_deref())).with_code(SCHEMA),
            Error::NoThinking { .. } => param(self.names.max_reasoning_tokens),
            Error::InvalidAnswer { .. } => param(self.names.format).with_code("json_validate_failed"),
            Error::InvalidCall { call, .. } => param(&self.schema(Some(&call.name))).with_code(CALL),
            Error::Cancelled => ApiError { status: 499, ..ApiError::server(error.to_string()) },
            Error::DeadlineExceeded => ApiError { status: 504, ..ApiError::server(error.to_string()) },
            Error::NoReply { .. } => param(self.names.messages),
            Error::TokenLimit { .. } => param(self.limit_name()).with_code("token_limit_reached"),
            Error::NoCall { .. } => param(self.names.tool_choice).with_code(CALL),
            _ => ApiError::server(error.to_string()),
        }
    }

    fn template(&self, error: &Template) -> ApiError {
        let error = template(error);
        match error.param.as_deref() {
            Some("messages") => error.with_param(self.names.messages),
            _ => error,
        }
    }

    fn session(&self, error: &Session) -> ApiError {
        let param = |param: &str| ApiError::invalid_param(param, error.to_string());
        match error {
            Session::PromptTooLong { prompt_tokens: tokens, context_tokens: context } => {
                let length = PromptLength { tokens: *tokens, context: *context };
                ApiError::prompt_too_long(self.names.messages, length)
            }
            Session::CacheFull { .. } => param(self.names.messages).with_code(CONTEXT),
            Session::NoGeneration { .. } | Session::NoClassifier { .. } => {
                ApiError::invalid_request(error.to_string()).with_code("unsupported_model")
            }
            Session::InvalidSampler { field, .. } => param(field),
            Session::EmptyStopString { .. } => param(self.names.stop),
            Session::NoCandidate { .. } => param("logit_bias"),
            Session::Grammar { .. } => param(self.grammar()).with_code(SCHEMA),
            Session::ConstraintFailed { .. } | Session::TokenRefused { .. } => {
                param(self.grammar()).with_code("constraint_failed")
            }
            Session::BudgetTooSmall { needed_tokens, available_tokens } => {
                self.budget(*needed_tokens, *available_tokens)
            }
            Session::TextCutOff { .. } => param(self.limit_name()).with_code("text_cut_off"),
            Session::Busy { retry_after, .. } | Session::CompilerBusy { retry_after, .. } => {
                ApiError::overloaded(error.to_string(), *retry_after)
            }
            Session::EngineStopped => unavailable(error),
            Session::ModelsInUse { .. } => {
                ApiError { retry_after: Some(Duration::from_secs(1)), ..unavailable(error) }
            }
            // The text of a panic is for the log.
            Session::WorkerPanicked { message } => {
                tracing::error!(%message, "the engine's worker panicked");
                ApiError::server("the engine failed; its log has the cause")
            }
            _ => ApiError::server(error.to_string()),
        }
    }

    fn processor(&self, error: &Processor) -> ApiError {
        let param = |param: &str| ApiError::invalid_param(param, error.to_string());
        match error {
            Processor::UnsupportedPart { .. } => param(self.names.messages).with_code("unsupported_content"),
            Processor::Schema(error) => param(&self.schema(error.tool.as_deref())).with_code(SCHEMA),
            Processor::UnknownTool { .. } | Processor::NoTools | Processor::NoCallSyntax { .. } => {
                param(self.names.tool_choice)
            }
            Processor::AnswerLikeCall { .. } => param(self.names.format).with_code("answer_like_call"),
            Processor::MalformedToolCall { .. } => param(self.names.tools).with_code(CALL),
            _ => ApiError::server(error.to_string()),
        }
    }

    /// A required call or an answer that does not fit the token limit, or else the context.
    fn budget(&self, needed: usize, available: usize) -> ApiError {
        let limit = self.limit.filter(|(_, limit)| *limit <= available).map(|(name, _)| name);
        let least = match (self.required_tool(), self.choice) {
            (Some(tool), _) => format!("the shortest call of tool `{tool}`"),
            (None, ToolChoice::Required) => "the shortest call of a tool".to_owned(),
            _ => "the shortest text that the constraint accepts".to_owned(),
        };
        let room = limit.map_or("the context".to_owned(), |name| format!("`{name}`"));
        let message = format!("{least} has {needed} tokens, {room} allows {available}");
        match (limit, self.required_tool()) {
            (None, _) => ApiError::invalid_param(self.names.messages, message).with_code(CONTEXT),
            (Some(_), Some(tool)) => ApiError::invalid_param(self.schema(Some(tool)), message),
            (Some(name), None) => ApiError::invalid_param(name, message),
        }
    }

    /// The tool that the reply has to call.
    fn required_tool(&self) -> Option<&str> {
        match (self.choice, self.tools) {
            (ToolChoice::Named(name), _) => Some(name),
            (ToolChoice::Required, [tool]) => Some(tool.name()),
            _ => None,
        }
    }

    /// Path of the schema or pattern of a tool, or of the response format.
    fn schema(&self, tool: Option<&str>) -> String {
        let Some(name) = tool else { return self.names.format.to_owned() };
        if let Some(path) = self.client_tools.definition(name) {
            return path.to_owned();
        }
        match self.tools.iter().position(|tool| tool.name() == name) {
            Some(index) => format!("{}[{index}].{}", self.names.tools, self.names.tool_schema),
            None => self.names.tools.to_owned(),
        }
    }

    /// Field that a grammar error without a location most likely comes from.
    fn grammar(&self) -> &'static str {
        if self.has_format || self.tools.is_empty() { self.names.format } else { self.names.tools }
    }

    fn limit_name(&self) -> &'static str {
        self.limit.map_or(self.names.max_output_tokens, |(name, _)| name)
    }
}

fn unavailable(error: &Session) -> ApiError {
    ApiError::refused(503, "unavailable_error", error.to_string())
}

/// Converts an error of messages or of the chat template.
pub(crate) fn template(error: &Template) -> ApiError {
    match error {
        Template::MissingKey { at, key } => ApiError::invalid_param(format!("{at}.{key}"), error.to_string()),
        Template::WrongType { at, .. }
        | Template::MediaSource { at, .. }
        | Template::ArgumentsText { at, .. } => ApiError::invalid_param(at, error.to_string()),
        // The field is defined by this crate, not by the request.
        Template::Base64 { at, reason } => {
            let at = at.strip_suffix(".blob").unwrap_or(at);
            ApiError::invalid_param(at, format!("the data of `{at}` are not base64: {reason}"))
        }
        Template::TemplateRaised { .. }
        | Template::TemplateRuntime { .. }
        | Template::TemplateLimit { .. }
        | Template::EmptyConversation
        | Template::ContinueFinalMessage { .. } => ApiError::invalid_param("messages", error.to_string()),
        _ => ApiError::server(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use lm_processors::SchemaError;
    use lm_template::ToolCall;
    use serde_json::json;

    use super::*;

    fn request() -> ChatRequest {
        let tool = |name| json!({"type": "function", "function": {"name": name, "parameters": {}}});
        let body = json!({
            "messages": [{"role": "user", "content": "Hello"}],
            "tools": [tool("first"), tool("second")],
            "max_tokens": 5,
        });
        ChatRequest::from_json(body).expect("a request")
    }

    fn of(error: impl Into<Error>) -> (u16, Option<String>, Option<&'static str>) {
        let error = request().api_error(&error.into());
        (error.status, error.param, error.code)
    }

    #[test]
    fn overlong_call_error_names_tool_and_limits() {
        let of = |choice: serde_json::Value, available_tokens| {
            let tool = |name| json!({"type": "function", "function": {"name": name, "parameters": {}}});
            let body = json!({
                "messages": [{"role": "user", "content": "Hello"}],
                "tools": [tool("first"), tool("second")],
                "tool_choice": choice,
                "max_completion_tokens": 5,
            });
            let request = ChatRequest::from_json(body).expect("a request");
            let error =
                request.api_error(&Session::BudgetTooSmall { needed_tokens: 9, available_tokens }.into());
            (error.param.expect("a path"), error.message)
        };
        let named = json!({"type": "function", "function": {"name": "second"}});
        let call = "the shortest call of tool `second` has 9 tokens";
        assert_eq!(
            of(named.clone(), 5),
            ("tools[1].function.parameters".to_owned(), format!("{call}, `max_completion_tokens` allows 5"))
        );
        assert_eq!(of(named, 4), ("messages".to_owned(), format!("{call}, the context allows 4")));
        let (param, message) = of(json!("required"), 5);
        assert_eq!(param, "max_completion_tokens");
        assert_eq!(message, "the shortest call of a tool has 9 tokens, `max_completion_tokens` allows 5");
    }

    #[test]
    fn busy_engine_sets_retry_after() {
        let retry_after = Duration::from_millis(1_200);
        let error = request().api_error(&Session::Busy { waiting: 3, retry_after }.into());
        assert_eq!((error.status, error.retry_after), (429, Some(retry_after)));
        assert_eq!(error.retry_after_seconds(), Some(2), "whole seconds, rounded up");
        let error = request().api_error(&Session::CompilerBusy { running: 4, retry_after }.into());
        assert_eq!((error.status, error.retry_after), (429, Some(retry_after)));
        assert_eq!(request().api_error(&Session::EngineStopped.into()).retry_after_seconds(), None);
        let in_use = Session::ModelsInUse { name: "m".to_owned(), needed_bytes: 2, left_bytes: 1 };
        let error = request().api_error(&in_use.into());
        assert_eq!((error.status, error.retry_after_seconds()), (503, Some(1)));
    }

    #[test]
    fn turn_errors_name_their_field_and_are_not_retryable() {
        let param = |param: &str, code| (400, Some(param.to_owned()), code);
        let (text, path, keyword, message) = (String::new(), String::new(), "not".to_owned(), String::new());
        let call = Box::new(ToolCall::new("second", Default::default()));
        let (answer, begins, processor) = ("{".to_owned(), "{".to_owned(), "llama3_json");
        let fault = lm_processors::SchemaFault::Unsupported;
        let schema = SchemaError {
            tool: Some("first".to_owned()),
            path: "#".to_owned(),
            keyword: keyword.clone(),
            fault,
        };
        for (got, expected) in [
            (of(Session::TextCutOff { output_tokens: 5 }), param("max_tokens", Some("text_cut_off"))),
            (
                of(Processor::AnswerLikeCall { answer, begins, processor }),
                param("response_format", Some("answer_like_call")),
            ),
            (
                of(Error::InvalidCall { call, path: path.clone(), keyword, message: message.clone() }),
                param("tools[1].function.parameters", Some(CALL)),
            ),
            (
                of(Error::InvalidAnswer { text: text.clone(), path, message: message.clone() }),
                param("response_format", Some("json_validate_failed")),
            ),
            (of(Processor::MalformedToolCall { text, reason: message }), param("tools", Some(CALL))),
            (of(Processor::Schema(schema)), param("tools[0].function.parameters", Some(SCHEMA))),
            (
                of(Session::BudgetTooSmall { needed_tokens: 9, available_tokens: 5 }),
                param("max_tokens", None),
            ),
            (
                of(Session::BudgetTooSmall { needed_tokens: 9, available_tokens: 4 }),
                param("messages", Some(CONTEXT)),
            ),
            (
                of(Session::PromptTooLong { prompt_tokens: 9, context_tokens: 8 }),
                param("messages", Some(CONTEXT)),
            ),
            (
                of(Error::TooManyMediaRows { media: 2, rows: 9, context_tokens: 8 }),
                param("messages", Some(CONTEXT)),
            ),
            (of(Session::CacheFull { needed_pages: 1, free_pages: 0 }), param("messages", Some(CONTEXT))),
            (of(Error::NoMessage), param("messages", None)),
            (
                of(Error::Medium {
                    kind: MediaKind::Audio,
                    message: 0,
                    part: 1,
                    source: Box::new(Session::NoAudio),
                }),
                param("messages", Some("invalid_audio")),
            ),
            (
                of(Error::UnreadMedium { kind: MediaKind::Audio, message: 0, part: 1 }),
                param("messages", Some("unsupported_content")),
            ),
            (of(Session::EngineStopped), (503, None, None)),
            (of(Error::Cancelled), (499, None, None)),
            (of(Error::NoChatTemplate { model: "m".to_owned() }), (400, None, Some("no_chat_template"))),
        ] {
            assert_eq!(got, expected);
        }
    }
}
