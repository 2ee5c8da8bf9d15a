//! Polyfills, one by one with templates of ours, and with every published template.

use crate::shared;
use lm_template::{
    AfterPart, Capabilities, GenerationPrompt, Map, Origin, Polyfill, PolyfilledPrompt, PolyfilledTemplate,
    Polyfills, Prompt, PromptTemplate, RenderInput, SingleTurnPrompt, Value,
};
use serde_json::json;

pub fn render(source: &str, polyfills: Polyfills, messages: &[Value], tools: &Value) -> PolyfilledPrompt {
    let template = PolyfilledTemplate::new(PromptTemplate::new(source).expect("it compiles"), polyfills);
    let (generation_prompt, extra_context) = (GenerationPrompt::Omit, &Map::new());
    let input = RenderInput { messages, tools, generation_prompt, extra_context };
    template.render(&input).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// Checks one polyfill: the prompt with it, its name in the prompt, and that it does not act when disabled.
pub fn check(source: &str, messages: &Value, tools: &Value, polyfill: Polyfill, expected: &str) {
    let messages = messages.as_array().expect("a list of messages");
    let rendered = render(source, Polyfills::none().with(polyfill), messages, tools);
    assert_eq!(
        (rendered.prompt.text().as_str(), &rendered.polyfills[..]),
        (expected, &[polyfill][..]),
        "{source}"
    );
    let template = PolyfilledTemplate::new(
        PromptTemplate::new(source).expect("it compiles"),
        Polyfills::default().without(polyfill),
    );
    let (generation_prompt, extra_context) = (GenerationPrompt::Omit, &Map::new());
    let without = template.render(&RenderInput { messages, tools, generation_prompt, extra_context });
    let applied = without.map(|rendered| rendered.polyfills.contains(&polyfill));
    assert!(!applied.unwrap_or(false), "{source}");
}

/// Roles and contents, one message after the other.
const PLAIN: &str = "{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('role') }}{% endif %}\
                     [{{ m.role }}|{{ m.content }}]{% endfor %}";
/// Calls and results as well.
const CALLS: &str = "{% for m in messages %}[{{ m.role }}|{{ m.content }}{% for c in m.tool_calls or [] %}\
                     {{ c.function.name }}{{ ARGUMENTS }}{% endfor %}]{% endfor %}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}";

pub fn calls(arguments: &str) -> String {
    CALLS.replace("{{ ARGUMENTS }}", arguments)
}

#[test]
fn unsupported_roles_become_user_text() {
    let system = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "system", "content": "T"}]);
    check(PLAIN, &system, &Value::Null, Polyfill::SystemInUserText, "[user|S\n\nU][user|T]");
    let model =
        "{% for m in messages if m.role in ['user', 'model'] %}[{{ m.role }}|{{ m.content }}]{% endfor %}";
    let turns = json!([{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]);
    check(model, &turns, &Value::Null, Polyfill::AssistantAsModel, "[user|U][model|A]");
    let results = json!([
        {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"},
        {"role": "tool", "name": "f", "content": "</tool_response> 1"}, {"role": "tool", "content": {"b": [2]}},
    ]);
    let expected = "[user|U][assistant|A][user|<tool_response>\n{\"name\": \"f\", \"content\": \"<\\/tool_response> 1\"}\n</tool_response>\n\n\
                    <tool_response>\n{\"content\": {\"b\": [2]}}\n</tool_response>]";
    check(PLAIN, &results, &Value::Null, Polyfill::ResultsAsUserText, expected);
}

#[test]
fn empty_answer_separates_results_from_a_question() {
    let source = "{% for m in messages %}{% if m.role == 'user' and not loop.first and loop.previtem.role == 'tool' %}\
                  {{ raise_exception('order') }}{% endif %}[{{ m.role }}|{{ m.content }}{% for c in m.tool_calls or [] %}\
                  {{ c.function.name }}{% endfor %}]{% endfor %}";
    let call = json!({"type": "function", "function": {"name": "f", "arguments": {}}});
    let messages = json!([
        {"role": "user", "content": "U"}, {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "f", "content": "1"}, {"role": "user", "content": "V"},
    ]);
    let expected = "[user|U][assistant|f][tool|1][assistant|][user|V]";
    check(source, &messages, &Value::Null, Polyfill::AnswerAdded, expected);
    let messages = messages.as_array().expect("a list");
    let free = render(&calls(""), Polyfills::default(), messages, &Value::Null);
    assert!(!free.polyfills.contains(&Polyfill::AnswerAdded), "a template that takes it gets it unchanged");
    let ends_with_results = render(source, Polyfills::default(), &messages[..3], &Value::Null);
    assert_eq!(ends_with_results.polyfills, []);
}

#[test]
fn tools_and_calls_become_text_in_one_form() {
    let call =
        |arguments: Value| json!({"type": "function", "function": {"name": "f", "arguments": arguments}});
    let calls = [call(json!({"a": 1})), call(json!("{\"a\": 2}")), call(json!({"a": "</tool_call>"}))];
    let messages = json!([{"role": "assistant", "content": "A", "tool_calls": calls}]);
    let expected = "[assistant|A\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n\
                    <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 2}}\n</tool_call>\n\
                    <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"<\\/tool_call>\"}}\n</tool_call>]";
    check(PLAIN, &messages, &Value::Null, Polyfill::CallsAsText, expected);

    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let source = "{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}";
    let rendered = render(source, Polyfills::default(), &[json!({"role": "user", "content": "U"})], &tools);
    assert_eq!(rendered.polyfills, [Polyfill::ToolsInSystemText]);
    let text = rendered.prompt.text();
    assert!(text.starts_with("[system|You can call") && text.ends_with("[user|U]"), "{text}");
    assert!(
        text.contains("<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"f\"}}\n</tools>"),
        "{text}"
    );
    let folded = render(PLAIN, Polyfills::default(), &[json!({"role": "user", "content": "U"})], &tools);
    assert_eq!(folded.polyfills, [Polyfill::ToolsInSystemText, Polyfill::SystemInUserText]);
    assert!(
        folded.prompt.text().starts_with("[user|You can call") && folded.prompt.text().ends_with("\n\nU]")
    );
}

#[test]
fn arguments_ids_and_calls_have_the_template_form() {
    let call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let said = |calls: Value| json!([{"role": "assistant", "content": "", "tool_calls": calls}]);
    let object = said(json!([call("call_0", json!({"a": "b"}))]));
    let text = said(json!([call("call_0", json!("{\"a\": \"b\"}"))]));
    check(
        &calls("{{ c.function.arguments }}"),
        &object,
        &Value::Null,
        Polyfill::ArgumentsAsText,
        "[assistant|f{\"a\": \"b\"}]",
    );
    let as_json = calls("{{ c.function.arguments | tojson }}");
    check(&as_json, &text, &Value::Null, Polyfill::ArgumentsAsObject, "[assistant|f{\"a\": \"b\"}]");

    let bare =
        calls("{% for k in c.function.arguments %}{{ k + '=' + c.function.arguments[k] }};{% endfor %}");
    let mixed = said(json!([call("call_0", json!({"a": "b", "n": [1, null]}))]));
    check(&bare, &mixed, &Value::Null, Polyfill::ArgumentValuesAsText, "[assistant|fa=b;n=[1, null];]");

    let strict = calls("{% if c.id | length != 9 %}{{ raise_exception('id') }}{% endif %}{{ c.id }}");
    let strict = strict.replace("{{ m.role }}", "{{ m.role }}{{ m.tool_call_id }}");
    let answered = json!([
        {"role": "assistant", "content": "", "tool_calls": [call("call_0", json!({})), call("nineChars", json!({}))]},
        {"role": "tool", "tool_call_id": "nineChars", "content": "2"}, {"role": "tool", "tool_call_id": "call_0", "content": "1"},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]},
        {"role": "tool", "content": "3"},
    ]);
    let expected = "[assistant|fcall00001fnineChars][toolnineChars|2][toolcall00001|1][assistant|fcall00002][toolcall00002|3]";
    check(&strict, &answered, &Value::Null, Polyfill::CallIdsShortened, expected);
    let without_id = |name: &str| json!({"type": "function", "function": {"name": name, "arguments": {}}});
    let parallel = json!([
        {"role": "assistant", "content": "", "tool_calls": [without_id("f"), without_id("g")]},
        {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"},
    ]);
    let expected = "[assistant|fcall00001gcall00002][toolcall00001|1][toolcall00002|2]";
    check(&strict, &parallel, &Value::Null, Polyfill::CallIdsShortened, expected);

    let single = calls("{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}{{ c.id }}");
    let parallel = json!([
        {"role": "assistant", "content": "A", "tool_calls": [call("x", json!({})), call("y", json!({}))]},
        {"role": "tool", "tool_call_id": "y", "content": "2"}, {"role": "tool", "tool_call_id": "x", "content": "1"},
        {"role": "user", "content": "U"},
    ]);
    let expected = "[assistant|Afx][tool|1][assistant|fy][tool|2][user|U]";
    check(&single, &parallel, &Value::Null, Polyfill::CallsSplit, expected);
    let in_order = json!([
        {"role": "assistant", "content": "A", "tool_calls": [without_id("f"), without_id("g")]},
        {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}, {"role": "user", "content": "U"},
    ]);
    let expected = "[assistant|Af][tool|1][assistant|g][tool|2][user|U]";
    check(&single, &in_order, &Value::Null, Polyfill::CallsSplit, expected);
}

