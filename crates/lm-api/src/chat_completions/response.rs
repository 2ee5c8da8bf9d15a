//! Response body of a chat completion.

use lm_conversation::Reply;
use serde_json::{Map, Value, json};

use super::head::CompletionHead;
use super::logprobs;
use crate::client_tools::ClientTools;
use crate::response_writer::Choice;
use crate::timings::timings;

/// Creates the completion object of a request's choices, with the durations of a single one (`timings`).
///
/// ```
/// use lm_conversation::{FinishReason, Finished, Message, Reply, Timing, Usage};
/// use lm_api::{Choice, CompletionHead, completion};
///
/// let usage = Usage { prompt_tokens: 9, output_tokens: 3, ..Usage::default() };
/// let finish = Finished { reason: FinishReason::EndToken, usage, timing: Timing::default(), seed: None, steered: None, masked: None };
/// let reply = Reply::new(Message::assistant("Hello!"), finish);
/// let object = completion(&CompletionHead::new("my-model"), &[Choice { reply, logprobs: None, prompt_logprobs: Vec::new() }]);
/// assert_eq!(object["choices"][0]["message"]["content"], "Hello!");
/// assert_eq!(object["choices"][0]["finish_reason"], "stop");
/// assert_eq!(object["usage"]["total_tokens"], 12);
/// assert_eq!(object["timings"]["predicted_n"], 3);
/// ```
pub fn completion(head: &CompletionHead, choices: &[Choice]) -> Value {
    completion_of(head, choices, &ClientTools::default())
}

/// [`completion`] of a request with these tools.
pub(super) fn completion_of(head: &CompletionHead, choices: &[Choice], tools: &ClientTools) -> Value {
    let objects = choices.iter().enumerate().map(|(index, Choice { reply, logprobs, .. })| {
        json!({
            "index": index,
            "message": message(reply, tools),
            "logprobs": logprobs.as_ref().map(|tokens| logprobs::logprobs(tokens)),
            "finish_reason": finish_reason(reply),
        })
    });
    let mut object = head.object("chat.completion", objects.collect());
    object.insert("usage".to_owned(), usage(choices.iter().map(|choice| &choice.reply), choices.len()));
    if let [Choice { reply, .. }] = choices {
        object.insert("timings".to_owned(), timings(reply));
    }
    Value::Object(object)
}

/// Token counts of a completion: each prompt once for its `per_prompt` choices, and the output of all
/// choices.
pub(crate) fn usage<'a>(replies: impl Iterator<Item = &'a Reply>, per_prompt: usize) -> Value {
    let (mut prompt_tokens, mut cached_tokens, mut completion_tokens, mut reasoning_tokens) = (0, 0, 0, 0);
    for (index, reply) in replies.enumerate() {
        let usage = &reply.finish.usage;
        if index % per_prompt == 0 {
            prompt_tokens += usage.prompt_tokens;
            cached_tokens += usage.cached_tokens;
        }
        completion_tokens += usage.output_tokens;
        reasoning_tokens += reply.reasoning_tokens;
    }
    json!({
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
    })
}

/// The assistant's message: null content if there are calls without text, and no `tool_calls` without calls.
fn message(reply: &Reply, tools: &ClientTools) -> Value {
    let text = reply.text();
    let content = if text.is_empty() && !reply.tool_calls().is_empty() { Value::Null } else { text.into() };
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), content);
    message.insert("refusal".to_owned(), Value::Null);
    if let Some(reasoning) = &reply.message.reasoning_content {
        message.insert("reasoning_content".to_owned(), reasoning.as_str().into());
    }
    if !reply.tool_calls().is_empty() {
        let calls = reply.tool_calls().iter();
        let calls = calls.map(|call| call_object(call.id.as_deref(), &call.name, &tools.text(call), tools));
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    Value::Object(message)
}

/// A call with its arguments as JSON text, as in this API, or with the input of a custom tool.
pub(super) fn call_object(id: Option<&str>, name: &str, text: &str, tools: &ClientTools) -> Value {
    let (kind, field) = if tools.is_custom(name) { ("custom", "input") } else { ("function", "arguments") };
    let (name, namespace) = tools.client_name(name);
    let mut called = json!({"name": name, field: text});
    if let Some(namespace) = namespace {
        called["namespace"] = namespace.into();
    }
    json!({"id": id, "type": kind, kind: called})
}

pub(crate) fn finish_reason(reply: &Reply) -> &'static str {
    match reply.tool_calls().is_empty() {
        _ if reply.finish.is_cut_off() => "length",
        false => "tool_calls",
        true => "stop",
    }
}
