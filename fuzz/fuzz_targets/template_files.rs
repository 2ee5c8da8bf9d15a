//! The files of a model folder that contain its chat templates.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_template::{ChatTemplates, TemplateChoice};

const NAMES: [&str; 5] = [
    "tokenizer_config.json",
    "chat_template.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "additional_chat_templates/tool_use.jinja",
];

fuzz_target!(|bytes: &[u8]| -> Corpus {
    // The files are separated by a byte that occurs in no UTF-8 text.
    let files = NAMES.into_iter().zip(bytes.split(|&byte| byte == 0xff));
    let Ok(templates) = ChatTemplates::from_files(files) else { return Corpus::Keep };
    for name in templates.names() {
        let source = templates.source(TemplateChoice::Named(name)).expect("the name is one of its own");
        if let Ok(template) = templates.get(TemplateChoice::Named(name)) {
            assert_eq!(template.source(), source);
        }
    }
    let tools = templates.source(TemplateChoice::Tools).is_ok();
    assert!(
        tools || templates.names().next().is_none_or(|name| name != "default"),
        "the default serves for tools too"
    );
    Corpus::Keep
});
