//! Trained models, named by the folder `LM_REAL_MODELS`: what a constraint must not do to a model, with cases
//! of the shared `bfcl`.

use std::path::PathBuf;

use lm_conversation::{
    Conversation, ConversationConfig, Engine, EngineSettings, FinishReason, LoadOptions, Message,
    ModelFolder, Preface, Reply, ResponseFormat, SamplerParams, SessionConfig, ToolChoice, TurnOptions,
    Value,
};
use serde_json::json;

use crate::shared;

const CODER: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
const SMOLLM2: &str = "smollm2-135m-instruct-q4_1.gguf";
/// Number of cases, of those with one tool and one call.
const CASES: usize = 2;

/// The model; prints a line if it is not there.
fn engine(file: &str) -> Option<Engine> {
    let path = std::env::var_os("LM_REAL_MODELS").map(|folder| PathBuf::from(folder).join(file));
    let Some(path) = path.filter(|path| path.is_file()) else {
        println!("skipped: {file} is not in LM_REAL_MODELS (see real-models)");
        return None;
    };
    let folder = ModelFolder::open(&path).expect("a model");
    let settings = EngineSettings { max_context: Some(2_048), ..EngineSettings::default() };
    Some(Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| ()).expect("it loads"))
}

fn cases(file: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared::path(format!("bfcl/{file}"))?).expect("cases");
    Some(text.lines().take(CASES).map(|line| serde_json::from_str(line).expect("a case")).collect())
}

/// The greedy reply to a case.
fn reply(engine: &Engine, case: &Value, options: TurnOptions) -> Reply {
    let preface: Preface = serde_json::from_value(json!({"tools": case["tools"]})).expect("tools");
    let session = SessionConfig { sampler: SamplerParams::default(), ..SessionConfig::default() };
    let config = ConversationConfig { session, ..ConversationConfig::default().with_preface(preface) };
    let text = case["messages"][0]["content"].as_str().expect("a question");
    let options = TurnOptions { max_output_tokens: Some(200), ..options };
    Conversation::new(engine, config).expect("a conversation").send_with(text, options).expect("a reply")
}

fn asked_name(case: &Value) -> &str {
    let expected = case["expected"][0].as_object().expect("a call");
    expected.keys().next().expect("a name")
}

#[test]
fn required_call_is_one_call_without_invented_reasoning() {
    let (Some(engine), Some(cases)) = (engine(CODER), cases("simple_python.jsonl")) else { return };
    for case in &cases {
        let options = TurnOptions { tool_choice: ToolChoice::Required, ..TurnOptions::default() };
        let reply = reply(&engine, case, options);
        let names: Vec<_> = reply.tool_calls().iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, [asked_name(case)], "{reply:?}");
        assert_eq!((&reply.message.reasoning_content, reply.text().as_str()), (&None, ""), "{reply:?}");
        assert_eq!(reply.finish.reason, FinishReason::EndToken);
        assert!(reply.cut_call.is_none() && !reply.finish.is_cut_off(), "{reply:?}");
    }
}

/// Qwen2.5-Coder writes a code block where its template declares tags.
#[test]
fn code_block_of_a_trained_model_is_its_call() {
    let (Some(engine), Some(cases)) = (engine(CODER), cases("simple_python.jsonl")) else { return };
    let mut called = 0;
    for case in &cases {
        let reply = reply(&engine, case, TurnOptions::default());
        called += usize::from(reply.tool_calls().iter().any(|call| call.name == asked_name(case)));
    }
    assert_eq!(called, CASES, "replies that are calls");
}

#[test]
fn cut_call_of_a_trained_model_does_not_run() {
    let (Some(engine), Some(cases)) = (engine(CODER), cases("simple_python.jsonl")) else { return };
    let options = TurnOptions { tool_choice: ToolChoice::Required, ..TurnOptions::default() };
    let whole = reply(&engine, &cases[0], options.clone());
    let room = whole.finish.usage.output_tokens - 6;
    let text = cases[0]["messages"][0]["content"].as_str().expect("a question");
    let preface: Preface = serde_json::from_value(json!({"tools": cases[0]["tools"]})).expect("tools");
    let mut conversation = Conversation::new(&engine, ConversationConfig::default().with_preface(preface))
        .expect("a conversation");
    let options = TurnOptions { max_output_tokens: Some(room), ..options };
    let cut = conversation.send_with(text, options).expect("a reply");
    assert!(cut.tool_calls().is_empty() && cut.finish.is_cut_off(), "{cut:?}");
    let call = cut.cut_call.expect("the call was cut off");
    assert_eq!(call.name.as_deref(), Some(asked_name(&cases[0])));
    let arguments = serde_json::to_string(&whole.tool_calls()[0].arguments).expect("JSON");
    let bare = |text: &str| text.replace([' ', '\n'], "");
    assert!(bare(&arguments).starts_with(&bare(&call.arguments)), "{} of {arguments}", call.arguments);
}

#[test]
fn formatted_answers_end_by_themselves() {
    let Some(engine) = engine(SMOLLM2) else { return };
    let schema = json!({
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": false,
    });
    let formats = [
        ResponseFormat::Regex("[A-Za-z0-9 ]{1,40}".to_owned()),
        ResponseFormat::Choice(["Paris", "Rome"].map(str::to_owned).to_vec()),
        ResponseFormat::JsonSchema(schema),
    ];
    for format in formats {
        let mut conversation =
            Conversation::new(&engine, ConversationConfig::default()).expect("a conversation");
        let options = TurnOptions {
            response_format: Some(format),
            max_output_tokens: Some(60),
            ..TurnOptions::default()
        };
        let reply = conversation
            .send_with(Message::user("What is the capital of France? Answer with one word."), options)
            .expect("a reply");
        assert_eq!(reply.finish.reason, FinishReason::EndToken, "{reply:?}");
        assert!(!reply.finish.is_cut_off() && reply.text().contains("Paris"), "{reply:?}");
    }
}
