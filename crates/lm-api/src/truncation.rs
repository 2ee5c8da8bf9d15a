//! Truncation of conversations to the context.

use lm_template::{Message, Role};

use crate::error::Result;
use crate::request::ChatRequest;

/// Drops the oldest messages of a request until its prompt, whose tokens `count` counts, leaves room for a
/// reply in a context of `context` tokens: for its maximum of output tokens, a quarter of the context at most.
/// Instructions and the last message are kept, and a tool's result is dropped with its call. Returns the
/// number of messages that were dropped; none if even dropping all of them is not enough.
///
/// # Errors
/// Those of `count`.
pub(crate) fn truncate(
    request: &mut ChatRequest,
    context: usize,
    count: impl Fn(&ChatRequest) -> Result<usize>,
) -> Result<usize> {
    let reply = request.max_output_tokens.map_or(usize::MAX, |(_, most)| most).min(context / 4);
    let fits = |request: &ChatRequest| count(request).map(|tokens| tokens + reply <= context);
    if fits(request)? {
        return Ok(0);
    }
    let cuts = cuts(request);
    let (mut kept, mut low, mut high) = (None, 0, cuts.len());
    while low < high {
        let middle = low.midpoint(high);
        let shorter = from(request, cuts[middle]);
        if fits(&shorter)? {
            (kept, high) = (Some(shorter), middle);
        } else {
            low = middle + 1;
        }
    }
    let Some(kept) = kept else { return Ok(0) };
    let dropped = request.preface.messages.len() - kept.preface.messages.len();
    *request = kept;
    Ok(dropped)
}

/// Indices of messages that a shortened conversation may begin at, beside its instructions.
fn cuts(request: &ChatRequest) -> Vec<usize> {
    let messages = &request.preface.messages;
    let begins = |message: &Message| matches!(message.role, Role::User | Role::Assistant);
    let mut cuts: Vec<usize> = (0..messages.len()).filter(|index| begins(&messages[*index])).collect();
    if request.last.role != Role::Tool {
        cuts.push(messages.len());
    }
    cuts
}

/// The request with its messages from `cut` on, and all instructions.
fn from(request: &ChatRequest, cut: usize) -> ChatRequest {
    let mut request = request.clone();
    let mut index = 0;
    request.preface.messages.retain(|message| {
        index += 1;
        index > cut || matches!(message.role, Role::System | Role::Developer)
    });
    request
}
