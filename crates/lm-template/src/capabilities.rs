//! Capabilities of a chat template.

use crate::orders::Orders;
use crate::probe::Probe;
use crate::prompt_template::PromptTemplate;

/// Capabilities of a chat template, found by rendering small conversations with it.
///
/// A template lacks a capability if it refuses the conversation (`raise_exception`), fails on it, or writes a
/// value as Python's `repr` does (`{'a': 1}`).
///
/// ```
/// use lm_template::{Capabilities, PromptTemplate};
///
/// let template = PromptTemplate::new("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")?;
/// let capabilities = Capabilities::of(&template);
/// assert!(capabilities.system && !capabilities.tools);
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A system message reaches the prompt.
    pub system: bool,
    /// Content that is text reaches the prompt.
    pub text_content: bool,
    /// The text parts of a user message whose content is a list of parts reach the prompt.
    pub typed_content: bool,
    /// The text parts of a system message whose content is a list of parts reach the prompt.
    pub typed_system: bool,
    /// The text parts of a message of the assistant whose content is a list of parts reach the prompt.
    pub typed_assistant: bool,
    /// Text beside parts of type `thinking` in the assistant's content reaches the prompt, and the template
    /// reads these parts.
    pub reasoning_parts: bool,
    /// Text and calls of one message do not both reach the prompt, but those of two messages do.
    pub split_text: bool,
    /// The role name of the model's messages: `assistant`, or `model` if only that one reaches the prompt.
    pub model_role: &'static str,
    /// Declared tools reach the prompt.
    pub tools: bool,
    /// A conversation without tools renders when `tools` is null, as it is in transformers.
    pub null_tools: bool,
    /// Declared tools reach the prompt only when the conversation has a system message.
    pub tools_need_system: bool,
    /// The variable that holds the tools instead of `tools`.
    pub tools_variable: Option<&'static str>,
    /// The assistant's tool calls in the history reach the prompt.
    pub tool_calls: bool,
    /// Several tool calls of one message reach the prompt.
    pub parallel_tool_calls: bool,
    /// Arguments of a call reach the prompt when they are an object.
    pub object_arguments: bool,
    /// Argument values other than strings reach the prompt.
    pub argument_values: bool,
    /// Arguments of a call reach the prompt unchanged when they are JSON text.
    pub text_arguments: bool,
    /// Requirements on tool call ids.
    pub call_ids: CallIds,
    /// Tool results reach the prompt.
    pub tool_results: bool,
    /// Tool results that are objects reach the prompt.
    pub object_results: bool,
    /// Tool results that are objects of `name` and `response` reach the prompt, and other objects do not.
    pub response_results: bool,
    /// Images of a tool result reach the prompt, in their places and as those of a user message do.
    pub result_images: bool,
    /// Audio of a tool result reaches the prompt, as images do.
    pub result_audio: bool,
    /// A user message right after tool results reaches the prompt.
    pub user_after_results: bool,
    /// The variable that switches thinking on and off.
    pub thinking: Option<ThinkingSwitch>,
    /// The template renders a conversation part by part (LiteRT-LM's "multi-prefill"); see
    /// [`SingleTurnPrompt`](crate::SingleTurnPrompt).
    pub single_turn: bool,
    /// Orders and gaps of messages without declared tools.
    pub orders: Orders,
    /// Orders and gaps of messages beside declared tools.
    pub orders_with_tools: Orders,
}

/// Requirements of a chat template on tool call ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallIds {
    /// Ids do not reach the prompt.
    #[default]
    Omitted,
    /// Any id reaches the prompt.
    Written,
    /// Ids reach the prompt and must be nine letters and digits (Mistral).
    NineCharacters,
}

/// A template variable that switches thinking on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkingSwitch {
    /// Name of the variable; the template's context sets it to true or false.
    pub variable: &'static str,
    /// True if the model thinks when the variable is not set.
    pub default: bool,
}

