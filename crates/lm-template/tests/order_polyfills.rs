//! Polyfills for orders and gaps of messages, one by one.

use lm_template::{
    GenerationPrompt, Map, Polyfill, PolyfilledTemplate, Polyfills, PromptTemplate, RenderInput, Value,
};
use serde_json::json;

use crate::polyfills::{calls, check, render};

/// A template that refuses what `condition` says of a message (`m`) or its place (`loop`).
fn refusing(condition: &str) -> String {
    let refusal = format!("{{% if {condition} %}}{{{{ raise_exception('refused') }}}}{{% endif %}}");
    format!(
        "{{% for m in messages %}}{refusal}[{{{{ m.role }}}}|{{{{ m.content }}}}{{% for c in m.tool_calls or [] %}}{{{{ c.function.name }}}}{{% endfor %}}]{{% endfor %}}"
    )
}

const NEIGHBOURS: &str = "not loop.first and loop.previtem.role == m.role";

#[test]
fn roles_without_a_place_become_the_nearest() {
    let roles = json!([
        {"role": "developer", "content": "D"}, {"role": "user", "content": "U"}, {"role": "model", "content": "A"},
        {"role": "function", "name": "f", "content": "R"}, {"role": "narrator", "content": "N"},
    ]);
    let expected = "[system|D][user|U][assistant|A][tool|R][user|N]";
    let four = "m.role not in ['system', 'user', 'assistant', 'tool']";
    check(&refusing(four), &roles, &Value::Null, Polyfill::RolesRenamed, expected);
    let dropping = "{% for m in messages if m.role in ['system', 'user', 'assistant', 'tool'] %}[{{ m.role }}|{{ m.content }}]{% endfor %}";
    check(dropping, &roles, &Value::Null, Polyfill::RolesRenamed, expected);
    let one = json!([{"role": "developer", "content": "D"}, {"role": "user", "content": "U"}]);
    let all = render(&calls(""), Polyfills::default(), one.as_array().expect("a list"), &Value::Null);
    assert_eq!((all.prompt.text().as_str(), &all.polyfills[..]), ("[developer|D][user|U]", &[][..]));
}

#[test]
fn instructions_are_merged_or_moved_to_the_user() {
    let first_only = "m.role == 'system' and not loop.first";
    let two = json!([{"role": "system", "content": "S"}, {"role": "system", "content": [{"type": "text", "text": "T"}]}, {"role": "user", "content": "U"}]);
    let texts = json!([{"role": "system", "content": "S"}, {"role": "system", "content": "T"}, {"role": "user", "content": "U"}]);
    check(
        &refusing(first_only),
        &texts,
        &Value::Null,
        Polyfill::InstructionsMerged,
        "[system|S\n\nT][user|U]",
    );
    let rendered =
        render(&refusing(first_only), Polyfills::default(), two.as_array().expect("a list"), &Value::Null);
    assert_eq!(rendered.prompt.text(), "[system|S\n\nT][user|U]");
    let late = json!([
        {"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"},
        {"role": "system", "content": "T"}, {"role": "user", "content": "V"},
    ]);
    let expected = "[system|S][user|U][assistant|A][user|T\n\nV]";
    check(&refusing(first_only), &late, &Value::Null, Polyfill::SystemInUserText, expected);
    let last_only = "{% for m in messages %}[{{ m.role }}|{% if loop.last and m.role == 'user' and messages[0].role == 'system' %}{{ messages[0].content }} {% endif %}\
                     {% if m.role != 'system' %}{{ m.content }}{% endif %}]{% endfor %}";
    let ends_with_reply = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]);
    check(
        last_only,
        &ends_with_reply,
        &Value::Null,
        Polyfill::SystemInLastUserText,
        "[user|S\n\nU][assistant|A]",
    );
}

