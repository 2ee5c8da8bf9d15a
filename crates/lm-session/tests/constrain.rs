//! Constrained generations through the public API of the engine.

use crate::support;
use crate::support::random_engine;
use lm_session::testing::{scripted_engine, tokenizer};
use lm_session::{
    ConstraintSpec, Engine, EngineSettings, FinishReason, Finished, GenerateParams, SamplerParams, Session,
    SessionConfig, SessionEvent, TokenId,
};

/// Returns ids, text and outcome of a generation of at most `max_output_tokens` under `spec`.
fn generate(
    engine: &Engine,
    spec: &ConstraintSpec,
    sampler: SamplerParams,
    max_output_tokens: usize,
) -> (Vec<TokenId>, String, Finished) {
    let (mut session, params) = prefilled(engine, spec, sampler, max_output_tokens);
    outcome(&mut session, params)
}

/// Creates a session that has prefilled a prompt, and the parameters of a generation under `spec`.
fn prefilled(
    engine: &Engine,
    spec: &ConstraintSpec,
    sampler: SamplerParams,
    max_output_tokens: usize,
) -> (Session, GenerateParams) {
    let constraint = Some(engine.compile(spec).unwrap().start());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&support::prompt(1, 5)).unwrap();
    let params = GenerateParams {
        sampler: Some(sampler),
        constraint,
        max_output_tokens: Some(max_output_tokens),
        ..GenerateParams::default()
    };
    (session, params)
}

fn outcome(session: &mut Session, params: GenerateParams) -> (Vec<TokenId>, String, Finished) {
    let (mut ids, mut whole) = (Vec::new(), String::new());
    for event in session.generate(params) {
        match event.unwrap() {
            SessionEvent::Token { id, text, .. } => {
                ids.push(id);
                whole += &text;
            }
            SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) => {}
            SessionEvent::Finished(finished) => return (ids, whole, finished),
        }
    }
    panic!("a generation has a last event");
}

fn lark(text: &str, markers: &[&str]) -> ConstraintSpec {
    ConstraintSpec::Lark { text: text.to_owned(), markers: markers.iter().map(|m| m.to_string()).collect() }
}

fn random(seed: u64) -> SamplerParams {
    SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() }
}

#[test]
fn forced_tokens_are_not_sampled() {
    let engine = scripted_engine(["never asked"]);
    let spec = lark(
        "start: marker_0 \"{\\\"name\\\": \\\"\" (\"one\"|\"two\") \"\\\"}\" marker_1",
        &["<tool_call>", "<none>"],
    );
    let (ids, text, finished) = generate(&engine, &spec, SamplerParams::default(), 100);
    assert_eq!(Some(ids[0]), tokenizer().token_id("<tool_call>"));
    assert!(
        ["one", "two"].iter().any(|name| text == format!("<tool_call>{{\"name\": \"{name}\"}}<none>")),
        "{text}"
    );
    assert_eq!(finished.reason, FinishReason::EndToken);
    assert!(finished.usage.forced_tokens >= ids.len() - 3, "{:?} of {ids:?}", finished.usage);
}

#[test]
fn random_text_matches_its_grammar() {
    let engine = random_engine(EngineSettings::default());
    for (seed, spec) in (0..5).flat_map(|seed| {
        [
            (seed, ConstraintSpec::Regex("[a-f]{3,9}-[0-9]+x".to_owned())),
            (seed, ConstraintSpec::Choice(vec!["yes".to_owned(), "yes (or so)".to_owned(), "no".to_owned()])),
        ]
    }) {
        let (_, text, finished) = generate(&engine, &spec, random(seed), 400);
        let accepted = engine.compile(&spec).unwrap().check(&text).unwrap();
        assert_eq!(finished.reason, FinishReason::EndToken, "{text}");
        assert_eq!(accepted, lm_session::Acceptance::Accepted, "{text}");
    }
}

/// A tool call between markers, with a required array of objects.
fn call() -> ConstraintSpec {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 3},
            "days": {"type": "array", "minItems": 2, "items": {
                "type": "object", "properties": {"day": {"type": "integer"}, "note": {"type": ["string", "null"]}},
                "required": ["day"],
            }},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "days", "unit"],
        "additionalProperties": false,
    });
    let rule = format!("start: marker_0 \"\\n\" %json {schema} \"\\n\" marker_1");
    lark(&rule, &["<tool_call>", "</tool_call>"])
}

