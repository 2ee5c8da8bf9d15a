//! Probed capabilities of well-known templates, against their reference renderings.

use crate::shared;
use lm_template::{CallIds, Capabilities, PromptTemplate};

/// Template → its capabilities. (`typed`: content in parts; `parallel`: several calls per message; `object`
/// and `text`: arguments; `objects`: results.)
const KNOWN: &[(&str, &str)] = &[
    ("HuggingFaceTB-SmolLM3-3B", "system text results enable_thinking=true"),
    ("HuggingFaceTB-SmolLM3-3B-2", "system text xml_tools results enable_thinking=true"),
    ("LFM2.5-8B-A1B", "system text typed tools calls parallel object results"),
    ("Llama-3", "system text results"),
    (
        "Mistral-Small-3.2-24B-Instruct-2506",
        "system text typed-user tools calls parallel object nine-character-ids results answered-results",
    ),
    ("Phi-3-medium", "text"),
    ("Qwen-Qwen2.5-7B-Instruct", "system text tools calls parallel object results"),
    (
        "Qwen-Qwen3-0.6B",
        "system text tools calls parallel object text-arguments results enable_thinking=true",
    ),
    ("Qwen-Qwen3-Coder-30B-A3B-Instruct", "system text tools calls parallel object results"),
    ("Qwen3.5-4B", "system text typed tools calls parallel object results enable_thinking=true"),
    ("google-function-gemma", "system text typed tools calls parallel object-of-texts results"),
    ("google-function-gemma-hf", "system text typed tools calls parallel object results"),
    ("google-gemma-2-2b-it", "text"),
    ("google-gemma-3-1b-it", "system text typed-user"),
    (
        "google-gemma-4-31B-it",
        "system text typed-user tools calls parallel object results enable_thinking=false",
    ),
    ("litert-generic-model-multi-prefill", "system text typed model-role single-turn"),
    ("meetkai-functionary-medium-v3.2", "system text tools calls parallel text-arguments results"),
    ("meta-llama-Llama-3.1-8B-Instruct", "system text tools calls object results objects"),
    ("microsoft-Phi-4-mini-instruct", "system text results"),
    ("mistralai-Mistral-7B-Instruct-v0.2", "text"),
    (
        "mistralai-Mistral-Nemo-Instruct-2407",
        "system text tools calls parallel object nine-character-ids results answered-results",
    ),
    ("mistralrs-mistral_nemo_tool_call", "system text tools calls parallel object ids results"),
    ("openai-gpt-oss-120b", "system text tools calls object results objects"),
    ("trl-smolvlm", "system typed"),
    ("vllm-deepseekv31", "system text tools calls parallel object results thinking=false"),
    ("vllm-functiongemma", "system text tools-with-system calls parallel object results"),
    ("vllm-hermes", "system text tools calls parallel object results"),
];

fn shown(can: &Capabilities) -> String {
    let thinking = can.thinking.map(|switch| format!("{}={}", switch.variable, switch.default));
    let words = [
        (can.system, "system"),
        (can.text_content, "text"),
        (can.typed_content && !can.typed_system, "typed-user"),
        (can.typed_content && can.typed_system, "typed"),
        (can.model_role == "model", "model-role"),
        (can.tools && !can.tools_need_system, "tools"),
        (can.tools_need_system, "tools-with-system"),
        (can.tools_variable.is_some(), can.tools_variable.unwrap_or_default()),
        (can.tool_calls, "calls"),
        (can.parallel_tool_calls, "parallel"),
        (can.object_arguments && can.argument_values, "object"),
        (can.object_arguments && !can.argument_values, "object-of-texts"),
        (can.text_arguments, "text-arguments"),
        (can.call_ids == CallIds::Written, "ids"),
        (can.call_ids == CallIds::NineCharacters, "nine-character-ids"),
        (can.tool_results, "results"),
        (can.object_results, "objects"),
        (can.tool_results && !can.user_after_results, "answered-results"),
        (thinking.is_some(), thinking.as_deref().unwrap_or_default()),
        (can.single_turn, "single-turn"),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(has, _)| *has).map(|(_, word)| word).collect();
    words.join(" ")
}

#[test]
fn known_templates_have_expected_capabilities() {
    let Some(folder) = shared::path("goldens/templates") else { return };
    let index = shared::json(folder.join("index.json"));
    let rows = index["templates"].as_array().expect("a list of templates");
    for (id, expected) in KNOWN {
        let row = rows.iter().find(|row| row["id"] == *id).unwrap_or_else(|| panic!("{id} is known"));
        let source = std::fs::read_to_string(folder.join(format!("{id}.jinja"))).expect("a template");
        let template = PromptTemplate::new(&source).expect("it compiles");
        let template = template.with_context(row["context"].as_object().cloned().unwrap_or_default());
        assert_eq!(shown(&Capabilities::of(&template)), *expected, "{id}");
    }
}
