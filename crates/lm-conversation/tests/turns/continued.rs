//! Replies that were cut off and continue.

use lm_conversation::{
    ConstrainCalls, Conversation, ConversationConfig, ConversationEvent, Engine, Error, FinishReason,
    Message, OnCancel, PromptTemplate, ResponseFormat, ThinkingConfig, ThinkingMode, Turn, TurnOptions,
};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use serde_json::json;

use crate::turns::fixture::{CALL, config, conversation, weather};

fn limited(tokens: usize) -> TurnOptions {
    TurnOptions { max_output_tokens: Some(tokens), ..TurnOptions::default() }
}

/// A conversation with a model whose logits depend on all tokens before.
fn random(seed: u64) -> Conversation {
    let model = FakeLm::random(seed, tokenizer().logits_width());
    let engine = Engine::new(loaded(model), Default::default()).expect("an engine");
    Conversation::new(&engine, config()).expect("a conversation")
}

/// Text of a turn's events, the number of tokens that it prefilled, and its message.
fn read(turn: Turn) -> (String, usize, Message) {
    let (mut text, mut prefilled) = (String::new(), 0);
    for event in turn {
        match event.expect("it continues") {
            ConversationEvent::Text(piece) | ConversationEvent::Reasoning(piece) => text += &piece,
            ConversationEvent::Prefill(progress) => prefilled = progress.prefilled_tokens,
            ConversationEvent::Finished(reply) => return (text, prefilled, reply.message),
            _ => {}
        }
    }
    panic!("it has no last event")
}

#[test]
fn continued_greedy_reply_equals_the_uncut_one() {
    for seed in 0..6 {
        let whole = random(seed).send_with("Talk.", limited(60)).expect("a reply");
        for cut in [1, 2, 17, 59] {
            let mut conversation = random(seed);
            let reply = conversation.send_with("Talk.", limited(cut)).expect("a reply");
            if reply.finish.reason != FinishReason::MaxOutputTokens {
                continue;
            }
            let before = conversation.tokens();
            let turn = conversation.continue_reply(limited(60 - cut)).expect("it continues");
            let (_, prefilled, message) = read(turn);
            assert_eq!(message, whole.message, "seed {seed}, cut at {cut}");
            assert_eq!(conversation.history(), [Message::user("Talk."), message]);
            assert!(
                conversation.tokens().starts_with(&before[..before.len() - 1]),
                "nothing is sampled again"
            );
            assert!(prefilled <= 1, "the last token has not run yet, all others have: {prefilled}");
        }
    }
}

#[test]
fn cut_reply_continues_repeatedly() {
    let text = "One, two, three, four, five, six, seven. ".repeat(3);
    let (mut conversation, _) = conversation(config(), [text.as_str(), "Next."]);
    let mut shown = conversation.send_with("Count.", limited(5)).expect("a reply").text();
    for _ in 0..100 {
        let (more, _, message) = read(conversation.continue_reply(limited(5)).expect("it continues"));
        shown += &more;
        assert_eq!(shown, message.content.text());
        if shown == text {
            break;
        }
    }
    assert_eq!(conversation.history(), [Message::user("Count."), Message::assistant(text)]);
    assert_eq!(conversation.send("And?").expect("the next turn").text(), "Next.");
}

/// Reads a turn up to its first text.
fn begin(turn: &mut Turn) {
    assert!(turn.any(|event| matches!(event, Ok(ConversationEvent::Text(_)))), "it has started");
}

#[test]
fn kept_cancelled_reply_continues() {
    let keep = || TurnOptions { on_cancel: OnCancel::KeepPartial, ..limited(80) };
    let whole = random(1).send_with("Talk.", limited(80)).expect("a reply");
    for dropped in [false, true] {
        let mut conversation = random(1);
        let mut turn = conversation.stream("Talk.", keep()).expect("a turn");
        begin(&mut turn);
        if !dropped {
            turn.canceller().cancel();
            assert!(turn.by_ref().all(|event| event.is_ok()));
        }
        drop(turn);
        let written = conversation.tokens().len() - whole.finish.usage.prompt_tokens;
        if written < 80 {
            let turn = conversation.continue_reply(limited(80 - written)).expect("it continues");
            assert_eq!(turn.into_reply().expect("a reply").message, whole.message);
        }
        assert_eq!(conversation.history(), [Message::user("Talk."), whole.message.clone()]);
    }
}

