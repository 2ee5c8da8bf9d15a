//! Truncation of conversations to the context.

use lm_conversation::{HistoryCut, Overflow};
use lm_session::Tokenizer;
use lm_template::{Message, Role};

use crate::error::Result;
use crate::request::ChatRequest;

/// Drops the oldest messages of a request until its prompt, whose tokens `count` counts, leaves room for a
/// reply in a context of `context` tokens: for its maximum of output tokens, a quarter of the context at
/// most. Instructions and the last message are kept, and a tool's result is dropped with its call. The cut is
/// that of [`HistoryCut`]: later requests with the same messages have it, too. Returns the number of messages
/// that were dropped; none if even dropping all of them is not enough.
///
/// # Errors
/// Those of `count`.
pub(crate) fn truncate(
    request: &mut ChatRequest,
    context: usize,
    tokenizer: &Tokenizer,
    count: impl Fn(&ChatRequest) -> Result<usize>,
) -> Result<usize> {
    let reply = Overflow::reply_share(context, request.max_output_tokens.map(|(_, most)| most));
    let fits = |request: &ChatRequest| count(request).map(|tokens| tokens + reply <= context);
    if fits(request)? {
        return Ok(0);
    }
    let messages = &request.preface.messages;
    let first = messages.iter().position(|message| !is_instruction(message)).unwrap_or(messages.len());
    let (preface, history) = messages.split_at(first);
    let places: Vec<usize> =
        cuts(request).into_iter().filter(|cut| *cut > first).map(|cut| cut - first).collect();
    let cut = HistoryCut {
        tokenizer,
        preface,
        tools: &request.preface.tools,
        history,
        places: &places,
        context_tokens: context,
        reply_tokens: reply,
    };
    let Some(dropped) = cut.first_that_fits(|dropped| fits(&from(request, first + dropped)))? else {
        return Ok(0);
    };
    let kept = from(request, first + dropped);
    let dropped = request.preface.messages.len() - kept.preface.messages.len();
    *request = kept;
    Ok(dropped)
}

fn is_instruction(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// Indices of messages that a shortened conversation may begin at, beside its instructions. The call of a
/// last message that is a result is kept.
fn cuts(request: &ChatRequest) -> Vec<usize> {
    let messages = &request.preface.messages;
    let begins = |message: &Message| matches!(message.role, Role::User | Role::Assistant);
    let end = match request.last.role {
        Role::Tool => messages.iter().rposition(|message| !message.tool_calls.is_empty()),
        _ => Some(messages.len()),
    };
    let end = end.unwrap_or(0);
    let mut cuts: Vec<usize> = (0..end).filter(|index| begins(&messages[*index])).collect();
    cuts.push(end);
    cuts
}

/// The request with its messages from `cut` on, and all instructions; without results whose calls are before.
fn from(request: &ChatRequest, cut: usize) -> ChatRequest {
    let (before, after) = request.preface.messages.split_at(cut);
    let calls = after.iter().flat_map(|message| &message.tool_calls);
    let calls: Vec<Option<&str>> = calls.map(|call| call.id.as_deref()).collect();
    let is_kept = |message: &&Message| match (&message.role, message.tool_call_id.as_deref()) {
        (Role::Tool, Some(id)) => calls.iter().any(|call| call.is_none_or(|call| call == id)),
        (Role::Tool, None) => !calls.is_empty(),
        _ => true,
    };
    let instructions = before.iter().filter(|message| is_instruction(message));
    let messages = instructions.chain(after.iter().filter(is_kept)).cloned().collect();
    let mut shorter = request.clone();
    shorter.preface.messages = messages;
    shorter
}
