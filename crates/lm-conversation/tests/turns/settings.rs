//! Settings of a conversation, and of one turn.

use lm_conversation::{
    Channel, ConstrainCalls, Conversation, ConversationConfig, ConversationEvent, DroppedHistory, Error,
    FinishReason, Message, OnMalformed, OnTokenLimit, Overflow, PromptTemplate, ResponseFormat,
    ThinkingConfig, ThinkingMode, TurnOptions,
};
use lm_session::testing::scripted_engine;
use lm_template::Preface;
use serde_json::{Value, json};

use crate::turns::fixture::{CHATML, config, conversation, weather};

fn channel(name: &'static str, start: &'static str, end: &'static str) -> Channel {
    Channel { name: name.into(), start: start.into(), end: end.into() }
}

#[test]
fn channels_have_events_and_named_message_fields() {
    let channels =
        Some(vec![channel("reasoning", "<think>", "</think>"), channel("plan", "<plan>", "</plan>")]);
    let reply = "<think>\nHm.\n</think>\n\n<plan>First this.</plan>It is <plan> Then that.</plan>done.";
    for preface in [Preface::default(), weather()] {
        let config = ConversationConfig { channels: channels.clone(), ..config() }.with_preface(preface);
        let (mut conversation, _) = conversation(config, [reply, "Yes."]);
        let turn = conversation.stream("Go.", TurnOptions::default()).expect("a turn");
        let events: Vec<_> = turn.collect::<Result<_, _>>().expect("a reply");
        let plan = |event: &ConversationEvent| match event {
            ConversationEvent::Channel { name, text } => {
                assert_eq!(name, "plan");
                assert_eq!(event.to_json().expect("a chunk")["channels"]["plan"], **text);
                Some(text.clone())
            }
            _ => None,
        };
        assert_eq!(events.iter().filter_map(plan).collect::<String>(), "First this. Then that.");
        let message = conversation.history().pop().expect("a reply");
        assert_eq!(message.reasoning_content.as_deref(), Some("Hm."));
        assert_eq!(message.extra("channels"), Some(&json!({"plan": "First this. Then that."})));
        assert_eq!(message.content.text(), "It is done.");
        conversation.send("And?").expect("the template takes the message");
    }
}

#[test]
fn family_channel_can_be_renamed_or_disabled() {
    let reply = "<think>\nHm.\n</think>\n\nYes.";
    let named = |channels| ConversationConfig { channels: Some(channels), ..config() };
    let (mut renamed, _) = conversation(named(vec![channel("thoughts", "<think>", "</think>")]), [reply]);
    let message = renamed.send("Well?").expect("a reply").message;
    assert_eq!(
        message.extra("channels"),
        Some(&json!({"thoughts": "Hm."})),
        "the family's layout is dropped"
    );
    assert_eq!((message.reasoning_content, message.content.text().as_str()), (None, "Yes."));
    let (mut disabled, _) = conversation(named(Vec::new()), [reply]);
    assert_eq!(disabled.send("Well?").expect("a reply").text(), reply);
    let thinking = ThinkingConfig { mode: ThinkingMode::On, max_tokens: None };
    let asked = disabled.send_with("Well?", TurnOptions { thinking, ..TurnOptions::default() });
    assert!(matches!(asked, Err(Error::NoThinking { .. })));
}

#[test]
fn thinking_limit_applies_to_a_caller_named_channel() {
    let channels = Some(vec![channel("plan", "<plan>", "</plan>")]);
    let thinking = ThinkingConfig { mode: ThinkingMode::Default, max_tokens: Some(8) };
    let plan = "on and ".repeat(30);
    for (opened, reply) in
        [("", format!("<plan>{plan}</plan>Done.")), ("<plan>", format!("{plan}</plan>Done."))]
    {
        let source = format!("{CHATML}{{{{ '{opened}' if add_generation_prompt }}}}");
        let template = Some(PromptTemplate::new(&source).expect("it compiles"));
        let config = ConversationConfig { channels: channels.clone(), thinking, template, ..config() };
        let (mut conversation, _) = conversation(config, [reply.as_str()]);
        let options = TurnOptions { max_output_tokens: Some(60), ..TurnOptions::default() };
        let message = conversation.send_with("Go.", options).expect("a reply").message;
        let channels = message.extra("channels");
        let plan = channels.and_then(|channels| channels["plan"].as_str()).expect("a plan").to_owned();
        let tokens = conversation.engine().tokenizer().encode(&plan).expect("text").len();
        assert!((1..=8).contains(&tokens), "{tokens}: {plan}");
    }
}

#[test]
fn channel_needs_a_name_and_markers() {
    let engine = scripted_engine(["Yes."]);
    let wrong = [channel("", "<a>", "</a>"), channel("a", "", "</a>"), channel("a", "<a>", "")];
    for (channel, expected) in wrong.into_iter().zip(["name", "start marker", "end marker"]) {
        let config = ConversationConfig { channels: Some(vec![channel]), ..config() };
        let error = Conversation::new(&engine, config).expect_err("it is refused");
        assert!(matches!(error, Error::InvalidChannel { index: 0, field } if field == expected), "{error}");
    }
}

