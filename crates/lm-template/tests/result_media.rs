//! Images and audio of tool results: shown in their place, or in a user message after the results.

use crate::polyfills::{calls, check, render};
use crate::shared;
use lm_template::{Polyfill, PolyfilledPrompt, Polyfills, PromptTemplate, Value};
use serde_json::json;

/// Parts of the user alone; a result is its text.
const USER_PARTS: &str = "{% for m in messages %}[{{ m.role }}|{% if m.content is string %}{{ m.content }}{% elif m.role == 'user' %}\
    {% for p in m.content %}{{ p.text if p.type == 'text' else '<' ~ p.type ~ '>' }}{% endfor %}{% endif %}\
    {% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}]{% endfor %}";

/// Templates of model families that read images, and the mark of one in the text of theirs.
const FAMILIES: &[(&str, &str)] = &[
    ("google-gemma-4-31B-it", "<|image|>"),
    ("Mistral-Small-3.2-24B-Instruct-2506", "[IMG]"),
    ("Qwen3.5-4B", "<|image_pad|>"),
    ("axolotl-llama4", "<|image|>"),
    ("mistralrs-idefics3", "<image>"),
    ("trl-gemma3_training", "<start_of_image>"),
    ("trl-llava_next", "<image>"),
    ("trl-qwen2_5_vl", "<|image_pad|>"),
    ("trl-qwen3_vl", "<|image_pad|>"),
    ("trl-smolvlm", "<image>"),
];

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn called(names: &[&str]) -> Value {
    let call = |name: &&str| json!({"id": format!("call_of_{name}"), "type": "function", "function": {"name": name, "arguments": {}}});
    json!({"role": "assistant", "content": "", "tool_calls": names.iter().map(call).collect::<Vec<_>>()})
}

fn result(name: &str, content: &Value) -> Value {
    json!({"role": "tool", "name": name, "tool_call_id": format!("call_of_{name}"), "content": content})
}

fn turn(messages: &[Value]) -> Value {
    [&[json!({"role": "user", "content": "U"})], messages].concat().into()
}

fn rendered(source: &str, messages: &Value) -> PolyfilledPrompt {
    render(source, Polyfills::default(), messages.as_array().expect("a list"), &Value::Null)
}

#[test]
fn unshown_media_move_to_the_user_message_after_the_results() {
    let parts = json!([text("a\n"), {"type": "image"}, text("\nb"), {"type": "audio"}]);
    let moved = "[tool|a\n[image 1, shown below]\nb[audio 2, shown below]]";
    let shown = "[image 1]\n<image>\n[audio 2]\n<audio>";
    let messages = turn(&[called(&["f"]), result("f", &parts)]);
    let last = format!("[user|U][assistant|f]{moved}[user|{shown}]");
    check(USER_PARTS, &messages, &Value::Null, Polyfill::ResultMediaInUserMessage, &last);
    let question = json!({"role": "user", "content": "V"});
    let messages = turn(&[called(&["f"]), result("f", &parts), question]);
    let before = format!("[user|U][assistant|f]{moved}[user|{shown}\n\nV]");
    check(USER_PARTS, &messages, &Value::Null, Polyfill::ResultMediaInUserMessage, &before);
    let two = [called(&["f", "g"]), result("f", &json!([{"type": "image"}])), result("g", &json!("1"))];
    let between = "[user|U][assistant|fg][tool|[image 1, shown below]][tool|1][user|[image 1]\n<image>]";
    check(USER_PARTS, &turn(&two), &Value::Null, Polyfill::ResultMediaInUserMessage, between);
}

