//! The reference renderings: 109 published templates, 91 conversations each.

use std::collections::HashMap;

use lm_jinja::{Map, Value};

use crate::second_opinion::classes::Tally;
use crate::second_opinion::engines::{Minijinja, ours};
use crate::shared;

/// Variables that the template sees, as `apply_chat_template` passes them.
fn variables(context: &Value, conversation: &Value, variant: &Value) -> Map<String, Value> {
    let mut variables = Map::new();
    let mut add = |object: &Value| variables.extend(object.as_object().cloned().unwrap_or_default());
    add(context);
    add(&serde_json::json!({
        "messages": conversation["messages"], "tools": conversation["tools"],
        "documents": conversation["documents"], "add_generation_prompt": variant["add_generation_prompt"],
    }));
    add(&variant["kwargs"]);
    variables
}

#[test]
fn every_difference_on_reference_templates_has_a_class() {
    let Some(folder) = shared::path("goldens") else { return };
    let index = shared::json(folder.join("templates/index.json"));
    let conversations: HashMap<String, Value> = std::fs::read_dir(folder.join("conversations"))
        .expect("a folder")
        .map(|entry| shared::json(entry.expect("can be listed").path()))
        .map(|conversation| (conversation["name"].as_str().expect("a name").to_owned(), conversation))
        .collect();
    let minijinja = Minijinja::new();
    let mut tally = Tally::default();
    for row in index["templates"].as_array().expect("a list of templates") {
        let id = row["id"].as_str().expect("an id");
        let source =
            std::fs::read_to_string(folder.join(format!("templates/{id}.jinja"))).expect("a template");
        let (ours, theirs) = (ours(&source), minijinja.compile(&source));
        for conversation in conversations.values() {
            for variant in conversation["variants"].as_array().expect("a list of variants") {
                if variant["continue_final_message"] != false {
                    continue;
                }
                let variables = variables(&row["context"], conversation, variant);
                let (ours, theirs) = (ours(&variables), theirs(&variables));
                tally.add(
                    &format!("{id} {} {}", conversation["name"], variant["name"]),
                    &source,
                    &ours,
                    &theirs,
                );
            }
        }
    }
    tally.finish("reference renderings");
}