#[test]
fn conversation_thinking_is_the_turn_default() {
    let on = ThinkingConfig { mode: ThinkingMode::On, max_tokens: None };
    let replies = ["a\n</think>\n\nb", "c"];
    let (mut conversation, _) = conversation(ConversationConfig { thinking: on, ..config() }, replies);
    let reply = conversation.send("Well?").expect("a reply");
    assert_eq!((reply.message.reasoning_content.as_deref(), reply.text().as_str()), (Some("a"), "b"));
    let off = ThinkingConfig { mode: ThinkingMode::Off, max_tokens: None };
    let reply = conversation
        .send_with("Well?", TurnOptions { thinking: off, ..Default::default() })
        .expect("a reply");
    assert_eq!((reply.message.reasoning_content, reply.message.content.text().as_str()), (None, "c"));
    // Without a channel the conversation is refused, not its first turn.
    let config = ConversationConfig { thinking: on, channels: Some(Vec::new()), ..config() };
    let refused = Conversation::new(&scripted_engine(["Yes."]), config);
    assert!(matches!(refused, Err(Error::NoThinking { .. })));
}

/// The template's switch is off unless it is set: an answer of a given form then has no reasoning before it.
#[test]
fn formatted_answer_reasons_if_the_template_asks() {
    let response_format = || Some(ResponseFormat::Regex("yes|no".to_owned()));
    let answer = |extra_context: Value, reply: &str| {
        let extra_context = extra_context.as_object().expect("an object").clone();
        let turn = TurnOptions { response_format: response_format(), extra_context, ..Default::default() };
        let (mut conversation, _) = conversation(config(), [reply]);
        let reply = conversation.send_with("Well?", turn).expect("a reply");
        (reply.message.reasoning_content.clone(), reply.text())
    };
    let (reasoning, text) = answer(json!({}), "<think>\nHm.\n</think>\n\nyes");
    assert!(reasoning.is_none() && ["yes", "no"].contains(&text.as_str()), "{reasoning:?} {text}");
    let (reasoning, text) = answer(json!({"enable_thinking": true}), "Hm.\n</think>\n\nyes");
    assert!(
        reasoning.as_deref() == Some("Hm.") && ["yes", "no"].contains(&text.as_str()),
        "{reasoning:?} {text}"
    );
}

#[test]
fn turn_overrides_the_preface_reasoning() {
    let enable_thinking = |on: bool| json!({"enable_thinking": on}).as_object().expect("an object").clone();
    let preface = Preface { extra_context: enable_thinking(true), ..Preface::default() };
    let (mut conversation, _) =
        conversation(config().with_preface(preface), ["<think>\nHm.\n</think>\n\nyes"]);
    let response_format = Some(ResponseFormat::Regex("yes|no".to_owned()));
    let options =
        TurnOptions { response_format, extra_context: enable_thinking(false), ..TurnOptions::default() };
    let reply = conversation.send_with("Well?", options).expect("a reply");
    let (reasoning, text) = (&reply.message.reasoning_content, reply.text());
    assert!(reasoning.is_none() && ["yes", "no"].contains(&text.as_str()), "{reasoning:?} {text}");
}

#[test]
fn preface_is_prefilled_on_init_on_request() {
    // A template that takes no conversation without a user's message.
    let source = format!(
        "{{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}}{{{{ raise_exception('no user') }}}}{{% endif %}}{CHATML}"
    );
    let preface = Preface { messages: vec![Message::system("Be brief. ".repeat(20))], ..weather() };
    for prefill_on_init in [false, true] {
        let template = Some(PromptTemplate::new(&source).expect("it compiles"));
        let config =
            ConversationConfig { template, prefill_on_init, ..config() }.with_preface(preface.clone());
        let (mut conversation, _) = conversation(config, ["Yes."]);
        let ran = conversation.tokens().len();
        let usage = conversation.send("Hi.").expect("a reply").finish.usage;
        assert_eq!(ran > 0, prefill_on_init);
        assert_eq!(usage.cached_tokens, 0, "prefills since the last generation count as its own");
        let prompt = conversation.tokens();
        assert!(
            !prefill_on_init || (ran + 20 > usage.prompt_tokens && ran < prompt.len()),
            "{ran} of {usage:?}"
        );
    }
    let (empty, _) = conversation(ConversationConfig { prefill_on_init: true, ..config() }, ["Yes."]);
    assert_eq!(empty.tokens(), [] as [u32; 0]);
}

#[test]
fn token_limit_is_an_error_on_request() {
    let error = Some(OnTokenLimit::Error);
    let options =
        |on_token_limit| TurnOptions { max_output_tokens: Some(3), on_token_limit, ..Default::default() };
    let (mut plain, _) = conversation(config(), ["One, two, three.", "One, two, three."]);
    let reply = plain.send_with("Count.", options(None)).expect("it is complete");
    assert_eq!(reply.finish.reason, FinishReason::MaxOutputTokens);
    let before = plain.history();
    let failed = plain.send_with("Count.", options(error)).expect_err("it is cut off");
    assert!(matches!(failed, Error::TokenLimit { reason: FinishReason::MaxOutputTokens, .. }), "{failed}");
    assert_eq!(plain.history(), before);
    let strict = ConversationConfig { on_token_limit: OnTokenLimit::Error, ..config() };
    let (mut strict, _) = conversation(strict, ["One, two, three.", "One, two, three."]);
    assert!(strict.send_with("Count.", options(None)).is_err());
    assert!(strict.send_with("Count.", options(Some(OnTokenLimit::Finish))).is_ok());
}