#[test]
fn turns_alternate_where_the_template_needs_it() {
    let twice = json!([{"role": "user", "content": "U"}, {"role": "user", "content": "V"}, {"role": "assistant", "content": "A"}]);
    check(&refusing(NEIGHBOURS), &twice, &Value::Null, Polyfill::UsersMerged, "[user|U\n\nV][assistant|A]");
    let answers = json!([
        {"role": "user", "content": "U"}, {"role": "assistant", "content": "A", "reasoning_content": "R"},
        {"role": "assistant", "content": "B", "reasoning_content": "Q"},
    ]);
    let reasoning =
        refusing(NEIGHBOURS).replace("{{ m.content }}", "{{ m.reasoning_content or '' }}{{ m.content }}");
    check(&reasoning, &answers, &Value::Null, Polyfill::AnswersMerged, "[user|U][assistant|R\n\nQA\n\nB]");
    let greeting = json!([{"role": "assistant", "content": "A"}, {"role": "user", "content": "U"}]);
    let user_first = refusing("loop.first and m.role == 'assistant'");
    check(&user_first, &greeting, &Value::Null, Polyfill::UserAdded, "[user|][assistant|A][user|U]");
    let image = json!([{"role": "user", "content": [{"type": "image", "blob": "AA=="}]}, {"role": "user", "content": "V"}]);
    let kinds = refusing(NEIGHBOURS).replace("{{ m.content }}", "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}({{ p.text or p.type }}){% endfor %}{% endif %}");
    check(&kinds, &image, &Value::Null, Polyfill::UsersMerged, "[user|(image)(\n\n)(V)]");
}

