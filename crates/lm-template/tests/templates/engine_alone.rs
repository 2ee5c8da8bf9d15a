//! The template alone, on unchanged messages: the reference data states where the result differs from
//! `apply_chat_template`, which drops null keys, sets reasoning under every name and refuses an empty
//! conversation.

use std::collections::HashMap;

use lm_template::{GenerationPrompt, PromptTemplate, RenderInput};
use serde_json::{Map, Value};

use crate::shared;
use crate::templates::goldens::{Outcome, compare};

/// The expected result of the template alone; `None` for cases that the data does not cover.
fn expected<'a>(case: &'a Value, variant: &Value) -> Option<&'a Value> {
    let continues = variant["continue_final_message"] != false;
    if continues || case.get("assistant_spans").is_some() {
        None
    } else {
        Some(case.get("engine").unwrap_or(case))
    }
}

fn check(template: &PromptTemplate, conversation: &Value, variant: &Value, expected: &Value) -> Outcome {
    let mut extra_context = Map::from_iter([("documents".to_owned(), conversation["documents"].clone())]);
    extra_context.extend(variant["kwargs"].as_object().cloned().unwrap_or_default());
    let add = variant["add_generation_prompt"] == true;
    let input = RenderInput {
        messages: conversation["messages"].as_array().expect("a list of messages"),
        tools: &conversation["tools"],
        generation_prompt: if add { GenerationPrompt::Add } else { GenerationPrompt::Omit },
        extra_context: &extra_context,
    };
    compare(template.render_as_is(&input), expected)
}

#[test]
fn engine_alone_equals_the_reference() {
    let Some(folder) = shared::path("goldens") else { return };
    let index = shared::json(folder.join("templates/index.json"));
    let conversations: HashMap<String, Value> = std::fs::read_dir(folder.join("conversations"))
        .expect("a folder")
        .map(|entry| shared::json(entry.expect("can be listed").path()))
        .map(|conversation| (conversation["name"].as_str().expect("a name").to_owned(), conversation))
        .collect();
    let (mut cases, mut other, mut wrong) = (0, 0, Vec::new());
    for row in index["templates"].as_array().expect("a list of templates") {
        let id = row["id"].as_str().expect("an id");
        let source =
            std::fs::read_to_string(folder.join(format!("templates/{id}.jinja"))).expect("a template");
        let template = PromptTemplate::new(&source).expect("it compiles");
        let template = template.with_context(row["context"].as_object().cloned().unwrap_or_default());
        let template = template.with_time("2025-03-14T15:09:26".parse().expect("a time"));
        let golden = shared::json(folder.join(format!("expected/{id}.json")));
        for case in golden["cases"].as_array().expect("a list of cases") {
            let conversation = &conversations[case["scenario"].as_str().expect("a name")];
            let variants = conversation["variants"].as_array().expect("a list of variants");
            let variant =
                variants.iter().find(|variant| variant["name"] == case["variant"]).expect("is known");
            let Some(expected) = expected(case, variant) else { continue };
            (cases, other) = (cases + 1, other + usize::from(case.get("engine").is_some()));
            let outcome = check(&template, conversation, variant, expected);
            if !matches!(outcome, Outcome::Text | Outcome::Raised | Outcome::Failed) {
                wrong.push(format!("{id} {}/{}: {outcome:?}", case["scenario"], case["variant"]));
            }
        }
    }
    println!("{cases} renderings of the template alone, {other} of them other than with the steps around it");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