#[test]
fn constrained_text_ends_within_its_tokens() {
    let engine = random_engine(EngineSettings::default());
    let compiled = engine.compile(&call()).unwrap();
    let mut steered = 0;
    for seed in 0..20 {
        let (ids, text, finished) = generate(&engine, &call(), random(seed), 128);
        assert!(ids.len() <= 128);
        assert_eq!(compiled.check(&text).unwrap(), lm_session::Acceptance::Accepted, "{seed}: {text}");
        steered += usize::from(finished.steered.is_some());
    }
    assert!(steered > 0, "random text ends in time by itself: nothing was tested");
}

#[test]
fn tokens_starting_too_long_a_part_are_rejected() {
    let (engine, tokenizer) = (random_engine(EngineSettings::default()), tokenizer());
    let id = |letter: &str| tokenizer.token_id(letter).unwrap();
    // Four rejected tokens before each of twelve, which is more than one position may reject.
    let mut logit_bias: Vec<_> = ["b", "c", "d", "e"].map(|letter| (id(letter), 200.0)).into();
    logit_bias.push((id("a"), 100.0));
    let sampler = SamplerParams { logit_bias, ..SamplerParams::default() };
    let spec = ConstraintSpec::Regex("(a|[b-e]{20})*".to_owned());
    let (_, text, finished) = generate(&engine, &spec, sampler, 12);
    assert_eq!((text.as_str(), finished.reason), ("aaaaaaaaaaaa", FinishReason::MaxOutputTokens));
    assert_eq!(finished.steered.map(|steered| steered.tokens), Some(12));
}

#[test]
fn complete_text_ends_where_the_model_prefers_an_excluded_token() {
    let (engine, tokenizer) = (random_engine(EngineSettings::default()), tokenizer());
    let bias = |letters: &[(&str, f32)]| SamplerParams {
        logit_bias: letters
            .iter()
            .map(|(letter, bias)| (tokenizer.token_id(letter).unwrap(), *bias))
            .collect(),
        ..SamplerParams::default()
    };
    let text = |regex: &str, sampler| {
        let (_, text, finished) = generate(&engine, &ConstraintSpec::Regex(regex.to_owned()), sampler, 12);
        (text, finished.reason, finished.masked.map_or(0, |masked| masked.ended))
    };
    let prefers_x = || bias(&[("x", 200.0), ("a", 100.0)]);
    assert_eq!(text("a{3,9}", prefers_x()), ("aaa".to_owned(), FinishReason::EndToken, 1));
    let whole = ("a".repeat(9), FinishReason::EndToken, 0);
    assert_eq!(text("a{3,9}", bias(&[("a", 100.0)])), whole);
    // An end that a filter excludes is not taken.
    let mut endless = prefers_x();
    endless.logit_bias.extend(tokenizer.end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)));
    assert_eq!(text("a{3,20}", endless).0, "a".repeat(12));
    // Free text, which lacks only an `x`, goes on.
    let (free, reason, _) = text("[^x]*", prefers_x());
    assert_eq!((free, reason), ("a".repeat(12), FinishReason::MaxOutputTokens));
    // Nor does a text end where the mask allows a large part of the vocabulary.
    let lower = text("[a-z ,]*", bias(&[("X", 200.0), ("a", 100.0)]));
    assert_eq!((lower.0, lower.2), ("a".repeat(12), 0));
    // The first token has no text before it.
    assert_eq!(text("(a{2})?", prefers_x()).0, "aa");
    // A preferred token that begins like the further part is no end: the part comes in shorter tokens.
    let of_two_letters = |id: u32| {
        let bytes = tokenizer.token_bytes(id);
        let letters = bytes.len() > 1 && bytes.iter().all(u8::is_ascii_lowercase) && bytes[0] != bytes[1];
        letters.then(|| (id, char::from(bytes[0]).to_string()))
    };
    let (longer, letter) =
        (0..tokenizer.vocab_size() as u32).find_map(of_two_letters).expect("a token such as `an`");
    let mut spelled = bias(&[(&letter, 100.0)]);
    spelled.logit_bias.push((longer, 200.0));
    assert_eq!(text(&format!("{letter}{{3,9}}"), spelled).0, letter.repeat(9));
}

