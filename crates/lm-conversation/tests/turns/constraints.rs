//! Constrained turns with a model of random logits at temperature 1.

use lm_conversation::{
    Calls, ConstrainCalls, Conversation, ConversationConfig, ConversationEvent, CutCalls, Engine,
    EngineSettings, Error, Message, Preface, Reply, ResponseFormat, SamplerParams, SessionConfig,
    ThinkingConfig, ThinkingMode, TokenId, ToolChoice, TurnOptions,
};
use lm_session::FinishReason;
use lm_session::testing::{FakeLm, loaded, tokenizer};
use serde_json::{Value, json};

use crate::turns::fixture::{CALL, config, conversation};

/// Number of models, and of seeds for each model.
const MODELS: u64 = 6;
const SEEDS: u64 = 6;

fn tools() -> Preface {
    let add = json!({"name": "add", "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["a", "b"],
    }});
    let now = json!({"name": "now", "parameters": {"type": "object", "properties": {"zone": {"enum": ["UTC", "local"]}}}});
    serde_json::from_value(json!({"tools": [add, now]})).expect("a preface")
}

/// Replies of random models, each sampled with several seeds.
fn replies(preface: &Preface, turn: &TurnOptions) -> Vec<Result<Reply, Error>> {
    let of_model = |model| {
        let model = FakeLm::random(model, tokenizer().logits_width());
        let engine = Engine::new(loaded(model), EngineSettings::default()).expect("the settings fit");
        (0..SEEDS).map(move |seed| {
            let sampler = SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() };
            let session = SessionConfig { sampler, max_output_tokens: Some(120), ..SessionConfig::default() };
            let config = ConversationConfig { session, ..config().with_preface(preface.clone()) };
            // Random text is often cut off: the completions of calls are tested as well.
            let turn = TurnOptions { cut_calls: CutCalls::Complete, ..turn.clone() };
            Conversation::new(&engine, config)?.send_with("Go.", turn)
        })
    };
    (0..MODELS).flat_map(of_model).collect()
}

fn fits_its_schema(name: &str, arguments: &Value) -> bool {
    let known =
        |keys: &[&str]| arguments.as_object().is_some_and(|all| all.keys().all(|key| keys.contains(&&**key)));
    match name {
        "add" => {
            let optional = arguments.get("note").is_none_or(Value::is_string);
            arguments["a"].is_i64() && arguments["b"].is_i64() && optional && known(&["a", "b", "note"])
        }
        "now" => {
            arguments.get("zone").is_none_or(|zone| zone == "UTC" || zone == "local") && known(&["zone"])
        }
        _ => false,
    }
}

#[test]
fn required_call_is_made_and_fits_its_schema() {
    let mut names = std::collections::BTreeSet::new();
    for reply in replies(&tools(), &TurnOptions { tool_choice: ToolChoice::Required, ..Default::default() }) {
        let reply = reply.expect("a turn");
        assert!(!reply.tool_calls().is_empty(), "{reply:?}");
        for call in reply.tool_calls() {
            assert!(fits_its_schema(&call.name, &call.arguments.clone().into()), "{call:?}");
            names.insert(call.name.clone());
        }
    }
    assert_eq!(names.len(), 2, "only {names:?} were called");
}