#[test]
fn reply_cut_in_reasoning_continues_there() {
    let reply = "<think>\nLet me count: one, two, three.\n</think>\n\nThree.";
    for constrain_calls in [ConstrainCalls::Yes, ConstrainCalls::No] {
        let (mut conversation, _) =
            conversation(ConversationConfig { constrain_calls, ..config() }, [reply, "Never."]);
        conversation.send_with("Count.", limited(14)).expect("a reply");
        let reply = conversation
            .continue_reply(TurnOptions::default())
            .expect("it continues")
            .into_reply()
            .expect("a reply");
        assert_eq!(reply.text(), "Three.", "{constrain_calls:?}");
        assert_eq!(reply.message.reasoning_content.as_deref(), Some("Let me count: one, two, three."));
        // The tokens of its known beginning count as well.
        assert_eq!(
            reply.reasoning_tokens,
            1 + tokens("\nLet me count: one, two, three."),
            "{constrain_calls:?}"
        );
    }
}

#[test]
fn reasoning_tokens_are_counted_apart() {
    for (reply, reasoning) in
        [("<think>\nOne, two.\n</think>\n\nTwo.", 1 + tokens("\nOne, two.")), ("Two.", 0)]
    {
        for constrain_calls in [ConstrainCalls::Yes, ConstrainCalls::No] {
            let config = ConversationConfig { constrain_calls, ..config() };
            let (mut conversation, _) = conversation(config, [reply, "Never."]);
            let reply = conversation.send("Count.").expect("a reply");
            assert_eq!(reply.reasoning_tokens, reasoning, "{constrain_calls:?}");
        }
    }
}

/// Number of tokens of a text.
fn tokens(text: &str) -> usize {
    let text = lm_session::TextSegment::Content(text);
    tokenizer().encode_segments(&[text]).expect("it is encoded").len()
}

#[test]
fn continued_usage_separates_known_text_from_prompt() {
    let mut conversation = random(3);
    let first = conversation.send_with("Talk.", limited(9)).expect("a reply").finish.usage;
    assert_eq!((first.output_tokens, first.continued_tokens), (9, 0));
    let turn = conversation.continue_reply(limited(70)).expect("it continues");
    let whole = turn.into_reply().expect("a reply").finish.usage;
    assert_eq!((whole.prompt_tokens, whole.continued_tokens), (first.prompt_tokens, 9));
    assert_eq!(whole.cached_tokens, first.prompt_tokens, "tokens of the reply are none of the prompt");
    assert!(whole.output_tokens > 9);
}

#[test]
fn closed_format_continues_from_model_tokens() {
    let options =
        |tokens| TurnOptions { response_format: Some(ResponseFormat::JsonObject), ..limited(tokens) };
    let mut steered = 0;
    for seed in 0..6 {
        let whole = random(seed).send_with("JSON.", options(90)).expect("a reply");
        let mut conversation = random(seed);
        let cut = conversation.send_with("JSON.", options(25)).expect("a reply");
        serde_json::from_str::<serde_json::Value>(&cut.text()).expect("it was closed");
        let Some(from) = cut.finish.steered.map(|steered| steered.from) else { continue };
        steered += 1;
        let turn = conversation.continue_reply(options(90 - from)).expect("it continues");
        assert_eq!(turn.into_reply().expect("a reply").message, whole.message, "seed {seed}");
    }
    assert!(steered > 0);
}

#[test]
fn continued_reply_can_call_a_tool() {
    let reply = format!("Let me look that up for you, one moment please.\n{CALL}");
    let (mut conversation, _) = conversation(config().with_preface(weather()), [reply.as_str()]);
    conversation.send_with("Weather?", limited(6)).expect("a reply");
    let reply = conversation
        .continue_reply(TurnOptions::default())
        .expect("it continues")
        .into_reply()
        .expect("a reply");
    assert_eq!((reply.tool_calls().len(), reply.tool_calls()[0].name.as_str()), (1, "get_weather"));
    assert!(
        reply.text().starts_with("Let me look that up for you, one moment please."),
        "{:?}",
        reply.text()
    );
    assert!(matches!(conversation.continue_reply(TurnOptions::default()), Err(Error::NoReply { .. })));
}

