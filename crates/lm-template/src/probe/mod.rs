//! Small conversations that probe the capabilities of a template.

mod orders;

use serde_json::{Map, Value, json};

use self::orders::OrderProbe;
use crate::capabilities::{CallIds, Capabilities, ThinkingSwitch};
use crate::prompt_template::{GenerationPrompt, PromptTemplate, RenderInput};

/// Variables that switch thinking in published templates. (`reasoning_effort` and `thinking_budget` set an
/// amount.)
pub const THINKING_VARIABLES: [&str; 2] = ["enable_thinking", "thinking"];

/// Variables other than `tools` from which published templates read tools.
const TOOL_VARIABLES: [&str; 1] = ["xml_tools"];

/// Words that occur in no template, to search for in a rendering.
const WORD: &str = "probe7f3a";
const OTHER: &str = "other2e1d";
const KEY: &str = "keyed5c9e";
const VALUE: &str = "value8d2b";
const NUMBER: u32 = 7_391_548;
const RESULT_KEY: &str = "reply3a7c";
const KEYS: [&str; 2] = [KEY, RESULT_KEY];
/// A typical tool call id, and one that every template accepts.
const IDS: [&str; 2] = ["call_0", STRICT_ID];
const STRICT_ID: &str = "ident4b6f";

#[derive(Clone, Copy)]
enum Arguments {
    Object,
    Text,
    /// An object with a value that is not a string.
    Values,
}

/// Form of a call in a conversation.
#[derive(Clone, Copy)]
struct CallStyle {
    arguments: Arguments,
    id: &'static str,
}

