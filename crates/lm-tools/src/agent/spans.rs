//! Spans of a turn, with the attributes of OpenTelemetry's semantic conventions for generative AI (1.41):
//! `invoke_agent` around the turn, `chat` for each reply, `execute_tool` for each call.

use super::AgentReply;
use crate::steps::{AgentStep, CallOutcome};
use lm_conversation::{Reply, Usage};
use lm_template::ToolCall;
use tracing::field::{Empty, display};
use tracing::{Span, info_span};

/// Span of a turn.
pub(super) fn invoke_agent(agent: Option<&str>, model: &str) -> Span {
    info_span!(
        "invoke_agent",
        "otel.name" = agent.map_or("invoke_agent".to_owned(), |name| format!("invoke_agent {name}")),
        "otel.kind" = "internal",
        "gen_ai.operation.name" = "invoke_agent",
        "gen_ai.provider.name" = "lm",
        "gen_ai.agent.name" = agent,
        "gen_ai.request.model" = model,
        "gen_ai.usage.input_tokens" = Empty,
        "gen_ai.usage.output_tokens" = Empty,
        "gen_ai.usage.cache_read.input_tokens" = Empty,
        stop = Empty,
    )
}

/// Records the end of a turn in the current span.
pub(super) fn record_reply(reply: &AgentReply) {
    let span = Span::current();
    record_tokens(&span, reply.usage());
    span.record("stop", display(&reply.stop));
}

/// Span of a reply of the model.
pub(super) fn chat() -> Span {
    info_span!(
        "chat",
        "otel.kind" = "internal",
        "gen_ai.operation.name" = "chat",
        "gen_ai.provider.name" = "lm",
        "gen_ai.usage.input_tokens" = Empty,
        "gen_ai.usage.output_tokens" = Empty,
        "gen_ai.usage.cache_read.input_tokens" = Empty,
        "gen_ai.response.finish_reasons" = Empty,
    )
}

/// Records the end of a reply.
pub(super) fn record_usage(span: &Span, reply: &Reply) {
    let finished = &reply.finish;
    record_tokens(span, finished.usage);
    let reason = match (!reply.message.tool_calls.is_empty(), finished.is_cut_off()) {
        (true, _) => "tool_call",
        (false, true) => "length",
        (false, false) => "stop",
    };
    span.record("gen_ai.response.finish_reasons", reason);
}

fn record_tokens(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.prompt_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
    span.record("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens);
}

/// Span of a call, from the start of the round's calls until its result.
pub(super) fn execute_tool(call: &ToolCall) -> Span {
    info_span!(
        "execute_tool",
        "otel.name" = format!("execute_tool {}", call.name),
        "otel.kind" = "internal",
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = call.name,
        "gen_ai.tool.type" = "function",
        "gen_ai.tool.call.id" = call.id,
        outcome = Empty,
        "error.type" = Empty,
    )
}

/// Records the result of a call.
pub(super) fn record_step(span: &Span, step: &AgentStep) {
    let outcome = match &step.outcome {
        CallOutcome::Ran => "ran",
        CallOutcome::Edited { .. } => "edited",
        CallOutcome::Denied => "denied",
        CallOutcome::Answered => "answered",
        CallOutcome::External => "external",
        CallOutcome::Repeated => "repeated",
        CallOutcome::NotRun => "not_run",
        CallOutcome::Abandoned => "abandoned",
    };
    span.record("outcome", outcome);
    if let Some(kind) = step.error {
        let name = serde_json::to_value(kind).unwrap_or_default();
        span.record("error.type", name.as_str().unwrap_or("_OTHER"));
    }
}