#[test]
fn content_has_the_template_form() {
    let echo = "{% for m in messages %}[{{ m.content | trim }}]{% endfor %}";
    let parts = json!([{"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}]);
    check(echo, &parts, &Value::Null, Polyfill::PartsAsText, "[ab]");
    let result = json!([{"role": "tool", "content": {"a": [1, "é"]}}]);
    check(echo, &result, &Value::Null, Polyfill::ResultAsJsonText, "[{\"a\": [1, \"é\"]}]");
    for parts in [json!(["a", {"type": "text", "text": "b"}]), json!([{"type": "text", "text": "ab"}])] {
        let result = json!([{"role": "tool", "content": parts}]);
        check(echo, &result, &Value::Null, Polyfill::PartsAsText, "[ab]");
    }
    let typed = "{% for m in messages %}[{% for p in m.content %}{{ p.text }}{% endfor %}]{% endfor %}";
    check(typed, &json!([{"role": "user", "content": "a"}]), &Value::Null, Polyfill::TextAsParts, "[a]");
}

/// As an object or a list, not as JSON text in JSON.
#[test]
fn result_in_user_text_is_written_once() {
    let source = "{% for m in messages %}{% if m.role in ['user', 'assistant'] %}[{{ m.content }}]{% endif %}{% endfor %}";
    for (content, shown) in [
        (json!({"total": 12}), json!({"total": 12})),
        (json!(["a", "b"]), json!(["a", "b"])),
        (json!([{"id": 1}]), json!([{"id": 1}])),
        (json!(["a", {"type": "text", "text": "b"}]), json!("ab")),
        (json!("{\"total\": 12}"), json!("{\"total\": 12}")),
    ] {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "sum", "arguments": {}}});
        let messages = json!([
            {"role": "user", "content": "U"}, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": content},
        ]);
        let messages = messages.as_array().expect("a list of messages");
        let prompt = render(source, Polyfills::default(), messages, &Value::Null).prompt.text();
        let result = prompt.split("<tool_response>\n").nth(1).and_then(|rest| rest.split('\n').next());
        let result: Value = serde_json::from_str(result.expect("a result")).expect("JSON");
        assert_eq!(result["content"], shown, "{prompt}");
    }
}