#[test]
fn full_context_is_an_error_on_request() {
    use lm_session::testing::{FakeLm, loaded, tokenizer};
    let settings = lm_conversation::EngineSettings { max_context: Some(512), ..Default::default() };
    let replies = vec!["and so on ".repeat(400); 2];
    let engine = lm_conversation::Engine::new(loaded(FakeLm::scripted(&tokenizer(), replies)), settings)
        .expect("an engine");
    let send = |on_token_limit| {
        let options = TurnOptions { on_token_limit: Some(on_token_limit), ..TurnOptions::default() };
        let mut conversation = Conversation::new(&engine, config()).expect("a conversation");
        let sent = conversation.send_with("Go on.", options);
        (sent, conversation.history())
    };
    let (reply, _) = send(OnTokenLimit::Finish);
    assert_eq!(reply.expect("it is complete").finish.reason, FinishReason::ContextFull);
    let (failed, history) = send(OnTokenLimit::Error);
    assert!(matches!(failed, Err(Error::TokenLimit { reason: FinishReason::ContextFull, .. })), "{failed:?}");
    assert_eq!(history, []);
}

#[test]
fn turn_options_set_malformed_and_unconstrained_calls() {
    let reply = "<tool_call>\nnonsense\n</tool_call>";
    let (mut conversation, _) = conversation(config().with_preface(weather()), [reply, reply, reply]);
    let options = |on_malformed| TurnOptions {
        constrain_calls: Some(ConstrainCalls::No),
        on_malformed,
        ..Default::default()
    };
    assert!(matches!(conversation.send_with("Go.", options(None)), Err(Error::Processor(_))));
    let text = conversation.send_with("Go.", options(Some(OnMalformed::Text))).expect("text").text();
    assert!(text.contains("nonsense"), "{text}");
}

#[test]
fn configuration_round_trips() {
    let given = ConversationConfig {
        preface: weather(),
        channels: Some(vec![channel("plan", "<plan>", "</plan>")]),
        on_malformed: OnMalformed::Text,
        constrain_calls: ConstrainCalls::No,
        on_token_limit: OnTokenLimit::Error,
        overflow: Overflow::DropOldest(DroppedHistory::Removed),
        thinking: ThinkingConfig { mode: ThinkingMode::Off, max_tokens: Some(3) },
        ..config()
    };
    let (made, engine) = conversation(given.clone(), ["Yes."]);
    let processor = made.config().processor;
    assert_eq!(format!("{:?}", made.config()), format!("{:?}", ConversationConfig { processor, ..given }));
    let mut again = Conversation::new(&engine, made.config()).expect("the same once more");
    assert_eq!(again.send("Hi.").expect("a reply").text(), "Yes.");
}

/// A filter that waits until the sender is dropped.
#[derive(Debug)]
struct Gate(std::sync::Arc<std::sync::Mutex<std::sync::mpsc::Receiver<()>>>);

impl lm_session::LogitsFilter for Gate {
    fn apply(&mut self, _: &mut lm_session::TokenLogits, _: &lm_session::History<'_>) {
        let _ = self.0.lock().map(|opened| opened.recv());
    }
}

#[test]
fn higher_priority_runs_before_longer_waiting() {
    use lm_session::testing::{FakeLm, loaded, tokenizer};
    let replies = ["One.", "Two.", "Three."].map(str::to_owned);
    let settings = lm_conversation::EngineSettings { max_running_requests: 1, ..Default::default() };
    let engine = lm_conversation::Engine::new(loaded(FakeLm::scripted(&tokenizer(), replies)), settings)
        .expect("an engine");
    let [mut running, mut low, mut high] = [(); 3].map(|()| {
        lm_conversation::Conversation::new(&engine, crate::turns::fixture::config()).expect("a conversation")
    });
    let (open, opened) = std::sync::mpsc::channel::<()>();
    let opened = std::sync::Arc::new(std::sync::Mutex::new(opened));
    let filters = vec![lm_session::FilterFactory::new(move || Gate(opened.clone()))];
    let sampler = Some(lm_conversation::SamplerParams { filters, ..Default::default() });
    let turn = |conversation: &mut lm_conversation::Conversation, sampler, priority| {
        let options = lm_conversation::TurnOptions { sampler, priority, ..Default::default() };
        conversation.stream("Hi.", options).expect("a turn")
    };
    let turns = [turn(&mut running, sampler, 0), turn(&mut low, None, 0), turn(&mut high, None, 5)];
    drop(open);
    let texts = turns.map(|turn| turn.into_reply().expect("a reply").text());
    assert_eq!(texts, ["One.", "Three.", "Two."]);
}