#[test]
fn tokens_from_the_first_steered_one_are_marked() {
    let engine = random_engine(EngineSettings::default());
    let mut marked = 0;
    for seed in 0..20 {
        let sampler = SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() };
        let (mut session, params) = prefilled(&engine, &call(), sampler, 70);
        let events: Vec<_> = session.generate(params).map(|event| event.unwrap()).collect();
        let steered: Vec<bool> = events
            .iter()
            .filter_map(|event| match event {
                SessionEvent::Token { steered, .. } => Some(*steered),
                _ => None,
            })
            .collect();
        let Some(SessionEvent::Finished(finished)) = events.last() else { panic!("{events:?}") };
        let from = finished.steered.map_or(steered.len(), |steered| steered.from);
        let expected: Vec<bool> = (0..steered.len()).map(|index| index >= from).collect();
        assert_eq!(steered, expected, "seed {seed}");
        marked += usize::from(finished.steered.is_some());
    }
    assert!(marked > 0, "no text was steered");
}

#[test]
fn too_small_budget_error_names_the_minimum() {
    let engine = random_engine(EngineSettings::default());
    let constraint = || Some(engine.compile(&call()).unwrap().start());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&support::prompt(1, 5)).unwrap();
    let mut begin = |max| {
        session.submit(
            &session.tokens(),
            GenerateParams {
                constraint: constraint(),
                max_output_tokens: Some(max),
                ..GenerateParams::default()
            },
        )
    };
    let needed = match begin(20) {
        Err(lm_session::Error::BudgetTooSmall { needed_tokens: needed, available_tokens: 20 }) => needed,
        other => panic!("{other:?}"),
    };
    assert!((50..100).contains(&needed), "{needed}");
    assert!(begin(needed).is_ok());
    let (_, text, finished) = generate(&engine, &call(), random(3), needed);
    assert_eq!(finished.reason, FinishReason::EndToken, "{text}");
    assert!(finished.steered.is_some());
}

#[test]
fn completion_beyond_search_comes_from_the_grammar() {
    let engine = random_engine(EngineSettings::default());
    let tree = "node: \"{\\\"name\\\":\" NAME \",\\\"nodes\\\":[\" (node (\",\" node)*)? \"]}\"
NAME: /\"[a-f]{60}-[0-9]{60}\"/
start: \"[\" node \",\" node \",\" node (\",\" node)* \"]\"";
    for (seed, spec) in [
        ConstraintSpec::Regex("([a-f][0-9]){400}".to_owned()),
        ConstraintSpec::Regex("(?s:.{0,300})(x|y)[0-9]{30}".to_owned()),
        lark(tree, &[]),
        lark("start: (\"(\" start \")\" start) | A\nA: /[a-z]{200}/ & /.*q.*z/ & ~/.*a.*/", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let compiled = engine.compile(&spec).unwrap();
        let mut session = engine.session(SessionConfig::default()).unwrap();
        session.prefill(&support::prompt(1, 5)).unwrap();
        let params = GenerateParams {
            constraint: Some(compiled.start()),
            max_output_tokens: Some(5),
            ..GenerateParams::default()
        };
        let Err(lm_session::Error::BudgetTooSmall { needed_tokens, available_tokens: 5 }) =
            session.submit(&session.tokens(), params)
        else {
            panic!("{spec:?} fits into five tokens")
        };
        for room in [needed_tokens, needed_tokens + 1, needed_tokens + 700] {
            let (ids, text, finished) = generate(&engine, &spec, random(seed as u64), room);
            assert_eq!(compiled.check(&text).unwrap(), lm_session::Acceptance::Accepted, "{text}");
            assert!(ids.len() <= room && finished.steered.is_none_or(|steered| steered.unfound == 0));
        }
    }
}

/// Digits, at least `least` of them; the constraint has no completion of its own.
#[derive(Clone, Debug)]
struct Digits {
    written: usize,
    least: usize,
    /// Delay of the first mask.
    delay: Option<std::time::Duration>,
}

impl lm_session::Constraint for Digits {
    fn mask(&mut self, mask: &mut lm_session::TokenMask) -> lm_session::Result<()> {
        self.delay.take().into_iter().for_each(std::thread::sleep);
        ("0123456789".bytes()).for_each(|digit| mask.allow(TokenId::from(digit)));
        Ok(())
    }
    fn commit(&mut self, _: TokenId) -> lm_session::Result<()> {
        self.written += 1;
        Ok(())
    }
    fn rollback(&mut self, tokens: usize) -> lm_session::Result<()> {
        self.written -= tokens;
        Ok(())
    }
    fn ending(&mut self) -> lm_session::Result<lm_session::Ending> {
        let ends = self.written >= self.least;
        Ok(if ends { lm_session::Ending::Allowed } else { lm_session::Ending::Forbidden })
    }
    fn fork(&self) -> Box<dyn lm_session::Constraint> {
        Box::new(self.clone())
    }
}

/// Last event of a generation of at most `max` tokens under this constraint.
fn digits(engine: &Engine, constraint: Digits, max: usize) -> lm_session::Result<SessionEvent> {
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&support::prompt(1, 5)).unwrap();
    let params = GenerateParams {
        constraint: Some(Box::new(constraint)),
        max_output_tokens: Some(max),
        ..GenerateParams::default()
    };
    session.generate(params).last().unwrap()
}