#[test]
fn text_beside_calls_is_a_message_of_its_own() {
    let source = "{% for m in messages %}{% if m.content %}[{{ m.content }}]{% else %}{% for c in m.tool_calls or [] %}\
                  ({{ c.function.name }}){% endfor %}{% endif %}{% endfor %}";
    let call = json!({"id": "c1", "type": "function", "function": {"name": "sum", "arguments": {}}});
    let messages = json!([
        {"role": "user", "content": "U"}, {"role": "assistant", "content": "A", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "R"},
    ]);
    check(source, &messages, &Value::Null, Polyfill::TextSplit, "[U][A](sum)[R]");
}

/// Every published template that has calls shows the text beside them.
#[test]
fn published_templates_show_text_and_calls() {
    let Some(folder) = shared::path("goldens/templates") else { return };
    let tools = json!([{"type": "function", "function": {"name": "tellurium", "parameters": {"type": "object", "properties": {}}}}]);
    let call =
        json!({"id": "call00001", "type": "function", "function": {"name": "tellurium", "arguments": {}}});
    let messages = json!([
        {"role": "user", "content": "U"}, {"role": "assistant", "content": "antimony", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "name": "tellurium", "content": "R"}, {"role": "user", "content": "V"},
    ]);
    let messages = messages.as_array().expect("a list");
    let mut lost = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "jinja") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a template");
        let template =
            PolyfilledTemplate::new(PromptTemplate::new(&source).expect("it compiles"), Polyfills::default());
        let (generation_prompt, extra_context) = (GenerationPrompt::Omit, &Map::new());
        let input = RenderInput { messages, tools: &tools, generation_prompt, extra_context };
        let Ok(prompt) = template.render(&input) else { continue };
        let text = prompt.prompt.text();
        let said = text.split_once('U').map_or("", |(_, rest)| rest);
        if !(said.contains("antimony") && said.contains("tellurium")) {
            lost.push(path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        }
    }
    assert_eq!(lost, Vec::<String>::new());
}

