//! Every fuzz target on its seeds and on mutations of them.
#![allow(unused_attributes, reason = "the targets are crate roots, too: `#![no_main]`")]
#![allow(dead_code, reason = "a target uses only some of its modules")]
#![allow(clippy::duplicate_mod, reason = "several targets bring the same module")]

/// Includes the targets and defines a test for each.
macro_rules! targets {
    ($($name:ident at $path:literal,)*) => {
        $(#[path = $path] mod $name;)*

        $(
            #[test]
            fn $name() {
                libfuzzer_sys::replay(stringify!($name), $name::run);
            }
        )*

        const ALL: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    audio at "../../fuzz_targets/audio.rs",
    calls_braces at "../../fuzz_targets/calls_braces.rs",
    calls_json at "../../fuzz_targets/calls_json.rs",
    calls_messages at "../../fuzz_targets/calls_messages.rs",
    calls_named at "../../fuzz_targets/calls_named.rs",
    calls_parameters at "../../fuzz_targets/calls_parameters.rs",
    calls_python at "../../fuzz_targets/calls_python.rs",
    chat_request at "../../fuzz_targets/chat_request.rs",
    config_json at "../../fuzz_targets/config_json.rs",
    documents at "../../fuzz_targets/documents.rs",
    gguf at "../../fuzz_targets/gguf.rs",
    grammar_parser at "../../fuzz_targets/grammar_parser.rs",
    images at "../../fuzz_targets/images.rs",
    jinja at "../../fuzz_targets/jinja.rs",
    markdown at "../../fuzz_targets/markdown.rs",
    safetensors_header at "../../fuzz_targets/safetensors_header.rs",
    schema_grammar at "../../fuzz_targets/schema_grammar.rs",
    template_context at "../../fuzz_targets/template_context.rs",
    template_files at "../../fuzz_targets/template_files.rs",
    template_polyfills at "../../fuzz_targets/template_polyfills.rs",
    template_source at "../../fuzz_targets/template_source.rs",
    tokenizer_json at "../../fuzz_targets/tokenizer_json.rs",
    wire_requests at "../../fuzz_targets/wire_requests.rs",
}

#[test]
fn every_target_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz_targets");
    let paths = std::fs::read_dir(folder)
        .expect("the folder of the targets")
        .map(|entry| entry.expect("a file").path());
    let rust = paths.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let mut names: Vec<String> =
        rust.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ALL);
}