/// The search for a completion has 50 ms; a busy machine may take them before its first step.
#[test]
fn late_completion_is_used() {
    let engine = random_engine(EngineSettings::default());
    let delay = Some(std::time::Duration::from_millis(80));
    let last = digits(&engine, Digits { written: 0, least: 5, delay }, 100);
    assert!(matches!(last, Ok(SessionEvent::Finished(_))), "{last:?}");
}

#[test]
fn cut_text_without_completion_is_an_error() {
    let engine = random_engine(EngineSettings::default());
    let end = |least, max| digits(&engine, Digits { written: 0, least, delay: None }, max);
    assert!(matches!(end(800, 100), Err(lm_session::Error::TextCutOff { output_tokens: 100 })));
    assert!(matches!(end(800, 900), Ok(SessionEvent::Finished(_))));
    assert!(matches!(end(5, 100), Ok(SessionEvent::Finished(_))));
}

#[test]
fn call_that_cannot_end_is_not_started() {
    let engine = random_engine(EngineSettings::default());
    let spec = lark(
        "start: TEXT (marker_0 \"a long way to the end of it\" marker_1)?\nTEXT: /[a-z ]*/",
        &["<tool_call>", "</tool_call>"],
    );
    for seed in 0..20 {
        let (ids, text, finished) = generate(&engine, &spec, random(seed), 12);
        assert!(!text.contains("<tool_call>"), "{seed}: {text}");
        assert!(ids.len() == 12 || finished.reason == FinishReason::EndToken);
    }
}

#[test]
fn forced_tokens_run_in_one_forward_pass() {
    let (engine, model) = support::hooked_engine(EngineSettings::default(), |_| Ok(()));
    let spec = lark("start: (\"a\" | \"b\") \" then a long text that is forced.\" (\"x\" | \"y\")", &[]);
    let (ids, _, finished) = generate(&engine, &spec, random(1), 200);
    let rows: Vec<usize> = model.calls().iter().map(|call| call[0].len()).collect();
    // The prompt, the forced tokens together with the token before them, and the end.
    assert!(rows.len() <= 4 && rows.iter().any(|&rows| rows > 20), "{rows:?}");
    assert!(finished.usage.forced_tokens > 20 && finished.usage.output_tokens == ids.len());
    assert_eq!(finished.usage.prompt_tokens, 5);
}

#[test]
fn text_forced_before_the_prefill_is_not_the_first_token() {
    let spec = lark("start: \"forced: \" (\"a\" | \"b\") \" end\"", &[]);
    let (_, _, finished) = generate(&random_engine(EngineSettings::default()), &spec, random(1), 200);
    let (usage, timing) = (finished.usage, finished.timing);
    assert!(timing.ttft.unwrap() >= timing.prefill, "{timing:?}");
    assert!(timing.decoded_tokens < usage.output_tokens - "forced: ".len() / 4, "{usage:?}, {timing:?}");
}

#[test]
fn preempted_constrained_requests_end_as_if_alone() {
    let settings =
        EngineSettings { kv_cache_tokens: Some(128), prefill_chunk: 8, ..EngineSettings::default() };
    let spec = ConstraintSpec::Regex("([a-f]{1,5} and then some )*end".to_owned());
    let alone: Vec<_> =
        (0..3).map(|seed| generate(&random_engine(settings.clone()), &spec, random(seed), 90).0).collect();
    let engine = random_engine(settings);
    // All sessions hold pages until the last generation has ended, together more than the pool has.
    let mut sessions: Vec<_> = (0..3).map(|seed| prefilled(&engine, &spec, random(seed), 90)).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let running = sessions.iter_mut().map(|(session, params)| {
            let params = std::mem::take(params);
            scope.spawn(move || outcome(session, params).0)
        });
        let running: Vec<_> = running.collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
    assert!(engine.cache_stats().unwrap().evicted_pages > 0, "the pool had room for all: nothing was tested");
}

