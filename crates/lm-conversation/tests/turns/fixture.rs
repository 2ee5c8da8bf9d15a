//! Conversations with a scripted model.

use lm_conversation::{Conversation, ConversationConfig, Engine, Preface, PromptTemplate};
use lm_session::testing::scripted_engine;
use serde_json::json;

/// ChatML template with tools in the Hermes format and an optional reasoning block, as in the models of that
/// family.
pub const CHATML: &str = r#"
{%- if tools %}{{ '<|im_start|>system\n' }}{% for tool in tools %}{{ tool | tojson }}{{ '\n' }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}
{%- for m in messages %}
    {%- if m.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' }}
        {{- m.content if m.content is string else m.content | tojson }}
        {{- '\n</tool_response><|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>' + m.role + '\n' + (m.content or '') }}
        {%- for call in m.tool_calls or [] %}
            {{- '\n' if m.content or not loop.first }}{{ '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}{{ '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{{ '<think>\n' if enable_thinking }}{% endif %}"#;

/// A call as the model writes it.
pub const CALL: &str =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n</tool_call>";

/// A config with the template above.
pub fn config() -> ConversationConfig {
    ConversationConfig {
        template: Some(PromptTemplate::new(CHATML).expect("it compiles")),
        ..Default::default()
    }
}

/// A preface with one tool.
pub fn weather() -> Preface {
    let parameters = json!({"type": "object", "properties": {"location": {"type": "string"}}});
    let tool = json!({"name": "get_weather", "description": "The weather.", "parameters": parameters});
    serde_json::from_value(json!({"tools": [tool]})).expect("a preface")
}

/// Creates a conversation whose model gives these replies; returns it with its engine.
pub fn conversation<const N: usize>(
    config: ConversationConfig,
    replies: [&str; N],
) -> (Conversation, Engine) {
    let engine = scripted_engine(replies);
    (Conversation::new(&engine, config).expect("a conversation"), engine)
}