/// The model is given the text itself: its answer begins where the message ends.
#[test]
fn foreign_reply_continues_from_its_text() {
    let (mut conversation, _) = conversation(config(), [" three."]);
    conversation.set_history(vec![Message::user("Count."), Message::assistant("One, two,")]);
    let turn = conversation.continue_reply(TurnOptions::default()).expect("it continues");
    let (text, _, message) = read(turn);
    assert_eq!((text.as_str(), message.content.text().as_str()), (" three.", "One, two, three."));
    assert_eq!(conversation.history(), [Message::user("Count."), message]);
    let ids = conversation.tokens();
    let bytes = ids.iter().flat_map(|&id| conversation.engine().tokenizer().token_bytes(id).to_vec());
    let prompt = String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned();
    assert!(prompt.contains("One, two, three."), "{prompt}");
}

#[test]
fn foreign_reasoning_continues() {
    let source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let template = Some(PromptTemplate::new(source).expect("it compiles"));
    let (mut conversation, _) =
        conversation(ConversationConfig { template, ..config() }, [" two.\n</think>\n\nTwo."]);
    let mut thought = Message::assistant("");
    thought.reasoning_content = Some("One,".to_owned());
    conversation.set_history(vec![Message::user("Count."), thought]);
    let reply = conversation
        .continue_reply(TurnOptions::default())
        .expect("it continues")
        .into_reply()
        .expect("a reply");
    assert_eq!(reply.message.reasoning_content.as_deref(), Some("One, two."));
    assert_eq!(reply.text(), "Two.");
}

#[test]
fn invalid_continuation_changes_nothing() {
    let (mut conversation, _) = conversation(config(), ["Hello!"]);
    let call = json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]});
    for last in
        [None, Some(Message::user("Hi.")), Some(Message::assistant("")), Message::from_json(call).ok()]
    {
        let history: Vec<Message> = [Message::user("Hi.")].into_iter().chain(last).collect();
        conversation.set_history(history.clone());
        let error = conversation.continue_reply(TurnOptions::default()).expect_err("it cannot");
        assert!(matches!(error, Error::NoReply { .. }), "{error}");
        assert_eq!(conversation.history(), history);
    }
}

#[test]
fn cancelled_continuation_keeps_or_extends_the_reply() {
    let whole = random(2).send_with("Talk.", limited(80)).expect("a reply");
    for on_cancel in [OnCancel::Rollback, OnCancel::KeepPartial] {
        let mut conversation = random(2);
        conversation.send_with("Talk.", limited(9)).expect("a reply");
        let before = conversation.history();
        let mut turn =
            conversation.continue_reply(TurnOptions { on_cancel, ..limited(70) }).expect("it continues");
        begin(&mut turn);
        drop(turn);
        let now = conversation.history();
        assert_eq!(now.len(), 2);
        let length = |history: &[Message]| history[1].content.text().len();
        assert_eq!(length(&now) > length(&before), on_cancel == OnCancel::KeepPartial);
        if on_cancel == OnCancel::Rollback {
            assert_eq!(now, before);
            let turn = conversation.continue_reply(limited(71)).expect("it continues");
            assert_eq!(turn.into_reply().expect("a reply").message, whole.message);
        }
    }
}

#[test]
fn reasoning_limit_spans_the_whole_reply() {
    let reply = format!("<think>\n{}\n</think>\n\nDone.", "on and ".repeat(40));
    let (mut conversation, _) = conversation(config(), [reply.as_str()]);
    let thinking = ThinkingConfig { mode: ThinkingMode::Default, max_tokens: Some(20) };
    let options = |max_output_tokens| TurnOptions { thinking, max_output_tokens, ..TurnOptions::default() };
    conversation.send_with("Think.", options(Some(12))).expect("a reply");
    let turn = conversation.continue_reply(options(Some(40))).expect("it continues");
    let reasoning = turn.into_reply().expect("a reply").message.reasoning_content.expect("reasoning");
    let tokens = conversation.engine().tokenizer().encode(&reasoning).expect("text").len();
    assert!((8..=20).contains(&tokens), "{tokens}: {reasoning}");
}
