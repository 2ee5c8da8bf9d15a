//! Replies longer than the context, in a sliding window with attention sinks.

use lm_conversation::{
    ContextShift, Conversation, ConversationConfig, ConversationEvent, Engine, EngineSettings, FinishReason,
    Message, OnCancel, Overflow, Reply, SamplerParams, SessionConfig, TokenId, TurnOptions,
};
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{ConstraintSpec, GenerateParams, SpecialTokens, TokenKind};
use lm_template::Preface;

use crate::turns::fixture::{config, weather};
use crate::turns::overflow::rendered;

/// Context of [`endless`].
const WINDOWED: usize = 256;

/// An engine of a model whose tokens depend on all tokens before them.
fn random_engine() -> Engine {
    let settings = EngineSettings { max_context: Some(WINDOWED), ..EngineSettings::default() };
    Engine::new(loaded(FakeLm::random(11, tokenizer().logits_width())), settings).expect("an engine")
}

/// A session whose replies are text up to their token limit, or to where nothing but an end token is allowed.
fn endless(sampler: SamplerParams) -> SessionConfig {
    let tokenizer = tokenizer();
    let special =
        (0..tokenizer.vocab_size() as TokenId).filter(|&id| tokenizer.token_kind(id) != TokenKind::Text);
    let logit_bias = special.map(|id| (id, -1e4)).collect();
    SessionConfig { sampler: SamplerParams { logit_bias, ..sampler }, ..SessionConfig::default() }
}

fn windowed(engine: &Engine, sampler: SamplerParams) -> Conversation {
    let preface = Preface { messages: vec![Message::system("Be brief.")], ..Preface::default() };
    let config =
        ConversationConfig { overflow: Overflow::SlidingWindow, session: endless(sampler), ..config() };
    Conversation::new(engine, config.with_preface(preface)).expect("a conversation")
}

/// Runs a turn with a reply of `tokens` tokens; returns the ids of the reply, its text events, the shifts and
/// the reply. Fails when the reply continues past its limit.
fn run(
    conversation: &mut Conversation,
    message: &str,
    tokens: usize,
) -> (Vec<TokenId>, String, Vec<ContextShift>, Reply) {
    let options =
        TurnOptions { max_output_tokens: Some(tokens), logprobs: Some(0), ..TurnOptions::default() };
    let (mut ids, mut text, mut shifts) = (Vec::new(), String::new(), Vec::new());
    for event in conversation.stream(message, options).expect("a turn") {
        match event.expect("an event") {
            ConversationEvent::Logprobs(scored) => ids.push(scored.token.id),
            ConversationEvent::Text(piece) => text += &piece,
            ConversationEvent::ContextShift(shift) => shifts.push(shift),
            ConversationEvent::Finished(reply) => return (ids, text, shifts, reply),
            _ => {}
        }
        assert!(ids.len() <= tokens, "more than {tokens} tokens, after {} shifts", shifts.len());
    }
    panic!("no last event")
}

/// The rule in plain form: generate to the end of the context, drop the last token, and continue after the
/// sinks and the last tokens.
fn reference(engine: &Engine, sinks: &[TokenId], tokens: usize) -> (Vec<TokenId>, Vec<usize>) {
    let mut session = engine.session(endless(SamplerParams::default())).expect("a session");
    let (mut reply, mut prompt, mut lengths) = (Vec::<TokenId>::new(), sinks.to_vec(), Vec::new());
    loop {
        let room = WINDOWED - prompt.len();
        let missing = tokens - reply.len();
        let params =
            GenerateParams { max_output_tokens: Some(room.min(missing)), ..GenerateParams::default() };
        session.submit(&prompt, params).expect("a generation").into_text().expect("text");
        reply.extend(&session.tokens()[prompt.len()..]);
        if missing <= room {
            return (reply, lengths);
        }
        reply.pop();
        let start = reply.len() - (WINDOWED * 3 / 4 - sinks.len());
        let continues = |&index: &usize| {
            tokenizer().token_bytes(reply[index]).first().is_some_and(|byte| (0x80..0xC0).contains(byte))
        };
        let from = start + (start..start + 3).take_while(continues).count();
        prompt = [sinks, &reply[from..]].concat();
        lengths.push(reply.len() - from);
    }
}

