//! `lm template` with the reference cases, and with invalid lines.

use crate::shared;
use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::json_lines::{answers, failing, output, parsed};

/// Answers to these lines, in order.
fn template(args: &[&str], lines: &str) -> Vec<Value> {
    answers("template", args, lines)
}

/// Input line of a case: the fields of conversation and variant as in the files, the template, its context
/// and the time.
fn line(template: &str, golden: &Value, case: &Value, conversation: &Value) -> Value {
    let name = &case["variant"];
    let variants = conversation["variants"].as_array().expect("a list of variants");
    let variant = variants.iter().find(|variant| variant["name"] == *name).expect("a known variant");
    let mut line: Map<String, Value> = Map::new();
    for part in [conversation, variant] {
        line.extend(part.as_object().expect("an object").clone());
    }
    line.insert("template".to_owned(), template.into());
    line.insert("context".to_owned(), golden["context"].clone());
    line.insert("now".to_owned(), golden["generator"]["now"].clone());
    line.into()
}

/// Returns the difference between an answer and the case's expected one.
fn fault(case: &Value, answer: &Value) -> Option<String> {
    let error = &case["error"];
    let fits = match error["kind"].as_str() {
        None => {
            answer["text"] == case["expected"]
                && case.get("assistant_spans").is_none_or(|spans| answer["spans"] == *spans)
        }
        Some("raised") => answer["error"] == *error,
        Some("runtime") => !answer["error"].is_null(),
        Some(_) => answer["error"]["kind"] == error["kind"],
    };
    (!fits).then(|| format!("{}/{}: {answer}", case["scenario"], case["variant"]))
}

#[test]
fn reference_cases_are_accepted_as_input() {
    let Some(folder) = shared::path("goldens") else { return };
    let conversations: HashMap<String, Value> = std::fs::read_dir(folder.join("conversations"))
        .expect("a folder")
        .map(|entry| shared::json(entry.expect("can be listed").path()))
        .map(|conversation| (conversation["name"].as_str().expect("a name").to_owned(), conversation))
        .collect();
    let (mut whole, mut alone) = (0, 0);
    for id in ["LFM2.5-8B-A1B", "openai-gpt-oss-120b"] {
        let source = folder.join(format!("templates/{id}.jinja"));
        let source = std::fs::read_to_string(&source).unwrap_or_else(|error| panic!("{source:?}: {error}"));
        let golden = shared::json(folder.join(format!("expected/{id}.json")));
        let cases = golden["cases"].as_array().expect("a list of cases");
        let conversation = |case: &Value| &conversations[case["scenario"].as_str().expect("a name")];
        let lines: String = cases
            .iter()
            .map(|case| format!("{}\n", line(&source, &golden, case, conversation(case))))
            .collect();
        // The templates refuse some of them.
        let answers = parsed(&output("template", &[], lines.as_bytes()));
        assert_eq!(answers.len(), cases.len());
        let faults: Vec<String> =
            cases.iter().zip(&answers).filter_map(|(case, answer)| fault(case, answer)).collect();
        assert!(faults.is_empty(), "{id}: {faults:#?}");

        let bare: Vec<&Value> = cases.iter().filter(|case| case.get("engine").is_some()).collect();
        let lines: String = bare
            .iter()
            .map(|case| format!("{}\n", line(&source, &golden, case, conversation(case))))
            .collect();
        let answers = parsed(&output("template", &["--engine-only"], lines.as_bytes()));
        assert_eq!(answers.len(), bare.len());
        for (case, answer) in bare.iter().zip(&answers) {
            let mut expected = case["engine"].clone();
            expected["scenario"] = case["scenario"].clone();
            assert_eq!(fault(&expected, answer), None, "{id}");
        }
        (whole, alone) = (whole + cases.len(), alone + bare.len());
    }
    println!(
        "{whole} reference cases through the command, {alone} of them through the bare template as well"
    );
    assert!(whole > 150 && alone > 10);
}

