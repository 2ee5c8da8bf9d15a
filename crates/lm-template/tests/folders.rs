//! Chat templates of Hugging Face folders: their files, precedence, and invalid files.

use std::fs;
use std::path::Path;

use lm_template::{ChatTemplates, Error, PromptTemplate, TemplateChoice};
use serde_json::json;
use tempfile::TempDir;

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("can be made");
        fs::write(path, bytes).expect("can be written");
    }
    folder
}

/// Names and sources of a folder's templates.
fn templates(files: &[(&str, &[u8])]) -> Vec<(String, String)> {
    let folder = folder(files);
    let templates = ChatTemplates::from_folder(folder.path()).expect("the folder is right");
    let source = |name| templates.get(TemplateChoice::Named(name)).expect("it compiles").source().to_owned();
    templates.names().map(|name| (name.to_owned(), source(name))).collect()
}

const ONE: (&str, &[u8]) = ("tokenizer_config.json", br#"{"chat_template": "C", "chat_template_extra": 1}"#);
const SEVERAL: (&str, &[u8]) = (
    "tokenizer_config.json",
    br#"{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}"#,
);
const LEGACY: (&str, &[u8]) = ("chat_template.json", br#"{"chat_template": "P"}"#);
const FILE: (&str, &[u8]) = ("chat_template.jinja", b"F");
const MORE: (&str, &[u8]) = ("additional_chat_templates/rag.jinja", b"R");
const OTHER: (&str, &[u8]) = ("additional_chat_templates/notes.txt", b"\xFF");

#[test]
fn template_files_precede_config_templates() {
    let named = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect()
    };
    assert_eq!(templates(&[]), []);
    assert_eq!(templates(&[("tokenizer_config.json", b"{}")]), []);
    assert_eq!(templates(&[("tokenizer_config.json", br#"{"chat_template": null}"#)]), []);
    assert_eq!(templates(&[ONE]), named(&[("default", "C")]));
    assert_eq!(templates(&[SEVERAL]), named(&[("tool_use", "T"), ("default", "D")]));
    assert_eq!(templates(&[SEVERAL, LEGACY]), named(&[("default", "P")]));
    assert_eq!(templates(&[SEVERAL, LEGACY, FILE]), named(&[("default", "F")]));
    assert_eq!(templates(&[ONE, FILE, MORE, OTHER]), named(&[("default", "F"), ("rag", "R")]));
}

#[test]
fn default_template_is_used_for_tools_without_another() {
    let source = |files: &[(&str, &[u8])], choice| {
        let folder = folder(files);
        ChatTemplates::from_folder(folder.path())
            .and_then(|all| all.get(choice))
            .map(|t| t.source().to_owned())
    };
    assert_eq!(source(&[SEVERAL], TemplateChoice::Tools).as_deref(), Ok("T"));
    assert_eq!(source(&[SEVERAL], TemplateChoice::Default).as_deref(), Ok("D"));
    assert_eq!(source(&[FILE, MORE], TemplateChoice::Tools).as_deref(), Ok("F"));
    let unknown = |name: &str, known: &[&str]| Error::UnknownTemplate {
        name: name.to_owned(),
        known: known.iter().map(|known| (*known).to_owned()).collect(),
    };
    assert_eq!(source(&[MORE], TemplateChoice::Default), Err(unknown("default", &["rag"])));
    assert_eq!(
        source(&[SEVERAL], TemplateChoice::Named("rag")),
        Err(unknown("rag", &["tool_use", "default"]))
    );
    assert_eq!(source(&[], TemplateChoice::Tools), Err(unknown("tool_use", &[])));
}

#[test]
fn special_tokens_are_variables_of_the_template() {
    let config = json!({
        "bos_token": "<s>", "eos_token": {"content": "</s>", "special": true}, "pad_token": null,
        "add_bos_token": true, "model_max_length": 5, "additional_special_tokens": ["<x>"], "chat_template": "x",
    });
    let map = json!({"bos_token": "<old>", "unk_token": {"content": "<unk>"}});
    let folder = folder(&[
        ("tokenizer_config.json", config.to_string().as_bytes()),
        ("special_tokens_map.json", map.to_string().as_bytes()),
    ]);
    let templates = ChatTemplates::from_folder(folder.path()).expect("the folder is right");
    let expected = json!({"bos_token": "<s>", "unk_token": "<unk>", "eos_token": "</s>"});
    assert_eq!(Some(templates.special_tokens()), expected.as_object());
}

#[test]
fn unreadable_template_is_named() {
    let check = |files: &[(&str, &[u8])], expected: &[&str]| {
        let folder = folder(files);
        let error = ChatTemplates::from_folder(folder.path()).expect_err("is refused").to_string();
        for expected in expected {
            assert!(error.contains(expected), "no {expected} in {error}");
        }
    };
    check(&[("chat_template.jinja", b"\xFF")], &["chat_template.jinja", "UTF-8"]);
    check(&[("additional_chat_templates/x.jinja", b"\xFF")], &["x.jinja", "UTF-8"]);
    check(&[("chat_template.jinja/x", b"")], &["chat_template.jinja", "not a regular file"]);
    check(&[("tokenizer_config.json", b"[]")], &["tokenizer_config.json", "expected a map"]);
    check(&[("tokenizer_config.json", br#"{"chat_template": 1}"#)], &["tokenizer_config.json", "neither"]);
    check(
        &[("chat_template.json", br#"{"chat_template": [{"name": "x"}]}"#)],
        &["chat_template.json", "neither"],
    );
    check(
        &[("special_tokens_map.json", &[b"{\"a\":".as_slice(), &b"[".repeat(1000)].concat())],
        &["special_tokens_map.json", "recursion"],
    );
    let many: Vec<String> = (0..65).map(|n| format!("additional_chat_templates/{n}.jinja")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    check(&many, &["additional_chat_templates", "65 templates"]);
    let error = PromptTemplate::from_folder(Path::new("/nowhere")).expect_err("is not there");
    assert!(matches!(error, Error::FileUnreadable { .. }), "{error}");

    let large = folder(&[]);
    let file = fs::File::create(large.path().join("chat_template.jinja")).expect("can be made");
    file.set_len((64 << 20) + 1).expect("a sparse file takes no room");
    let error = ChatTemplates::from_folder(large.path()).expect_err("is refused");
    assert!(matches!(error, Error::FileTooLarge { limit: 67_108_864, .. }), "{error}");
}