#[test]
fn reasoning_parts_become_reasoning_content() {
    let joined = "{% for m in messages %}[{{ m.reasoning_content }}|\
                  {{ m.content if m.content is string else m.content[0].text }}]{% endfor %}";
    for (content, expected) in [
        (json!([{"type": "thinking", "thinking": "H"}, {"type": "text", "text": "A"}]), "[H|A]"),
        (json!([{"type": "reasoning", "text": "H"}]), "[H|]"),
        (json!([{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "A"}]), "[|A]"),
    ] {
        let messages = json!([{"role": "assistant", "content": content}]);
        check(joined, &messages, &Value::Null, Polyfill::ReasoningMoved, expected);
    }
    let reads_parts = "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}\
                       ({{ p.thinking or p.text }}){% endfor %}{% endif %}{% endfor %}";
    let template = PromptTemplate::new(reads_parts).expect("a template");
    assert!(Capabilities::of(&template).reasoning_parts);
}

#[test]
fn results_are_responses_of_the_called_function() {
    let source = "{% for m in messages %}{% if m.role == 'tool' %}{% if m.content is mapping %}{% if 'response' not in m.content %}{{ raise_exception('no') }}{% endif %}\
                  [{{ m.content.name }}{% for k, v in m.content.response.items() %}|{{ k }}={{ v }}{% endfor %}]{% else %}[{{ m.content }}]{% endif %}\
                  {% else %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}{% endif %}{% endfor %}";
    let call = json!({"id": "c1", "type": "function", "function": {"name": "sum", "arguments": {}}});
    for (content, shown) in [
        (json!("12"), "value=12"),
        (json!({"total": 12}), "total=12"),
        (json!("{\"total\": 12}"), "total=12"),
    ] {
        let messages = json!([
            {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": content},
        ]);
        check(source, &messages, &Value::Null, Polyfill::ResultsAsResponse, &format!("sum[sum|{shown}]"));
    }
}

#[test]
fn bare_and_wrapped_declarations_render_alike() {
    let bare = json!({"name": "f", "description": "d", "parameters": {"type": "object"}});
    let wrapped = json!([{"type": "function", "function": bare}]);
    let user = json!([{"role": "user", "content": "U"}]);
    let source = "{% for m in messages %}{{ m.content }}{% endfor %}{% for t in tools or [] %}{{ t | tojson }}{% endfor %}";
    let text = render(source, Polyfills::none(), user.as_array().expect("a list"), &wrapped).prompt.text();
    check(source, &user, &json!([bare]), Polyfill::ToolsWrapped, &text);
    let beside = "{% for m in messages %}{{ m.content }}{% if m.role == 'system' %}{{ tools | length }}{{ tools | tojson }}{% endif %}{% endfor %}";
    let expected = format!(
        "1{}U",
        "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"d\", \"parameters\": {\"type\": \"object\"}}}]"
    );
    check(beside, &user, &wrapped, Polyfill::SystemAdded, &expected);
    let needs_list = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools | length }}";
    check(needs_list, &user, &Value::Null, Polyfill::ToolsAsEmptyList, "U0");
    let renamed = source.replace("tools", "xml_tools");
    check(&renamed, &user, &wrapped, Polyfill::ToolsRenamed, &text);
}

/// Words of a conversation that uses every feature; each word must reach the prompt, whatever the template.
const WORDS: [&str; 8] = [
    "systemword",
    "userword",
    "get_weather",
    "placeword",
    "secondplace",
    "resultword",
    "innerword",
    "answerword",
];

fn everything() -> (Vec<Value>, Value) {
    let call = |id: &str, place: &str| json!({"id": id, "type": "function", "function": {"name": "get_weather", "arguments": {"city": place, "days": [2, 3]}}});
    let messages = vec![
        json!({"role": "system", "content": [{"type": "text", "text": "A systemword."}]}),
        json!({"role": "user", "content": "A userword."}),
        json!({"role": "assistant", "content": "", "tool_calls": [call("call_0", "placeword"), call("call_1", "secondplace")]}),
        json!({"role": "tool", "name": "get_weather", "tool_call_id": "call_0", "content": {"sky": ["resultword"]}}),
        json!({"role": "tool", "name": "get_weather", "tool_call_id": "call_1", "content": "The innerword."}),
        json!({"role": "assistant", "content": "An answerword."}),
        json!({"role": "user", "content": [{"type": "text", "text": "And now?"}]}),
    ];
    (
        messages,
        json!([{"name": "get_weather", "description": "The weather.", "parameters": {"type": "object", "properties": {}}}]),
    )
}