#[test]
fn reply_longer_than_the_context_uses_a_window_with_sinks() {
    for tokens in [100, 230, 300, 1000] {
        let mut conversation = windowed(&random_engine(), SamplerParams::default());
        let sinks = conversation.render("Hi.", Default::default()).expect("a prompt").ids;
        let (ids, text, shifts, reply) = run(&mut conversation, "Hi.", tokens);
        let (expected, windows) = reference(&random_engine(), &sinks, tokens);
        assert_eq!(ids, expected, "{tokens}");
        assert_eq!(shifts.iter().map(|shift| shift.window_tokens).collect::<Vec<_>>(), windows);
        let left_out: usize = shifts.iter().map(|shift| shift.reply_tokens).sum();
        assert_eq!(conversation.tokens().len(), sinks.len() + tokens - left_out);
        assert!(conversation.tokens().starts_with(&sinks), "the sinks are the prompt");
        let first_full = WINDOWED - sinks.len();
        assert_eq!(shifts.is_empty(), tokens <= first_full, "{tokens}: {shifts:?}");
        for shift in &shifts {
            assert_eq!((shift.turns, shift.sink_tokens), (0, sinks.len()));
            let taken = shift.sink_tokens + shift.window_tokens;
            assert!((WINDOWED * 3 / 4 - 3..=WINDOWED * 3 / 4).contains(&taken), "{shift:?}");
        }
        // A quarter of the context is free after each.
        assert!(shifts.len() <= tokens / (WINDOWED / 4 - 1), "{}", shifts.len());
        let usage = reply.finish.usage;
        assert_eq!(reply.finish.reason, FinishReason::MaxOutputTokens);
        assert_eq!((usage.prompt_tokens, usage.output_tokens), (sinks.len(), tokens));
        // No character is split where the window moves.
        assert_eq!(text, tokenizer().decode(&ids, SpecialTokens::Keep), "{tokens}");
        assert_eq!(reply.text(), text);
        assert_eq!(conversation.history().len(), 2);
    }
}

#[test]
fn token_limit_counts_shifted_tokens() {
    let mut conversation = windowed(&random_engine(), SamplerParams::default());
    let (ids, _, shifts, reply) = run(&mut conversation, "Hi.", 500);
    assert!(shifts.len() > 2, "{shifts:?}");
    assert_eq!((ids.len(), reply.finish.reason), (500, FinishReason::MaxOutputTokens));
}

#[test]
fn earlier_turns_leave_the_window_first() {
    let mut conversation = windowed(&random_engine(), SamplerParams::default());
    run(&mut conversation, "First.", 20);
    run(&mut conversation, "Second.", 20);
    let whole = conversation.render("Third.", Default::default()).expect("a prompt").ids;
    let (ids, _, shifts, _) = run(&mut conversation, "Third.", 150);
    let [shift] = shifts[..] else { panic!("{shifts:?}") };
    assert_eq!((shift.turns, shift.reply_tokens), (2, 0));
    assert_eq!(shift.window_tokens, WINDOWED - whole.len() - 1);
    assert_eq!(ids.len(), 150);
    // They stay in the history, and out of later prompts.
    assert_eq!(conversation.history().len(), 6);
    let later = rendered(&conversation);
    assert!(later.contains("Be brief.") && later.contains("Third.") && !later.contains("Second."));
    let fork = conversation.fork().expect("a fork");
    assert_eq!(rendered(&fork), later);
    // The next turn works, although the reply was long.
    run(&mut conversation, "Fourth.", 30);
    assert_eq!(conversation.history().len(), 8);
}

#[test]
fn windowed_sampling_repeats_with_its_seed() {
    let sampler = |seed| SamplerParams { temperature: 1.0, seed, ..SamplerParams::default() };
    let reply = |seed| {
        let (ids, text, shifts, reply) = run(&mut windowed(&random_engine(), sampler(seed)), "Hi.", 600);
        assert!(shifts.len() > 3 && text == tokenizer().decode(&ids, SpecialTokens::Keep));
        (ids, reply.finish.seed)
    };
    let (drawn, seed) = reply(None);
    assert_eq!(reply(seed), (drawn.clone(), seed));
    assert_ne!(reply(seed.map(|seed| seed ^ 1)).0, drawn);
}

#[test]
fn windowed_reply_can_be_cancelled_and_dropped() {
    for on_cancel in [OnCancel::Rollback, OnCancel::KeepPartial] {
        let mut conversation = windowed(&random_engine(), SamplerParams::default());
        let options = TurnOptions { on_cancel, ..TurnOptions::default() };
        let mut turn = conversation.stream("Hi.", options).expect("a turn");
        let mut shifts = 0;
        while shifts < 3 {
            let event = turn.next().expect("it does not end").expect("an event");
            shifts += usize::from(matches!(event, ConversationEvent::ContextShift(_)));
        }
        turn.canceller().cancel();
        let ended = turn.into_reply();
        assert_eq!(ended.is_ok(), on_cancel == OnCancel::KeepPartial);
        assert_eq!(conversation.history().len(), if ended.is_ok() { 2 } else { 0 });
        let mut again = conversation.stream("Hi.", TurnOptions::default()).expect("a turn");
        assert!(again.any(|event| matches!(event, Ok(ConversationEvent::ContextShift(_)))));
        drop(again);
        run(&mut conversation, "Hi.", 10);
    }
}

#[test]
fn sinks_over_half_of_the_context_end_the_reply() {
    let mut conversation = windowed(&random_engine(), SamplerParams::default());
    let message = "a ".repeat(70);
    let sinks = conversation.render(message.as_str(), Default::default()).expect("a prompt").ids;
    assert!(sinks.len() > WINDOWED / 2);
    let (ids, text, shifts, reply) = run(&mut conversation, &message, 1000);
    assert_eq!((shifts, ids.len()), (vec![], WINDOWED - sinks.len()));
    assert_eq!((reply.finish.reason, reply.message.content.text()), (FinishReason::ContextFull, text));
}