#[test]
fn cut_call_is_not_a_call() {
    let mut cut = 0;
    let turn = TurnOptions { tool_choice: ToolChoice::Required, ..Default::default() };
    for seed in 0..SEEDS * MODELS {
        let model = FakeLm::random(seed, tokenizer().logits_width());
        let engine = Engine::new(loaded(model), EngineSettings::default()).expect("the settings fit");
        let sampler = SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() };
        let session = SessionConfig { sampler, max_output_tokens: Some(40), ..SessionConfig::default() };
        let config = ConversationConfig { session, ..config().with_preface(tools()) };
        let mut conversation = Conversation::new(&engine, config).expect("a conversation");
        let events: Vec<_> = conversation.stream("Go.", turn.clone()).expect("a turn").collect();
        let events: Vec<_> = events.into_iter().map(|event| event.expect("an event")).collect();
        let Some(ConversationEvent::Finished(reply)) = events.last() else { panic!("{events:?}") };
        let calls = events.iter().filter(|event| matches!(event, ConversationEvent::ToolCall(_))).count();
        assert_eq!(calls, reply.tool_calls().len(), "{reply:?}");
        for call in reply.tool_calls() {
            assert!(fits_its_schema(&call.name, &call.arguments.clone().into()), "{call:?}");
        }
        assert!(reply.cut_call.is_none() || reply.finish.is_cut_off(), "{reply:?}");
        assert!(reply.cut_call.is_some() || !reply.tool_calls().is_empty(), "{reply:?}");
        if let Some(call) = &reply.cut_call {
            cut += 1;
            let whole = serde_json::from_str::<Value>(&call.arguments).is_ok();
            assert!(!whole || call.arguments.is_empty(), "the model has written all of {call:?}");
            assert_eq!(conversation.history().last(), Some(&reply.message));
        }
    }
    assert!(cut > 10, "{cut} calls were cut off");
}

#[test]
fn named_tool_is_called_once_when_limited() {
    let tool_choice = ToolChoice::Named("add".to_owned());
    for reply in replies(&tools(), &TurnOptions { tool_choice, calls: Calls::One, ..Default::default() }) {
        let reply = reply.expect("a turn");
        let names: Vec<_> = reply.tool_calls().iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["add"]);
    }
}

#[test]
fn forbidden_call_is_not_made() {
    for reply in replies(&tools(), &TurnOptions { tool_choice: ToolChoice::None, ..Default::default() }) {
        let reply = reply.expect("a turn");
        assert!(reply.tool_calls().is_empty() && !reply.text().contains("<tool_call>"), "{reply:?}");
    }
}

#[test]
fn optional_calls_are_always_valid() {
    for reply in replies(&tools(), &TurnOptions::default()) {
        let reply = reply.expect("no call is malformed");
        let mut calls = reply.tool_calls().iter();
        assert!(calls.all(|call| fits_its_schema(&call.name, &call.arguments.clone().into())), "{reply:?}");
    }
}

#[test]
fn answer_has_its_format() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}},
        "required": ["n", "ok"], "additionalProperties": false});
    let format = |format| TurnOptions { response_format: Some(format), ..TurnOptions::default() };
    for reply in replies(&Preface::default(), &format(ResponseFormat::JsonSchema(schema))) {
        let value: Value = serde_json::from_str(&reply.expect("a turn").text()).expect("the answer is JSON");
        assert!(value["n"].is_number() && value["ok"].is_boolean(), "{value}");
    }
    for reply in replies(&Preface::default(), &format(ResponseFormat::JsonObject)) {
        let value: Value = serde_json::from_str(&reply.expect("a turn").text()).expect("the answer is JSON");
        assert!(value.is_object(), "{value}");
    }
    let choice = ResponseFormat::Choice(vec!["yes".to_owned(), "no".to_owned()]);
    for reply in replies(&Preface::default(), &format(choice)) {
        let reply = reply.expect("a turn");
        assert!(["yes", "no"].contains(&reply.text().as_str()), "{reply:?}");
        assert_eq!(reply.finish.reason, FinishReason::EndToken);
    }
}

#[test]
fn answer_beside_calls_has_its_format() {
    let pattern = ResponseFormat::Regex("[0-9]{3}".to_owned());
    for reply in replies(&tools(), &TurnOptions { response_format: Some(pattern), ..Default::default() }) {
        let reply = reply.expect("a turn");
        let digits = reply.text().len() == 3 && reply.text().bytes().all(|byte| byte.is_ascii_digit());
        assert!(digits || !reply.tool_calls().is_empty(), "{reply:?}");
    }
}

