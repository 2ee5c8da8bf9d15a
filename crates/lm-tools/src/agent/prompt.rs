//! Prompt of an agent: its messages before the history, and those of each turn.

use crate::error::{Error, Result};
use crate::prompt::{
    AGENT_SCRATCHPAD, CHAT_HISTORY, ChatPrompt, INPUT, PromptPart, PromptText, PromptValues,
};
use lm_template::{Content, Message, Part, Role};

/// A [`ChatPrompt`] divided at the history.
#[derive(Clone, Debug)]
pub(super) struct AgentPrompt {
    /// Messages of a turn, one of them with the input.
    turn: Vec<(Role, PromptText)>,
}

impl AgentPrompt {
    /// Divides a prompt at `chat_history`, or else before the message with the input. Returns the messages
    /// before the history, too.
    ///
    /// # Errors
    /// [`Error::AgentPrompt`] for a prompt that an agent cannot follow; [`Error::MissingPromptValue`] for any
    /// other placeholder.
    pub fn new(prompt: ChatPrompt) -> Result<(Self, Vec<Message>)> {
        let mut parts = prompt.into_parts();
        let refused = |reason| Err(Error::AgentPrompt { reason });
        let is = |part: &PromptPart, expected: &str| matches!(part, PromptPart::Messages { name, .. } if name == expected);
        if parts.pop_if(|last| is(last, AGENT_SCRATCHPAD)).is_none() {
            return refused("its last part has to be `agent_scratchpad`");
        }
        let has_input = |part: &PromptPart| matches!(part, PromptPart::Message { text, .. } if text.variables().any(|name| name == INPUT));
        if parts.iter().filter(|part| has_input(part)).count() != 1 {
            return refused("it has to have one message with `{input}`");
        }
        let history = parts.iter().position(|part| is(part, CHAT_HISTORY));
        let split = history.or_else(|| parts.iter().position(has_input)).unwrap_or(0);
        let mut turn = parts.split_off(split);
        if history.is_some() {
            turn.remove(0);
        }
        if parts.iter().any(has_input) {
            return refused("`{input}` has to follow `chat_history`");
        }
        let before = parts.into_iter().map(message).map(|part| {
            let (role, text) = part?;
            Ok(Message::new(role, text.finish()?))
        });
        let before = before.collect::<Result<_>>()?;
        let turn = turn.into_iter().map(message).collect::<Result<Vec<_>>>()?;
        let input = PromptValues::new().text(INPUT, "");
        turn.iter().try_for_each(|(_, text)| text.bind(&input).finish().map(drop))?;
        Ok((Self { turn }, before))
    }

    /// Puts each message of the user into the messages of a turn; the others, such as results of calls, are
    /// unchanged.
    pub fn apply(&self, input: Vec<Message>) -> Result<Vec<Message>> {
        let messages = input.into_iter().map(|message| match message.role {
            Role::User => self.turn.iter().map(|(role, text)| filled(&message, role, text)).collect(),
            _ => Ok(vec![message]),
        });
        Ok(messages.collect::<Result<Vec<_>>>()?.concat())
    }
}

/// The message of a part; a list of messages other than the agent's has no value.
fn message(part: PromptPart) -> Result<(Role, PromptText)> {
    match part {
        PromptPart::Message { role, text } => Ok((role, text)),
        PromptPart::Messages { name, .. } => Err(Error::MissingPromptValue { name }),
    }
}

/// A message of a turn with this input, which keeps the input's images, audio and other keys.
fn filled(input: &Message, role: &Role, text: &PromptText) -> Result<Message> {
    if !text.variables().any(|name| name == INPUT) {
        return Ok(Message::new(role.clone(), text.finish()?));
    }
    let mut message = input.clone();
    message.role = role.clone();
    if *text == PromptText::variable(INPUT) {
        return Ok(message);
    }
    let text = text.bind(&PromptValues::new().text(INPUT, input.content.text())).finish()?;
    message.content = match message.content {
        Content::Parts(mut parts) => {
            let at = parts.iter().position(|part| part.as_text().is_some()).unwrap_or(0);
            parts.insert(at, Part::Text(text));
            let mut index = 0..;
            parts.retain(|part| index.next() == Some(at) || part.as_text().is_none());
            parts.into()
        }
        _ => text.into(),
    };
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn images_of_the_input_stay_in_their_places() {
        let text = PromptText::parse("<{input}>").expect("a text");
        let part = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "path": "a.png"});
        let shown = |parts: serde_json::Value| {
            let input = Message::from_json(json!({"role": "user", "content": parts})).expect("a message");
            filled(&input, &Role::User, &text).expect("a message").to_json()["content"].clone()
        };
        assert_eq!(shown(json!([image, part("a"), image, part("b")])), json!([image, part("<ab>"), image]));
        assert_eq!(shown(json!([image])), json!([part("<>"), image]));
        assert_eq!(shown(json!("a")), json!("<a>"));
    }
}