pub(crate) struct Probe<'a> {
    template: &'a PromptTemplate,
    text_content: bool,
    typed_content: bool,
    typed_system: bool,
    typed_assistant: bool,
    model_role: &'static str,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(template: &'a PromptTemplate) -> Self {
        let mut probe = Self {
            template,
            text_content: true,
            typed_content: false,
            typed_system: false,
            typed_assistant: false,
            model_role: "assistant",
        };
        let parts = json!([{"type": "text", "text": WORD}, {"type": "text", "text": OTHER}]);
        probe.typed_content = probe.shows_content(&[json!({"role": "user", "content": parts})]);
        probe.text_content = probe.shows(&[probe.message("user", WORD)], &[WORD]);
        let system = [json!({"role": "system", "content": parts}), probe.message("user", "Hello")];
        probe.typed_system = probe.shows_content(&system);
        let answered = |role| {
            [probe.message("user", "Hello"), probe.message(role, WORD), probe.message("user", "Hello")]
        };
        let says = |role| probe.shows(&answered(role), &[WORD]);
        probe.model_role = if !says("assistant") && says("model") { "model" } else { "assistant" };
        let said = json!({"role": probe.model_role, "content": parts});
        probe.typed_assistant = probe.shows_content(&[probe.message("user", "Hello"), said]);
        probe
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        let answered = json!("");
        let tool_calls = self.any_style(|style| self.shows_calls(style, &[WORD], &answered, &[WORD]));
        let tool_results = self.any_style(|style| self.shows_calls(style, &["f"], &json!(WORD), &[WORD]));
        let style = self.styles().find(|style| self.shows_calls(*style, &[WORD], &answered, &[WORD]));
        let shows_arguments = |arguments: Arguments, words: &[&str]| {
            let styles = IDS.map(|id| CallStyle { arguments, id });
            tool_calls && styles.iter().any(|style| self.shows_calls(*style, &["f"], &answered, words))
        };
        let result = json!({RESULT_KEY: OTHER});
        let response = json!({"name": "f", "response": result});
        let object_results =
            self.any_style(|style| self.shows_calls(style, &["f"], &result, &[RESULT_KEY, OTHER]));
        let null_fails = |before: &[Value]| {
            let messages = [before, &[self.message("user", "Hello")]].concat();
            let renders = |tools: &Value| self.render(&messages, tools, json!({})).is_some();
            !renders(&Value::Null) && renders(&json!([]))
        };
        let alone = self.shows_tools("tools", &[]);
        let beside_system = self.shows_tools("tools", &[self.message("system", "Hello")]);
        let shown = if object_results { result } else { json!(OTHER) };
        let shown = tool_results.then_some(shown);
        let orders_with = |tools| OrderProbe { probe: self, style, result: shown.clone(), tools }.orders();
        let (orders, declared) = (orders_with(&Value::Null), json!([tool("lookup")]));
        Capabilities {
            system: self.shows(&[self.message("system", WORD), self.message("user", "Hello")], &[WORD]),
            text_content: self.text_content,
            typed_content: self.typed_content,
            typed_system: self.typed_system,
            typed_assistant: self.typed_assistant,
            reasoning_parts: self.reads_reasoning_parts(),
            split_text: tool_calls && self.needs_split_text(),
            model_role: self.model_role,
            tools: alone || beside_system,
            null_tools: !null_fails(&[]) && !null_fails(&[self.message("system", "Hello")]),
            tools_need_system: !alone && beside_system,
            tools_variable: TOOL_VARIABLES.into_iter().find(|variable| self.shows_tools(variable, &[])),
            tool_calls,
            parallel_tool_calls: self
                .any_style(|style| self.shows_calls(style, &[WORD, OTHER], &answered, &[WORD, OTHER])),
            object_arguments: shows_arguments(Arguments::Object, &[KEY, VALUE]),
            text_arguments: shows_arguments(Arguments::Text, &[KEY, VALUE]),
            argument_values: shows_arguments(Arguments::Values, &[KEY, &NUMBER.to_string()]),
            call_ids: self.call_ids(),
            tool_results,
            object_results,
            response_results: !object_results
                && self.any_style(|style| self.shows_calls(style, &["f"], &response, &[RESULT_KEY, OTHER])),
            result_images: self.shows_result_medium("image"),
            result_audio: self.shows_result_medium("audio"),
            user_after_results: self.any_style(|style| {
                let question = self.message("user", WORD);
                self.shows(&[self.called(style, &["f"], &answered), vec![question]].concat(), &[WORD])
            }),
            thinking: THINKING_VARIABLES.into_iter().find_map(|variable| self.thinking(variable)),
            single_turn: self.single_turn(),
            orders,
            orders_with_tools: if alone || beside_system { orders_with(&declared) } else { orders },
        }
    }

    /// Returns true if the words of a conversation's content are in the prompt, and not as the `repr` or JSON
    /// of their parts.
    fn shows_content(&self, messages: &[Value]) -> bool {
        let words = |text: &str| text.contains(WORD) && text.contains(OTHER);
        let shown = |text: String| words(&text) && !text.contains("'text'") && !text.contains("\"text\"");
        self.rendered(messages).is_some_and(shown)
    }

    /// Returns true if a medium between two texts of a tool result is written as one in a user message is.
    fn shows_result_medium(&self, kind: &str) -> bool {
        let text = |text: &str| json!({"type": "text", "text": text});
        let parts = json!([text(WORD), {"type": kind}, text(OTHER)]);
        let between = |messages: &[Value]| {
            let text = self.rendered(messages)?;
            let (_, rest) = text.split_once(WORD)?;
            rest.split_once(OTHER).map(|(between, _)| between.trim().to_owned())
        };
        let shown = between(&[json!({"role": "user", "content": parts})]);
        let shown = shown.filter(|text| !text.is_empty() && !text.contains("type"));
        shown.is_some() && self.any_style(|style| between(&self.called(style, &["f"], &parts)) == shown)
    }

    fn any_style(&self, shows: impl Fn(CallStyle) -> bool) -> bool {
        self.styles().any(shows)
    }

    fn styles(&self) -> impl Iterator<Item = CallStyle> + use<> {
        let of = |id| [Arguments::Object, Arguments::Text].map(|arguments| CallStyle { arguments, id });
        IDS.into_iter().flat_map(of)
    }

    /// Returns true if a declared tool is shown when a user message follows `before`.
    fn shows_tools(&self, variable: &str, before: &[Value]) -> bool {
        let tools = json!({variable: [tool(WORD)]});
        let messages = [before, &[self.message("user", "Hello")]].concat();
        self.render(&messages, &Value::Null, tools).is_some_and(|text| text.contains(WORD))
    }

    fn call_ids(&self) -> CallIds {
        let written = |id: &'static str| {
            self.any_style(|style| style.id == id && self.shows_calls(style, &["f"], &json!(""), &[id]))
        };
        match IDS.map(written) {
            [true, _] => CallIds::Written,
            [false, true] => CallIds::NineCharacters,
            [false, false] => CallIds::Omitted,
        }
    }

    fn thinking(&self, variable: &'static str) -> Option<ThinkingSwitch> {
        let render = |context| self.render(&[self.message("user", "Hello")], &Value::Null, context);
        let (on, off) = (render(json!({variable: true})), render(json!({variable: false})));
        (on != off).then(|| ThinkingSwitch { variable, default: render(json!({})) == on })
    }

    fn single_turn(&self) -> bool {
        let part = json!({
            "message": self.message("user", WORD),
            "is_appending_to_prefill": true,
            "is_first_part": true,
            "is_last_part": true,
        });
        self.render(&[], &Value::Null, part).is_some_and(|text| text.contains(WORD))
    }

    fn message(&self, role: &str, text: &str) -> Value {
        match self.text_content || !self.typed_content {
            true => json!({"role": role, "content": text}),
            false => json!({"role": role, "content": [{"type": "text", "text": text}]}),
        }
    }

    /// Returns true if calls of these tools in one message, each answered with `result`, put all of `words`
    /// into the prompt.
    fn shows_calls(&self, style: CallStyle, tools: &[&str], result: &Value, words: &[&str]) -> bool {
        self.shows(&self.called(style, tools, result), words)
    }

    /// A conversation of calls of these tools in one message, each answered with `result`.
    fn called(&self, style: CallStyle, tools: &[&str], result: &Value) -> Vec<Value> {
        let ids: Vec<String> = (0..tools.len()).map(|number| style.nth_id(number)).collect();
        let calls: Vec<Value> = tools.iter().zip(&ids).map(|(name, id)| style.call(name, id)).collect();
        let mut messages = vec![
            self.message("user", "Hello"),
            json!({"role": self.model_role, "content": "", "tool_calls": calls}),
        ];
        messages.extend(
            tools.iter().zip(&ids).map(
                |(name, id)| json!({"role": "tool", "name": name, "tool_call_id": id, "content": result}),
            ),
        );
        messages
    }

    /// Returns true if a part of type `thinking` beside text neither fails nor is shown as an object.
    fn reads_reasoning_parts(&self) -> bool {
        let parts = json!([{"type": "thinking", "thinking": OTHER}, {"type": "text", "text": WORD}]);
        let said = json!({"role": self.model_role, "content": parts});
        let text = self.rendered(&[self.message("user", "Hello"), said]);
        let as_object = |text: &str| text.contains("'thinking'") || text.contains("\"thinking\"");
        text.is_some_and(|text| is_shown(&text, &[WORD]) && !as_object(&text))
    }

    /// Returns true if text and calls reach the prompt in two messages of the assistant only.
    fn needs_split_text(&self) -> bool {
        let said = self.message(self.model_role, WORD);
        let beside = |style| {
            let mut messages = self.called(style, &[OTHER], &json!(""));
            messages[1]["content"] = said["content"].clone();
            self.shows(&messages, &[WORD, OTHER])
        };
        let apart = |style| {
            let mut messages = self.called(style, &[OTHER], &json!(""));
            messages.insert(1, said.clone());
            self.shows(&messages, &[WORD, OTHER])
        };
        !self.any_style(beside) && self.any_style(apart)
    }

    /// Returns true if the conversation puts all of `words` into the prompt, with objects in the template's
    /// own form.
    fn shows(&self, messages: &[Value], words: &[&str]) -> bool {
        self.rendered(messages).is_some_and(|text| is_shown(&text, words))
    }

    /// Returns true if a message of this role is shown somewhere.
    pub(crate) fn shows_role(&self, role: &str) -> bool {
        let user = || self.message("user", WORD);
        let places = [
            vec![user(), self.message(self.model_role, "Hello"), self.message(role, OTHER), user()],
            vec![self.message(role, OTHER), user()],
        ];
        places.iter().any(|messages| self.shows(messages, &[WORD, OTHER]))
    }

    /// Renders the conversation without tools; if that fails, with one tool.
    fn rendered(&self, messages: &[Value]) -> Option<String> {
        let declared = || self.render(messages, &json!([tool("lookup")]), json!({}));
        self.render(messages, &Value::Null, json!({})).or_else(declared)
    }

    fn render(&self, messages: &[Value], tools: &Value, context: Value) -> Option<String> {
        let extra_context: Map<String, Value> = serde_json::from_value(context).ok()?;
        let generation_prompt = GenerationPrompt::Add;
        let input = RenderInput { messages, tools, generation_prompt, extra_context: &extra_context };
        Some(self.template.render_as_is(&input).ok()?.text())
    }
}