#[test]
fn shown_media_and_data_of_results_keep_their_place() {
    let all = USER_PARTS.replace("elif m.role == 'user'", "else");
    let image = [called(&["f"]), result("f", &json!([text("a"), {"type": "image"}]))];
    let kept = rendered(&all, &turn(&image));
    assert_eq!(
        (kept.prompt.text().as_str(), kept.polyfills),
        ("[user|U][assistant|f][tool|a<image>]", vec![])
    );
    for data in [json!("[image]"), json!({"type": "image"}), json!([{"kind": "image"}])] {
        let kept = rendered(&calls(""), &turn(&[called(&["f"]), result("f", &data)]));
        assert!(!kept.polyfills.contains(&Polyfill::ResultMediaInUserMessage), "{data}");
    }
}

#[test]
fn media_order_follows_moved_results() {
    let in_place = USER_PARTS.replace("elif m.role == 'user'", "else");
    let (image, audio) = (json!([{"type": "image"}]), json!([{"type": "audio"}, {"type": "image"}]));
    let order = |first: &Value, second: &Value| turn(&[called(&["f", "g"]), first.clone(), second.clone()]);
    let (f, g) = (result("f", &image), result("g", &audio));
    for source in [&in_place, USER_PARTS] {
        assert_eq!(rendered(source, &order(&f, &g)).media_order, None);
        let swapped = rendered(source, &order(&g, &f));
        assert_eq!(swapped.media_order, Some(vec![2, 0, 1]), "{:?}", swapped.polyfills);
        assert!(!swapped.prompt.text().contains("number"), "{}", swapped.prompt.text());
    }
    let calls = json!({"role": "user", "content": [{"type": "image"}]});
    let first = turn(&[calls, called(&["f", "g"]), g, f]);
    assert_eq!(rendered(USER_PARTS, &first).media_order, Some(vec![0, 3, 1, 2]));
}

#[test]
fn templates_of_vision_families_show_each_image_of_a_result_once() {
    let Some(folder) = shared::path("goldens/templates") else { return };
    let index = shared::json(folder.join("index.json"));
    let rows = index["templates"].as_array().expect("a list of templates");
    let image = json!([text("WORDS\n"), {"type": "image"}]);
    let question = json!({"role": "user", "content": [text("QUESTION"), {"type": "image"}]});
    let answered = turn(&[called(&["f"]), result("f", &image), question]);
    let conversations = [
        (turn(&[called(&["f"]), result("f", &image)]), 1),
        (answered, 2),
        (turn(&[called(&["f", "g"]), result("f", &image), result("g", &image)]), 2),
    ];
    for (id, mark) in FAMILIES {
        let row = rows.iter().find(|row| row["id"] == *id);
        let source = std::fs::read_to_string(folder.join(format!("{id}.jinja"))).expect("a template");
        let template = PromptTemplate::new(&source).expect("it compiles");
        let context = row.and_then(|row| row["context"].as_object().cloned()).unwrap_or_default();
        let template = template.with_context(context);
        let template = lm_template::PolyfilledTemplate::new(template, Polyfills::default());
        for (messages, expected) in &conversations {
            let rendered = template.render(&lm_template::RenderInput {
                messages: messages.as_array().expect("a list"),
                tools: &Value::Null,
                generation_prompt: lm_template::GenerationPrompt::Add,
                extra_context: &Default::default(),
            });
            let text = rendered.unwrap_or_else(|error| panic!("{id}: {error}")).prompt.text();
            assert_eq!(
                (text.matches(mark).count(), text.contains("WORDS")),
                (*expected, true),
                "{id}: {text}"
            );
        }
    }
}

#[test]
fn each_kind_of_media_moves_alone() {
    let images_alone = USER_PARTS.replace("elif m.role == 'user'", "else").replace(
        "'<' ~ p.type ~ '>'",
        "('<' ~ p.type ~ '>' if p.type == 'image' or m.role == 'user' else '')",
    );
    let parts = json!([{"type": "image"}, text("a"), {"type": "audio"}]);
    let messages = turn(&[called(&["f"]), result("f", &parts)]);
    let expected = "[user|U][assistant|f][tool|<image>a[audio 1, shown below]][user|[audio 1]\n<audio>]";
    check(&images_alone, &messages, &Value::Null, Polyfill::ResultMediaInUserMessage, expected);
}