#[test]
fn invalid_lines_have_a_kind_and_do_not_stop() {
    let user = json!([{"role": "user", "content": "Hi"}]);
    let cases = [
        (json!({"template": "{{ messages[0].content }}", "messages": user}), None),
        (json!({"template": "{% if %}", "messages": user}), Some("syntax")),
        (json!({"template": "{{ raise_exception('no') }}", "messages": user}), Some("raised")),
        (json!({"template": "{{ messages.a.b }}", "messages": user}), Some("runtime")),
        (
            json!({"template": "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "messages": user}),
            Some("limit"),
        ),
        (json!({"template": "x", "messages": []}), Some("empty_conversation")),
        (
            json!({"template": "x", "messages": user, "continue_final_message": true}),
            Some("continue_final_message"),
        ),
        (json!({"template": "x"}), Some("bad_line")),
        (json!({"messages": user}), Some("bad_line")),
        (json!({"template": "x", "messages": user, "now": "noon"}), Some("bad_line")),
        (json!({"model": "/nowhere", "messages": user}), Some("model")),
        (
            json!({"template": "{{ strftime_now('%Y') }}", "messages": user, "now": "2025-03-14T15:09:26"}),
            None,
        ),
    ];
    let lines: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    let answers = failing("template", &["--segments"], lines.as_bytes(), "10 of 12 lines failed");
    let kinds: Vec<_> = answers.iter().map(|answer| answer["error"]["kind"].as_str()).collect();
    assert_eq!(kinds, cases.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(), "{answers:#?}");
    assert_eq!(answers[0], json!({"text": "Hi", "segments": [{"kind": "content", "text": "Hi"}]}));
    assert_eq!(answers[2]["error"]["message"], "no");
    assert_eq!(answers[11]["text"], "2025");
}

#[test]
fn unknown_key_error_suggests_a_similar_one() {
    let user = json!([{"role": "user", "content": "Hi"}]);
    let lines = [
        json!({"template": "x", "mesages": user}),
        json!({"template": "x", "messages": user, "add_generation_promt": true}),
        json!({"template": "x", "messages": user, "colour": 1}),
        json!({"template": "x", "messages": user, "name": "n", "id": 1, "expected": "x", "source": "here"}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers = failing("template", &[], lines.as_bytes(), "3 of 4 lines failed");
    let message = |index: usize| answers[index]["error"]["message"].as_str().expect("an error");
    assert!(answers[..3].iter().all(|answer| answer["error"]["kind"] == "bad_line"), "{answers:?}");
    for (index, (key, near)) in
        [("mesages", "messages"), ("add_generation_promt", "add_generation_prompt")].into_iter().enumerate()
    {
        let expected = (format!("`{key}`"), format!("(did you mean `{near}`?)"));
        assert!(message(index).contains(&expected.0) && message(index).ends_with(&expected.1), "{answers:?}");
    }
    assert!(
        message(2).contains("unknown field `colour`") && !message(2).contains("did you mean"),
        "{answers:?}"
    );
    assert_eq!(answers[3], json!({"text": "x"}), "notes of test vectors");
}

#[test]
fn polyfills_apply_on_request() {
    let messages = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]);
    let source = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}";
    let line = json!({"template": source, "messages": messages}).to_string();
    assert_eq!(template(&[], &line), [json!({"text": "U"})]);
    let helped = json!({"text": "S\n\nU", "polyfills": ["SystemInUserText"]});
    assert_eq!(template(&["--polyfill"], &line), [helped]);
}

#[test]
fn a_folder_without_a_model_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let line =
        |folder: &Path| json!({"model": folder, "messages": [{"role": "user", "content": "Hi"}]}).to_string();
    let answer = failing("template", &[], line(folder.path()).as_bytes(), "1 of 1 lines failed").remove(0);
    let message = answer["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.ends_with("has no config.json"), "{message}");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/llama-tiny");
    let answer = failing("template", &[], line(&model).as_bytes(), "1 of 1 lines failed").remove(0);
    assert_eq!(answer["error"]["message"], "the model has no chat template");
}