/// Returns true if all of `words` are in the text, and no object in a foreign form.
fn is_shown(text: &str, words: &[&str]) -> bool {
    words.iter().all(|word| text.contains(word)) && !KEYS.into_iter().any(|key| is_foreign(text, key))
}

/// Returns true if an object with this key is in the text as a Python `repr`, as JSON inside JSON text, or in
/// an extra pair of braces.
fn is_foreign(text: &str, key: &str) -> bool {
    let nested = text.split(&format!("{{\"{key}\"")).next().filter(|before| before.len() < text.len());
    text.contains(&format!("'{key}'"))
        || text.contains(&format!("\\\"{key}"))
        || nested.is_some_and(|before| before.trim_end().ends_with('{'))
}

impl CallStyle {
    /// The id of the `number`-th call of a message: the first unchanged, the others with another ending.
    fn nth_id(self, number: usize) -> String {
        let (stem, _) = self.id.split_at(self.id.len() - 1);
        if number == 0 { self.id.to_owned() } else { format!("{stem}{number}") }
    }

    fn call(self, name: &str, id: &str) -> Value {
        let arguments = match self.arguments {
            Arguments::Object => json!({KEY: VALUE}),
            Arguments::Values => json!({KEY: VALUE, "number": [NUMBER]}),
            Arguments::Text => format!("{{\"{KEY}\": \"{VALUE}\"}}").into(),
        };
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {
        "name": name,
        "description": "Does it.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer", "description": "A number."}}},
    }})
}