impl Capabilities {
    /// Finds the capabilities by rendering some 150 small conversations.
    pub fn of(template: &PromptTemplate) -> Self {
        Probe::new(template).capabilities()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: &str = "{% for m in messages %}{{ m.content }}{% endfor %}";

    /// Capabilities of a template that writes none of its input.
    const NONE: Capabilities = Capabilities {
        system: false,
        text_content: false,
        typed_content: false,
        typed_system: false,
        typed_assistant: false,
        reasoning_parts: false,
        split_text: false,
        model_role: "assistant",
        tools: false,
        null_tools: true,
        tools_need_system: false,
        tools_variable: None,
        tool_calls: false,
        parallel_tool_calls: false,
        object_arguments: false,
        argument_values: false,
        text_arguments: false,
        call_ids: CallIds::Omitted,
        tool_results: false,
        object_results: false,
        response_results: false,
        result_images: false,
        result_audio: false,
        user_after_results: false,
        thinking: None,
        single_turn: false,
        orders: Orders::ANY,
        orders_with_tools: Orders::ANY,
    };

    /// The capabilities besides orders.
    fn without_orders(capabilities: Capabilities) -> Capabilities {
        Capabilities { orders: Orders::ANY, orders_with_tools: Orders::ANY, ..capabilities }
    }

    fn check(source: &str, expected: Capabilities) {
        let template = PromptTemplate::new(source).expect("the template compiles");
        assert_eq!(without_orders(Capabilities::of(&template)), expected, "{source}");
    }

    #[test]
    fn capabilities_come_from_renderings() {
        let none = NONE;
        check("{# system tools enable_thinking #}{{ messages[-1].role }}", none);
        let echo = Capabilities {
            system: true,
            text_content: true,
            tool_results: true,
            user_after_results: true,
            ..none
        };
        check(ECHO, echo);
        check(
            "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}",
            Capabilities { tools: true, ..none },
        );
        let names = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% endfor %}";
        check(names, Capabilities { tool_calls: true, parallel_tool_calls: true, ..none });
        let switch = |variable, default| Some(ThinkingSwitch { variable, default });
        let on = "{% if enable_thinking %}x{% endif %}";
        check(on, Capabilities { thinking: switch("enable_thinking", false), ..none });
        let off = "{% if thinking is defined and not thinking %}x{% endif %}";
        check(off, Capabilities { thinking: switch("thinking", true), ..none });
        check(
            "{% if is_appending_to_prefill %}{{ message.content }}{% endif %}",
            Capabilities { single_turn: true, ..none },
        );
    }

    #[test]
    fn refusing_template_lacks_the_capability() {
        let refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}";
        check(refuses, Capabilities { text_content: true, ..NONE });
    }

    #[test]
    fn arguments_content_and_ids_have_detected_forms() {
        let of = |calls: &str| {
            let source = format!(
                "{{% for m in messages %}}{{{{ m.content }}}}{{% for c in m.tool_calls or [] %}}{{{{ c.function.name }}}}{calls}{{% endfor %}}{{% endfor %}}"
            );
            Capabilities::of(&PromptTemplate::new(&source).expect("the template compiles"))
        };
        let forms = |calls| (of(calls).object_arguments, of(calls).text_arguments);
        assert_eq!(forms("{{ c.function.arguments | tojson }}"), (true, false));
        assert_eq!(forms("{{ c.function.arguments }}"), (false, true));
        let either =
            "{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}";
        assert_eq!(forms(either), (true, true));
        assert_eq!(of("{{ c.id }}").call_ids, CallIds::Written);
        let nine = "{% if c.id | length != 9 %}{{ raise_exception('no') }}{% endif %}{{ c.id }}";
        assert_eq!(of(nine).call_ids, CallIds::NineCharacters);

        let typed = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}";
        let typed = Capabilities::of(&PromptTemplate::new(typed).expect("the template compiles"));
        assert_eq!((typed.text_content, typed.typed_content, typed.system), (false, true, true));
    }
}
