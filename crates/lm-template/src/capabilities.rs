//! What a chat template does with the things it may be given.

use serde_json::{Map, Value, json};

use crate::{GenerationPrompt, PromptTemplate, RenderInput};

/// What a chat template writes into the prompt, found by rendering small conversations with it.
///
/// A template that refuses a conversation (`raise_exception`) does not have the capability.
///
/// ```
/// use lm_template::{Capabilities, PromptTemplate};
///
/// let template = PromptTemplate::new("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")?;
/// let capabilities = Capabilities::of(&template);
/// assert!(capabilities.system && !capabilities.tools);
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// A system message reaches the prompt.
    pub system: bool,
    /// Declared tools reach the prompt.
    pub tools: bool,
    /// The assistant's calls in the history reach the prompt.
    pub tool_calls: bool,
    /// Results of tools reach the prompt.
    pub tool_results: bool,
    /// `enable_thinking` changes the prompt.
    pub thinking_switch: bool,
}

/// A word that no template holds.
const PROBE: &str = "probe7f3a";

impl Capabilities {
    /// Renders the small conversations.
    pub fn of(template: &PromptTemplate) -> Self {
        let user = || json!({"role": "user", "content": "Hello"});
        let function =
            |name: &str| json!({"type": "function", "function": {"name": name, "arguments": {"a": 1}}});
        let calls = |name| json!({"role": "assistant", "content": "", "tool_calls": [function(name)]});
        let result = json!({"role": "tool", "name": "f", "tool_call_id": "call_0", "content": PROBE});
        let tool = json!([{"type": "function", "function": {
            "name": PROBE,
            "description": "Does it.",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer", "description": "A number."}}},
        }}]);
        let probe = Probe { template };
        let none = Value::Null;
        let thinking = |on: bool| probe.render(&[user()], &none, json!({"enable_thinking": on}));
        Self {
            system: probe.shows(&[json!({"role": "system", "content": PROBE}), user()], &none),
            tools: probe.shows(&[user()], &tool),
            tool_calls: probe.shows(&[user(), calls(PROBE), user()], &none),
            tool_results: probe.shows(&[user(), calls("f"), result], &none),
            thinking_switch: thinking(true) != thinking(false),
        }
    }
}

struct Probe<'a> {
    template: &'a PromptTemplate,
}

impl Probe<'_> {
    fn shows(&self, messages: &[Value], tools: &Value) -> bool {
        self.render(messages, tools, json!({})).is_some_and(|text| text.contains(PROBE))
    }

    fn render(&self, messages: &[Value], tools: &Value, context: Value) -> Option<String> {
        let extra_context: Map<String, Value> = serde_json::from_value(context).ok()?;
        let generation_prompt = GenerationPrompt::Add;
        let input = RenderInput { messages, tools, generation_prompt, extra_context: &extra_context };
        Some(self.template.render(&input).ok()?.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: Capabilities) {
        let template = PromptTemplate::new(source).expect("the template compiles");
        assert_eq!(Capabilities::of(&template), expected, "{source}");
    }

    #[test]
    fn a_template_is_asked_and_not_read() {
        let none = Capabilities::default();
        check("{# system tools enable_thinking #}{{ messages[-1].role }}", none);
        check(
            "{% for m in messages %}{{ m.content }}{% endfor %}",
            Capabilities { system: true, tool_results: true, ..none },
        );
        check(
            "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}",
            Capabilities { tools: true, ..none },
        );
        check(
            "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% endfor %}",
            Capabilities { tool_calls: true, ..none },
        );
        check("{% if enable_thinking %}x{% endif %}", Capabilities { thinking_switch: true, ..none });
    }

    #[test]
    fn a_template_that_refuses_lacks_the_capability() {
        let refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}";
        check(refuses, Capabilities::default());
    }
}
