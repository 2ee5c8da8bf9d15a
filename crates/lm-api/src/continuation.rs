//! Replies that continue a given message.

use lm_conversation::{ConversationEvent, Reply};

/// Reply to a request that continues its last message, without the text of that message, as OpenAI-compatible
/// servers and Anthropic's answer it.
#[derive(Debug, Default)]
pub(crate) struct Continuation {
    text: String,
    reasoning: String,
}

impl Continuation {
    /// Reads the next event; the reply of the last one gets the new text alone, and the tokens of the message
    /// count as prompt.
    pub(crate) fn read(&mut self, event: &mut ConversationEvent) {
        match event {
            ConversationEvent::Text(text) => self.text += text,
            ConversationEvent::Reasoning(text) => self.reasoning += text,
            ConversationEvent::Finished(reply) => self.finish(reply),
            _ => {}
        }
    }

    fn finish(&mut self, reply: &mut Reply) {
        let reasoning = std::mem::take(&mut self.reasoning);
        reply.message.content = std::mem::take(&mut self.text).into();
        reply.message.reasoning_content = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
        let usage = &mut reply.finish.usage;
        let given = std::mem::take(&mut usage.continued_tokens);
        usage.prompt_tokens += given;
        usage.output_tokens -= given;
    }
}
