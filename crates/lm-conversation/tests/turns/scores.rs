//! Log probabilities of given replies, and of prompts.

use lm_conversation::{
    Content, Conversation, ConversationConfig, ConversationEvent, Engine, EngineSettings, Error,
    GenerationPrompt, LoadOptions, Message, ModelFolder, ScoredToken, TurnOptions,
};
use lm_session::{CancelHandle, SessionConfig};

use crate::turns::fixture::{config, conversation};

const QUESTION: &str = "Hello, who are you?";

fn pocket() -> Conversation {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {});
    let engine = engine.expect("the embedded model loads");
    Conversation::new(&engine, ConversationConfig::default()).expect("a conversation")
}

fn with_logprobs() -> TurnOptions {
    TurnOptions { logprobs: Some(2), max_output_tokens: Some(12), ..TurnOptions::default() }
}

/// Log probabilities of a greedy reply, as its turn reports them, and its text.
fn generated(conversation: &mut Conversation) -> (Vec<ScoredToken>, String) {
    let (mut tokens, mut text) = (Vec::new(), String::new());
    for event in conversation.stream(QUESTION, with_logprobs()).expect("a turn") {
        match event.expect("an event") {
            ConversationEvent::Logprobs(token) => tokens.push(token),
            ConversationEvent::Finished(reply) => text = reply.text(),
            _ => {}
        }
    }
    (tokens, text)
}

#[test]
fn scored_reply_equals_the_scores_of_its_turn() {
    let (tokens, text) = generated(&mut pocket());
    assert!(tokens.len() > 3 && !text.is_empty(), "{text:?}");
    let mut conversation = pocket();
    let score = conversation.score_with(QUESTION, &text, with_logprobs()).expect("a score");
    assert_eq!(score.tokens, tokens);
    let sum: f64 = tokens.iter().map(|scored| f64::from(scored.token.logprob)).sum();
    assert_eq!(score.sum(), sum);
    assert!(conversation.history().is_empty() && conversation.tokens().is_empty(), "nothing is changed");
    let other = conversation.score(QUESTION, "qx zv").expect("a score");
    assert!(other.sum() / other.tokens.len() as f64 <= sum / tokens.len() as f64);
    // The reply to the history, without further messages.
    conversation.set_history(vec![Message::user(QUESTION)]);
    assert_eq!(conversation.score_with(Vec::new(), &text, with_logprobs()).expect("a score").tokens, tokens);
    assert_eq!(conversation.score(Vec::new(), "").expect("a score").tokens, []);
}

#[test]
fn scoring_does_not_disturb_a_running_turn() {
    let (mut alone, mut beside) = (pocket(), pocket());
    let expected = alone.send_with(QUESTION, with_logprobs()).expect("a turn");
    let mut turn = beside.stream(QUESTION, with_logprobs()).expect("a turn");
    assert!(turn.by_ref().any(|event| matches!(event, Ok(ConversationEvent::Text(_)))));
    let score = beside.score("What else?", "Nothing.").expect("a score");
    assert_eq!(score, pocket().score("What else?", "Nothing.").expect("a score"));
    assert_eq!(turn.into_reply().expect("a reply").message, expected.message);
    assert_eq!(beside.history().len(), 2);
}

#[test]
fn failed_score_is_a_typed_error() {
    let conversation = pocket();
    let options = TurnOptions::default();
    options.cancel.cancel();
    let error = conversation.score_with(QUESTION, "Hello", options).expect_err("it is cancelled");
    assert!(matches!(error, Error::Cancelled), "{error}");
    let long = "and ".repeat(conversation.engine().context_tokens());
    for (message, text) in [(QUESTION, long.as_str()), (&long, "Hello")] {
        let error = conversation.score(message, text).expect_err("it is too long");
        assert!(matches!(error, Error::Session(lm_session::Error::PromptTooLong { .. })), "{error}");
    }
}

#[test]
fn turn_prompt_has_token_scores() {
    let mut conversation = pocket();
    for cached in [false, true] {
        let options = TurnOptions { prompt_logprobs: Some(1), ..with_logprobs() };
        let rendered = conversation.render(QUESTION, GenerationPrompt::Add).expect("a prompt");
        let events: Vec<_> = conversation.stream(QUESTION, options).expect("a turn").collect();
        let events: Vec<_> = events.into_iter().map(|event| event.expect("an event")).collect();
        let place = |wanted: fn(&ConversationEvent) -> bool| events.iter().position(wanted);
        let first = place(|event| matches!(event, ConversationEvent::PromptLogprobs(_)));
        assert!(first < place(|event| matches!(event, ConversationEvent::Logprobs(_))), "cached {cached}");
        let scored: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                ConversationEvent::PromptLogprobs(scored) => Some(scored),
                _ => None,
            })
            .collect();
        let [scored] = scored[..] else { panic!("once: {scored:?}") };
        let ids: Vec<_> = scored.iter().map(|scored| scored.token.id).collect();
        assert_eq!(ids, rendered.ids[1..]);
        let session = conversation.engine().session(SessionConfig::default()).expect("a session");
        let expected = session.score(&rendered.ids, 1, &CancelHandle::new()).expect("a score").tokens;
        for (scored, expected) in scored.iter().zip(expected) {
            assert_eq!((scored.token.logprob, scored.top.len()), (expected.logprob, 1));
            assert_eq!((scored.top[0].id, scored.top[0].logprob), expected.top[0]);
        }
        conversation.reset();
    }
}

#[test]
fn prompts_are_scored_only_on_request() {
    let (mut conversation, _) = conversation(config(), ["Hello!"]);
    let events = conversation.stream("Hi.", TurnOptions::default()).expect("a turn");
    let scored = |event: &Result<ConversationEvent, Error>| {
        matches!(event, Ok(ConversationEvent::PromptLogprobs(_) | ConversationEvent::Logprobs(_)))
    };
    assert_eq!(events.filter(scored).count(), 0);
    assert_eq!(conversation.history()[1].content, Content::from("Hello!"));
}