#[test]
fn reasoning_budget_keeps_other_constraints() {
    let tokenizer = tokenizer();
    let longest = (0..tokenizer.vocab_size() as TokenId).map(|id| tokenizer.token_bytes(id).len()).max();
    let longest = longest.expect("there are tokens");
    let thinking = ThinkingConfig { mode: ThinkingMode::On, max_tokens: Some(10) };
    let turn = TurnOptions { tool_choice: ToolChoice::Required, thinking, ..TurnOptions::default() };
    for reply in replies(&tools(), &turn) {
        let reply = reply.expect("a turn");
        assert!(!reply.tool_calls().is_empty());
        let reasoning = reply.message.reasoning_content.unwrap_or_default();
        assert!(reasoning.len() <= 10 * longest, "{} bytes of reasoning: {reasoning:?}", reasoning.len());
    }
}

#[test]
fn disabled_thinking_is_not_shown() {
    let thinking = ThinkingConfig { mode: ThinkingMode::Off, max_tokens: None };
    let turn = TurnOptions { tool_choice: ToolChoice::Required, thinking, ..TurnOptions::default() };
    for reply in replies(&tools(), &turn) {
        assert_eq!(reply.expect("a turn").message.reasoning_content, None);
    }
}

#[test]
fn impossible_constraints_fail_before_the_turn() {
    let refused =
        |preface: &Preface, turn: TurnOptions| replies(preface, &turn).swap_remove(0).expect_err("refused");
    let required = || TurnOptions { tool_choice: ToolChoice::Required, ..TurnOptions::default() };
    let error = refused(&Preface::default(), required());
    assert!(matches!(error, Error::Processor(lm_processors::Error::NoTools)), "{error:?}");
    let named = TurnOptions { tool_choice: ToolChoice::Named("sub".to_owned()), ..TurnOptions::default() };
    let error = refused(&tools(), named);
    assert!(matches!(error, Error::Processor(lm_processors::Error::UnknownTool { .. })), "{error:?}");
    let error = refused(&tools(), TurnOptions { max_output_tokens: Some(3), ..required() });
    assert!(
        matches!(error, Error::Session(lm_session::Error::BudgetTooSmall { available_tokens: 3, .. })),
        "{error:?}"
    );
    let tool =
        json!({"tools": [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": 7}}}}]});
    let error = refused(&serde_json::from_value(tool).expect("a preface"), required());
    let Error::Processor(lm_processors::Error::Schema(error)) = error else { panic!("{error:?}") };
    assert_eq!((error.tool.as_deref(), &*error.path, &*error.keyword), (Some("f"), "#/properties/x", "type"));
}

#[test]
fn thinking_without_model_support_is_an_error() {
    let generic = lm_processors::detect("", "");
    let model = FakeLm::random(0, tokenizer().logits_width());
    let engine = Engine::new(loaded(model), EngineSettings::default()).expect("the settings fit");
    let config = ConversationConfig { processor: Some(generic.into()), ..config() };
    let mut conversation = Conversation::new(&engine, config).expect("a conversation");
    let thinking = ThinkingConfig { mode: ThinkingMode::On, max_tokens: None };
    let error = conversation.send_with("Go.", TurnOptions { thinking, ..TurnOptions::default() });
    assert!(matches!(error, Err(Error::NoThinking { .. })), "{error:?}");
    assert!(conversation.history().is_empty());
}

#[test]
fn unconstrained_calls_may_be_malformed() {
    let broken = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": }}\n</tool_call>";
    let config = || config().with_preface(tools());
    let loose = ConversationConfig { constrain_calls: ConstrainCalls::No, ..config() };
    let (mut conversation_loose, _) = conversation(loose, [broken]);
    assert!(conversation_loose.send("Go.").is_err());
    // The scripted tokens are forbidden, and the reply becomes another one within the schema.
    let (mut conversation, _) = conversation(config(), [CALL]);
    let reply = conversation.send("Go.").expect("no call is malformed");
    assert!(reply.tool_calls().iter().all(|call| call.name != "get_weather"));
    assert_eq!(conversation.history()[0], Message::user("Go."));
}