#[test]
fn calls_and_results_are_brought_together() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": id, "arguments": {}}});
    let called = |ids: &[&str]| json!({"role": "assistant", "content": "", "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>()});
    let result =
        |id: &str| json!({"role": "tool", "name": id, "tool_call_id": id, "content": id.to_uppercase()});
    let user = |text: &str| json!({"role": "user", "content": text});
    let orphan = refusing(
        "m.role == 'tool' and (loop.first or not (loop.previtem.tool_calls or loop.previtem.role == 'tool'))",
    );
    let interrupted = json!([user("U"), called(&["x", "y"]), user("V"), result("y"), result("x")]);
    let expected = "[user|U][assistant|xy][tool|X][tool|Y][user|V]";
    check(&orphan, &interrupted, &Value::Null, Polyfill::ResultsMoved, expected);
    let without_call = json!([user("U"), result("x"), {"role": "assistant", "content": "A"}]);
    let expected = "[user|U][user|<tool_response>\n{\"name\": \"x\", \"content\": \"X\"}\n</tool_response>][assistant|A]";
    check(&orphan, &without_call, &Value::Null, Polyfill::ResultsAsUserText, expected);
    let answered = refusing("m.tool_calls and not loop.last and loop.nextitem.role != 'tool'");
    let open = json!([user("U"), called(&["x"]), user("V")]);
    check(&answered, &open, &Value::Null, Polyfill::ResultsAdded, "[user|U][assistant|x][tool|][user|V]");
    let one_of_two =
        json!([called(&["x", "y"]), user("V"), result("y"), {"role": "assistant", "content": "A"}]);
    let all = render(&answered, Polyfills::default(), one_of_two.as_array().expect("a list"), &Value::Null);
    assert_eq!(all.prompt.text(), "[assistant|xy][tool|Y][tool|][user|V][assistant|A]");
    let ids = calls("{% if not c.id %}{{ raise_exception('no id') }}{% endif %}");
    let bare = json!([{"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}]);
    check(&ids, &bare, &Value::Null, Polyfill::CallIdsShortened, "[assistant|f]");
}

#[test]
fn empty_and_missing_content_renders() {
    let needs_key = "{% for m in messages %}{{ '[' + m.role + '|' + m['content'] + ']' }}{% endfor %}";
    for silent in [
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant"}),
        json!({"role": "assistant", "reasoning_content": "R"}),
    ] {
        let messages = json!([{"role": "user", "content": "U"}, silent, {"role": "user", "content": "V"}]);
        check(needs_key, &messages, &Value::Null, Polyfill::ContentAdded, "[user|U][assistant|][user|V]");
    }
    let needs_text = refusing("m.role == 'assistant' and not m.content and not m.tool_calls");
    let empty = json!([{"role": "user", "content": "U"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "V"}]);
    check(&needs_text, &empty, &Value::Null, Polyfill::EmptyFilled, "[user|U][assistant| ][user|V]");
    let either = refusing("m.tool_calls and m.content and m.thinking")
        .replace("{{ m.content }}", "{{ m.thinking }}{{ m.content }}");
    let call = json!({"type": "function", "function": {"name": "f", "arguments": {}}});
    let both = json!([{"role": "assistant", "content": "A", "thinking": "R", "tool_calls": [call]}]);
    check(&either, &both, &Value::Null, Polyfill::TextAsReasoning, "[assistant|R\n\nAf]");
}

/// A template that refuses an order which no probe has tried.
#[test]
fn refused_conversation_is_put_into_the_strictest_order() {
    let source = refusing("m.content == 'V' and loop.previtem.content == 'U'");
    let messages = [json!({"role": "user", "content": "U"}), json!({"role": "user", "content": "V"})];
    let rendered = render(&source, Polyfills::default(), &messages, &Value::Null);
    assert_eq!(rendered.prompt.text(), "[user|U\n\nV]");
    let template = PolyfilledTemplate::new(
        PromptTemplate::new("{{ raise_exception('no') }}").expect("it compiles"),
        Polyfills::default(),
    );
    let (generation_prompt, extra_context) = (GenerationPrompt::Omit, &Map::new());
    let refused = template.render(&RenderInput {
        messages: &messages,
        tools: &Value::Null,
        generation_prompt,
        extra_context,
    });
    assert!(matches!(refused, Err(lm_template::Error::TemplateRaised { message }) if message == "no"));
}

#[test]
fn results_come_in_the_order_of_their_calls() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": id, "arguments": {}}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("of {id}")});
    let assistant =
        json!({"role": "assistant", "content": "", "tool_calls": [call("a"), call("b"), call("c")]});
    let template = "{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}";
    let tools = "{% for t in tools or [] %}{% endfor %}";
    let template = format!(
        "{tools}{template}{{% for m in messages %}}{{% for c in m.tool_calls or [] %}}{{{{ c.function.name }}}}{{% endfor %}}{{% endfor %}}"
    );
    let messages =
        [json!({"role": "user", "content": "U"}), assistant.clone(), result("c"), result("a"), result("b")];
    let rendered = render(&template, Polyfills::default(), &messages, &Value::Null);
    let text = rendered.prompt.text();
    let places = ["of a", "of b", "of c"].map(|text_of| text.find(text_of));
    assert!(places.is_sorted() && places[0].is_some(), "{text}");
    assert!(rendered.polyfills.contains(&Polyfill::ResultsMoved), "{:?}", rendered.polyfills);
    // Without all ids nothing is known.
    let unknown = json!({"role": "tool", "content": "of b"});
    let messages = [json!({"role": "user", "content": "U"}), assistant, result("c"), unknown, result("a")];
    let text = render(&template, Polyfills::default(), &messages, &Value::Null).prompt.text();
    assert!(text.find("of c") < text.find("of a"), "{text}");
}

#[test]
fn result_after_another_turn_follows_no_call() {
    let orphan = refusing(
        "m.role == 'tool' and (loop.first or not (loop.previtem.tool_calls or loop.previtem.role == 'tool'))",
    );
    let call = json!({"id": "x", "type": "function", "function": {"name": "x", "arguments": {}}});
    let result =
        |id: &str| json!({"role": "tool", "name": id, "tool_call_id": id, "content": id.to_uppercase()});
    let messages = json!([
        {"role": "user", "content": "U"}, {"role": "assistant", "content": "", "tool_calls": [call]}, result("x"),
        {"role": "assistant", "content": "A"}, result("z"),
    ]);
    let expected = "[user|U][assistant|x][tool|X][assistant|A][user|<tool_response>\n{\"name\": \"z\", \"content\": \"Z\"}\n</tool_response>]";
    check(&orphan, &messages, &Value::Null, Polyfill::ResultsAsUserText, expected);
}