#[test]
fn session_continues_after_a_cancelled_text() {
    let engine = random_engine(EngineSettings::default());
    let constraint = || Some(engine.compile(&ConstraintSpec::Regex("[a-z]*".to_owned())).unwrap().start());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&support::prompt(1, 5)).unwrap();
    let cancel = lm_session::CancelHandle::new();
    // It does not end by itself before it is cancelled.
    let logit_bias = engine.tokenizer().end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
    let sampler = Some(SamplerParams { logit_bias, ..SamplerParams::default() });
    let params = GenerateParams {
        sampler,
        constraint: constraint(),
        cancel: cancel.clone(),
        ..GenerateParams::default()
    };
    let mut events = session.generate(params);
    events.next().unwrap().unwrap();
    cancel.cancel();
    let last = events.last().unwrap().unwrap();
    assert!(
        matches!(last, SessionEvent::Finished(Finished { reason: FinishReason::Cancelled, .. })),
        "{last:?}"
    );
    let mut fork = session.fork().unwrap();
    let params =
        GenerateParams { constraint: constraint(), max_output_tokens: Some(4), ..GenerateParams::default() };
    assert!(fork.generate(params).into_text().unwrap().0.bytes().all(|byte| byte.is_ascii_lowercase()));
}

#[test]
fn invalid_grammars_are_errors_by_kind() {
    use lm_session::GrammarErrorKind::{InvalidGrammar, TooLarge};
    let engine = random_engine(EngineSettings::default());
    let schema = |schema: serde_json::Value| lark(&format!("start: %json {schema}"), &[]);
    let mut deep = serde_json::json!({});
    (0..300).for_each(|_| deep = serde_json::json!({"items": deep.take()}));
    for (spec, expected) in [
        (schema(serde_json::json!({"properties": {"a/b": {"not": {"type": "null"}}}})), InvalidGrammar),
        (schema(serde_json::json!({"type": "string", "minLength": 3, "maxLength": 2})), InvalidGrammar),
        (schema(deep), TooLarge),
        (lark("start: (\"a\"", &[]), InvalidGrammar),
        (lark("start: other", &[]), InvalidGrammar),
        (ConstraintSpec::Regex("a(".to_owned()), InvalidGrammar),
        (ConstraintSpec::Regex("(".repeat(9000)), TooLarge),
    ] {
        match engine.compile(&spec).unwrap_err() {
            lm_session::Error::Grammar { kind, message } => assert_eq!(kind, expected, "{message}"),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn grammar_memory_is_that_of_its_automata() {
    let engine = random_engine(EngineSettings::default());
    let bytes =
        |regex: &str| engine.compile(&ConstraintSpec::Regex(regex.to_owned())).unwrap().memory_bytes();
    assert!(bytes("[0-9]{2,3}") < 1 << 20);
    // One state for each of the last letters.
    assert!(bytes("(a|b)*a(a|b){14}") > 4 << 20);
}

#[test]
fn fully_forced_text_needs_its_tokens() {
    let engine = scripted_engine(["never asked"]);
    let text = "one two three four five six seven eight nine ten";
    for ending in ["", " marker_0"] {
        let spec = lark(&format!("start: \"{text}\"{ending}"), &["<|im_end|>"]);
        let needed = rejected(&engine, &spec, 3);
        assert_eq!(rejected(&engine, &spec, needed - 1), needed);
        let (_, whole, finished) = generate(&engine, &spec, SamplerParams::default(), needed);
        assert_eq!((whole.as_str(), finished.reason), (text, FinishReason::EndToken), "{ending:?}");
    }
}

/// The tokens in the error of a rejected generation of at most `max_output_tokens`.
fn rejected(engine: &Engine, spec: &ConstraintSpec, max_output_tokens: usize) -> usize {
    let constraint = Some(engine.compile(spec).unwrap().start());
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&support::prompt(1, 5)).unwrap();
    let params =
        GenerateParams { constraint, max_output_tokens: Some(max_output_tokens), ..Default::default() };
    match session.submit(&session.tokens(), params) {
        Err(lm_session::Error::BudgetTooSmall { needed_tokens, .. }) => needed_tokens,
        other => panic!("{other:?}"),
    }
}
