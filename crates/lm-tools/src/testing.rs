//! Scripted models for tests of programs with tools (feature `test-util`).
//!
//! A scripted model gives prepared replies in the real engine: prompts are rendered with a chat template,
//! replies are constrained to the tools' schemas, streamed and parsed. A test of an agent needs no weights,
//! takes milliseconds, and is deterministic.
//!
//! ```toml
//! [dev-dependencies]
//! lm-tools = { path = "…/lm/crates/lm-tools", features = ["test-util"] }
//! ```
//!
//! ```
//! use lm_tools::testing::{ScriptedReply, scripted_engine};
//! use lm_tools::{Agent, Toolset, tool};
//! use serde_json::json;
//!
//! /// Multiply a and b.
//! #[tool]
//! fn multiply(/** first int */ a: i64, /** second int */ b: i64) -> i64 {
//!     a * b
//! }
//!
//! let engine = scripted_engine([
//!     ScriptedReply::call("multiply", json!({"a": 3, "b": 5})).and_call("multiply", json!({"a": 2, "b": 43})),
//!     ScriptedReply::text("15 and 86."),
//! ]);
//! let mut agent = Agent::builder(&engine, Toolset::new().with(multiply::tool())?).build()?;
//! let reply = agent.run("3 times 5, and 2 times 43?")?;
//! assert_eq!(reply.text(), "15 and 86.");
//! assert_eq!(reply.steps[1].result.content.text(), "86");
//! # Ok::<(), lm_tools::Error>(())
//! ```

use lm_conversation::{Engine, EngineSettings};
use lm_session::ChatTemplateSource;
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_template::Value;
use serde_json::json;

/// Chat template of a scripted model: ChatML, with calls and results in the tags of the Qwen family.
const TEMPLATE: &str = "\
{%- if tools %}<|im_start|>system
# Tools
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
A call is <tool_call>{\"name\": <function-name>, \"arguments\": <arguments>}</tool_call>.<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{\"name\": {{ call.function.name | tojson }}, \"arguments\": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}";

/// A reply of a scripted model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedReply(String);

impl ScriptedReply {
    /// Creates a reply of text. Markup in it is interpreted: `<tool_call>{</tool_call>` is a malformed call.
    pub fn text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Creates a reply of one call. Calls are constrained to the declared tools and their schemas, so the
    /// arguments are in the order of the schema; a call that is not valid needs
    /// [`ConstrainCalls::No`](lm_conversation::ConstrainCalls::No).
    pub fn call(name: &str, arguments: Value) -> Self {
        Self(String::new()).and_call(name, arguments)
    }

    /// Adds a call.
    #[must_use]
    pub fn and_call(self, name: &str, arguments: Value) -> Self {
        let call = spaced(&json!({"name": name, "arguments": arguments}));
        let line = if self.0.is_empty() { "" } else { "\n" };
        Self(format!("{}{line}<tool_call>\n{call}\n</tool_call>", self.0))
    }
}

impl From<&str> for ScriptedReply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// JSON with a space after `:` and `,`, as models write it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| format!("{}: {}", json!(key), spaced(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Creates an engine whose model gives `replies` in order to any prompt. After the last one its replies are
/// empty. A text that the grammar of the turn refuses, such as a call of an unknown tool, fails the turn with
/// [`TokenRefused`](lm_session::Error::TokenRefused), which has the preceding text and the refused token. It
/// has a context of 4,096 tokens; a token is a few characters.
///
/// # Panics
/// When the engine cannot be created, which is a bug.
pub fn scripted_engine(replies: impl IntoIterator<Item = ScriptedReply>) -> Engine {
    engine(scripted(replies).strictly())
}

/// [`scripted_engine`] whose model writes another text if the grammar refuses its script.
#[cfg(test)]
pub(crate) fn lenient_engine(replies: impl IntoIterator<Item = ScriptedReply>) -> Engine {
    engine(scripted(replies))
}

fn scripted(replies: impl IntoIterator<Item = ScriptedReply>) -> FakeLm {
    FakeLm::scripted(&tokenizer(), replies.into_iter().map(|reply| reply.0))
}

fn engine(model: FakeLm) -> Engine {
    let mut loaded = loaded(model);
    let template = ("chat_template.jinja".to_owned(), TEMPLATE.as_bytes().to_vec());
    loaded.chat_template = Some(ChatTemplateSource { files: vec![template] });
    Engine::new(loaded, EngineSettings::default()).expect("default settings fit a scripted model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Agent, demo};

    #[test]
    fn scripted_reply_violating_the_grammar_fails_the_turn() {
        for (name, arguments, place) in [
            ("get_whether", json!({"location": "Paris"}), "<tool_call>\n{\"name\": \"get_w"),
            ("get_weather", json!({"city": "Paris"}), "\"arguments\": {\""),
        ] {
            let engine = scripted_engine([ScriptedReply::text("Hi."), ScriptedReply::call(name, arguments)]);
            let mut agent = Agent::builder(&engine, demo()).build().expect("an agent");
            agent.run("Hello!").expect("text is free");
            let error = agent.run("How is the weather?").expect_err("the grammar refuses it");
            let crate::Error::Conversation(lm_conversation::Error::Session(error)) = error else {
                panic!("{error:?}")
            };
            let lm_session::Error::TokenRefused { token, text, .. } = &error else { panic!("{error:?}") };
            assert!(text.contains(place) && !token.is_empty(), "{error}");
        }
    }
}