#[test]
fn published_templates_render_whole_conversations() {
    let Some(folder) = shared::path("goldens/templates") else { return };
    let index = shared::json(folder.join("index.json"));
    let (messages, tools) = everything();
    let (generation_prompt, extra_context) = (GenerationPrompt::Add, &Map::new());
    let input = RenderInput { messages: &messages, tools: &tools, generation_prompt, extra_context };
    let says_all = |prompt: Result<Prompt, lm_template::Error>| {
        let text = match prompt {
            Ok(prompt) => prompt.text(),
            Err(error) => return Err(error.to_string()),
        };
        let lost: Vec<&str> = WORDS.into_iter().filter(|word| !text.contains(word)).collect();
        if lost.is_empty() { Ok(()) } else { Err(format!("without {lost:?}")) }
    };
    let (mut before, mut losing) = (0, Vec::new());
    let rows = index["templates"].as_array().expect("a list of templates");
    for row in rows {
        let id = row["id"].as_str().expect("an id");
        let source = std::fs::read_to_string(folder.join(format!("{id}.jinja"))).expect("a template");
        let template = PromptTemplate::new(&source).expect("it compiles");
        let template = template.with_context(row["context"].as_object().cloned().unwrap_or_default());
        before += usize::from(says_all(template.render(&input)).is_ok());
        let template = PolyfilledTemplate::new(template, Polyfills::default());
        if let Err(why) = says_all(template.render(&input).map(|rendered| rendered.prompt)) {
            losing.push((id.to_owned(), why));
        }
    }
    println!(
        "{before} of {} templates say all of a conversation, {} with polyfills",
        rows.len(),
        rows.len() - losing.len()
    );
    assert!(losing.is_empty(), "{losing:#?}");
}

/// The three templates of LiteRT-LM's kind: the parts add up to the whole conversation.
#[test]
fn single_turn_templates_render_part_by_part() {
    let Some(folder) = shared::path("goldens/templates") else { return };
    let index = shared::json(folder.join("index.json"));
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let mut found = Vec::new();
    for row in index["templates"].as_array().expect("a list of templates") {
        let id = row["id"].as_str().expect("an id");
        let source = std::fs::read_to_string(folder.join(format!("{id}.jinja"))).expect("a template");
        let template = PromptTemplate::new(&source).expect("it compiles");
        let template = template.with_context(row["context"].as_object().cloned().unwrap_or_default());
        if !Capabilities::of(&template).single_turn {
            continue;
        }
        found.push(id.to_owned());
        let (first, second) = (message("user", "One <eos> thing"), message("user", ", and another."));
        let answer = message(if id.contains("generic") { "model" } else { "assistant" }, "Right.");
        let whole =
            [message("user", "One <eos> thing, and another."), answer.clone(), message("user", "Go on.")];
        let (generation_prompt, extra_context) = (GenerationPrompt::Add, &Map::new());
        let input = RenderInput { messages: &whole, tools: &Value::Null, generation_prompt, extra_context };
        let whole = template.render(&input).expect("it renders").text();

        let mut parts = SingleTurnPrompt::new(&template, Map::new());
        let mut prompt = String::new();
        for (part, after) in [
            (&first, AfterPart::More),
            (&second, AfterPart::More),
            (&answer, AfterPart::Message),
            (&message("user", "Go on."), AfterPart::Reply),
        ] {
            let piece = parts.push(part, after).expect("it renders");
            let typed = |segment: &lm_template::Segment| {
                segment.origin == Origin::Template && segment.text.contains("<eos>")
            };
            assert!(!piece.segments.iter().any(typed), "{id}: {:?}", piece.segments);
            prompt += &piece.text();
        }
        let before = whole.strip_suffix(&prompt).unwrap_or_else(|| panic!("{id}: {prompt:?} in {whole:?}"));
        assert!(["", "<bos>", "<s>"].contains(&before.trim()), "{id}: {before:?} before the parts");
    }
    assert_eq!(
        found,
        [
            "google-gemma-3n-e2b-it-tools-multi-prefill",
            "google-gemma-4-multi-prefill",
            "litert-generic-model-multi-prefill"
        ]
    );
}

#[test]
fn reasoning_parts_of_a_model_role() {
    let source = "{% for m in messages %}[{{ m.role }}|{{ m.reasoning_content }}|{{ m.content if m.content is string else m.content[0].text }}]{% endfor %}";
    let parts = json!([{"type": "thinking", "thinking": "H"}, {"type": "text", "text": "A"}]);
    let messages = json!([{"role": "model", "content": parts}]);
    check(source, &messages, &Value::Null, Polyfill::ReasoningMoved, "[model|H|A]");
}