#[test]
fn constraint_covers_text_outside_the_window() {
    let engine = random_engine();
    let counted = |count: usize| format!("(?s:.){{{count}}}END");
    let text = |conversation: &mut Conversation, constraint| {
        let options = TurnOptions {
            constraint,
            max_output_tokens: Some(3000),
            logprobs: Some(0),
            ..TurnOptions::default()
        };
        let turn = conversation.stream("Hi.", options).expect("a turn");
        let events: Vec<_> = turn.collect::<Result<_, _>>().expect("it ends");
        let shifts =
            events.iter().filter(|event| matches!(event, ConversationEvent::ContextShift(_))).count();
        let Some(ConversationEvent::Finished(reply)) = events.last() else { panic!("{events:?}") };
        (reply.text(), reply.finish.reason.clone(), shifts)
    };
    // The reply may end anywhere, and at last it must.
    let optional = format!("(?s:.){{0,900}}|{}", counted(900));
    let grammar = engine.compile(&ConstraintSpec::Regex(optional)).expect("it compiles");
    let mut conversation = windowed(&engine, SamplerParams::default());
    let (reply, reason, shifts) = text(&mut conversation, Some(grammar.start()));
    assert!((900..=903).contains(&reply.chars().count()), "{} characters", reply.chars().count());
    assert!(shifts > 3, "{shifts}");
    assert_eq!(reason, FinishReason::EndToken);
    // Where it may not end, it ends within the context.
    let whole = engine.compile(&ConstraintSpec::Regex("\"[^\"]{0,900}\"".to_owned())).expect("it compiles");
    let (reply, _, shifts) = text(&mut conversation, Some(whole.start()));
    assert!(reply.starts_with('"') && reply.ends_with('"') && shifts == 0, "{shifts}: {reply}");
}

#[test]
fn reply_with_tools_continues_in_a_window() {
    let config = ConversationConfig {
        overflow: Overflow::SlidingWindow,
        session: endless(SamplerParams::default()),
        ..config()
    };
    let settings = EngineSettings { max_context: Some(2 * WINDOWED), ..EngineSettings::default() };
    let engine = Engine::new(loaded(FakeLm::random(11, tokenizer().logits_width())), settings);
    let mut conversation = Conversation::new(&engine.expect("an engine"), config.with_preface(weather()))
        .expect("a conversation");
    let (ids, text, shifts, _) = run(&mut conversation, "Hi.", 900);
    assert!(shifts.len() > 2 && ids.len() == 900, "{shifts:?}");
    assert_eq!(text, tokenizer().decode(&ids, SpecialTokens::Keep));
}

#[test]
fn windowed_timing_counts_all_tokens() {
    for tokens in [100, 1000] {
        let (_, _, shifts, reply) =
            run(&mut windowed(&random_engine(), SamplerParams::default()), "Hi.", tokens);
        assert_eq!(reply.finish.timing.decoded_tokens, tokens - 1, "{shifts:?}");
    }
}

#[test]
fn prompt_is_scored_once_despite_window_shifts() {
    let mut conversation = windowed(&random_engine(), SamplerParams::default());
    let options =
        TurnOptions { max_output_tokens: Some(600), prompt_logprobs: Some(0), ..TurnOptions::default() };
    let turn = conversation.stream("Hi.", options).expect("a turn");
    // A reply that continues past its limit has more events.
    let events: Vec<_> = turn.take(2_000).collect::<Result<_, _>>().expect("it continues");
    assert!(matches!(events.last(), Some(ConversationEvent::Finished(_))), "{} events", events.len());
    let scored = events.iter().filter(|event| matches!(event, ConversationEvent::PromptLogprobs(_))).count();
    assert_eq!(scored, 1);
}

#[test]
fn windowed_reply_continues_whole_or_not_at_all() {
    let more = || TurnOptions { max_output_tokens: Some(5), ..TurnOptions::default() };
    let mut conversation = windowed(&random_engine(), SamplerParams::default());
    run(&mut conversation, "Hi.", 300);
    let before = conversation.history();
    let error = conversation.continue_reply(more()).expect_err("it is longer than the context");
    assert!(
        matches!(error, lm_conversation::Error::Session(lm_session::Error::PromptTooLong { .. })),
        "{error}"
    );
    assert_eq!(conversation.history(), before);
    // Only earlier turns have left this one.
    let mut conversation = windowed(&random_engine(), SamplerParams::default());
    run(&mut conversation, "First.", 20);
    run(&mut conversation, "Second.", 20);
    let (_, text, shifts, _) = run(&mut conversation, "Third.", 150);
    assert_eq!((shifts.len(), shifts[0].reply_tokens), (1, 0));
    let reply = conversation.continue_reply(more()).expect("a turn").into_reply().expect("it continues");
    assert!(reply.text().starts_with(&text));
}

#[test]
fn reply_share_is_bounded_by_limit_and_quarter_context() {
    let share = |limit| Overflow::reply_share(400, limit);
    assert_eq!([share(None), share(Some(40)), share(Some(300))], [100, 40, 100]);
}
