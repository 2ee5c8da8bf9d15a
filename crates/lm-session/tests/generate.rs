//! Text, stop rules and statistics of one generation.

use crate::support;
use crate::support::{ids, random_engine};
use lm_session::testing::{Reply, loaded, scripted_engine, tokenizer};
use lm_session::{
    CancelHandle, ConstraintSpec, Engine, EngineSettings, Error, FinishReason, GenerateParams, SamplerParams,
    Session, SessionConfig, SessionEvent,
};

/// Creates a session that has prefilled a prompt and replies with `reply`.
fn asked(reply: impl Into<Reply>, config: SessionConfig) -> Session {
    let engine = scripted_engine([reply.into()]);
    let mut session = engine.session(config).unwrap();
    session.prefill(&engine.tokenizer().encode("question?").unwrap()).unwrap();
    session
}

fn stop(stop: &[&str]) -> SessionConfig {
    SessionConfig { stop: stop.iter().map(|stop| stop.to_string()).collect(), ..SessionConfig::default() }
}

#[test]
fn end_token_is_part_of_the_session() {
    let mut session = asked("hello world", SessionConfig::default());
    let prompt = session.tokens().len();
    let (text, finished) = session.generate(GenerateParams::default()).into_text().unwrap();
    assert_eq!((text.as_str(), finished.reason), ("hello world", FinishReason::EndToken));
    let reply = [tokenizer().encode("hello world").unwrap(), vec![tokenizer().end_ids()[0]]].concat();
    assert_eq!(session.tokens()[prompt..], reply);
    assert_eq!(finished.usage.output_tokens, reply.len());
}

#[test]
fn text_has_only_whole_characters() {
    let mut session = asked("zwei € 😀", SessionConfig::default());
    let texts: Vec<String> = session
        .generate(GenerateParams::default())
        .filter_map(|event| match event.unwrap() {
            SessionEvent::Token { text, .. } => Some(text),
            SessionEvent::Prefill(_) | SessionEvent::PromptLogprobs(_) | SessionEvent::Finished(_) => None,
        })
        .collect();
    assert_eq!(texts.concat(), "zwei € 😀");
    assert!(texts.len() > texts.iter().filter(|text| !text.is_empty()).count(), "{texts:?}");
}

#[test]
fn cut_character_becomes_one_replacement() {
    let whole = tokenizer().encode("a€").unwrap();
    let end = tokenizer().end_ids()[0];
    for (kept, ended) in [(whole.len() - 1, true), (whole.len() - 2, true), (whole.len() - 1, false)] {
        let mut ids = whole[..kept].to_vec();
        let max_output_tokens = (!ended).then_some(ids.len());
        ids.push(end);
        let mut session = asked(ids, SessionConfig::default());
        let params = GenerateParams { max_output_tokens, ..GenerateParams::default() };
        let (text, finished) = session.generate(params).into_text().unwrap();
        assert_eq!(text, "a\u{FFFD}", "{kept} of {} tokens", whole.len());
        assert_eq!(finished.reason == FinishReason::EndToken, ended);
    }
}

#[test]
fn stop_string_is_found_at_every_split() {
    // One byte per token, and then whole tokens: the cut is at every position.
    let text = "the world ENDs here";
    let byte_ids: Vec<u32> = text.bytes().map(u32::from).collect();
    for stop_text in ["END", "E", "s h", "world", "the", "e"] {
        let mut session = asked(byte_ids.clone(), stop(&["nowhere", stop_text]));
        let (got, finished) = session.generate(GenerateParams::default()).into_text().unwrap();
        assert_eq!(got, text[..text.find(stop_text).unwrap()], "{stop_text}");
        assert_eq!(finished.reason, FinishReason::StopString(stop_text.to_owned()));
        let end = text.find(stop_text).unwrap() + stop_text.len();
        assert_eq!(finished.usage.output_tokens, end, "tokens up to the stop string's last");
    }
    for stop_text in ["wor", "rld EN", "o w", "ing"] {
        let reply = "hello world ENDing";
        let mut session = asked(reply, stop(&[stop_text]));
        let (got, _) = session.generate(GenerateParams::default()).into_text().unwrap();
        assert_eq!(got, reply[..reply.find(stop_text).unwrap()], "{stop_text}");
    }
}

#[test]
fn stop_string_across_the_continued_text_is_found() {
    let output: Vec<u32> = "one END two".bytes().map(u32::from).collect();
    for kept in ["one E".len(), "one EN".len()] {
        let engine = scripted_engine([output.clone()]);
        let mut session = engine.session(stop(&["END"])).unwrap();
        let prompt = [engine.tokenizer().encode("question?").unwrap(), output[..kept].to_vec()].concat();
        let params = GenerateParams { continued: kept, ..GenerateParams::default() };
        let (rest, finished) = session.submit(&prompt, params).unwrap().into_text().unwrap();
        assert_eq!(
            (rest.as_str(), finished.reason),
            ("", FinishReason::StopString("END".to_owned())),
            "{kept} tokens kept"
        );
    }
}

#[test]
fn partial_stop_string_is_output_at_the_end() {
    for max_output_tokens in [None, Some(5)] {
        let bytes: Vec<u32> =
            b"abcEN".iter().copied().map(u32::from).chain([tokenizer().end_ids()[0]]).collect();
        let mut session = asked(bytes, SessionConfig { max_output_tokens, ..stop(&["END"]) });
        let (text, finished) = session.generate(GenerateParams::default()).into_text().unwrap();
        assert_eq!(text, "abcEN", "{:?}", finished.reason);
    }
}

#[test]
fn stop_strings_of_session_and_request_combine() {
    let mut session = asked("one two three", stop(&["three"]));
    let params = GenerateParams { stop: vec!["two".to_owned()], ..GenerateParams::default() };
    assert_eq!(session.generate(params).into_text().unwrap().0, "one ");
}

#[test]
fn stop_id_ends_a_generation_without_text() {
    let mut session = asked("abc", SessionConfig { stop_ids: vec![b'b'.into()], ..SessionConfig::default() });
    let (text, finished) = session.generate(GenerateParams::default()).into_text().unwrap();
    assert_eq!((text.as_str(), finished.reason), ("a", FinishReason::EndToken));
    assert_eq!(session.tokens().last(), Some(&b'b'.into()));
}

#[test]
fn limits_end_a_generation() {
    for (max_output_tokens, output_tokens, reason) in [
        (Some(0), 0, FinishReason::MaxOutputTokens),
        (Some(3), 3, FinishReason::MaxOutputTokens),
        (None, 56, FinishReason::ContextFull),
    ] {
        let settings = EngineSettings { max_context: Some(64), ..EngineSettings::default() };
        let engine = random_engine(settings);
        let mut session = engine.session(SessionConfig::default()).unwrap();
        session.prefill(&[1; 8]).unwrap();
        // The random model may sample an end token: forbid it.
        let forbid = tokenizer().end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
        let sampler = Some(SamplerParams { logit_bias: forbid, ..SamplerParams::default() });
        let params = GenerateParams { max_output_tokens, sampler, ..GenerateParams::default() };
        let (_, finished) = session.generate(params).into_text().unwrap();
        assert_eq!((finished.usage.output_tokens, finished.reason), (output_tokens, reason));
        assert_eq!(session.tokens().len(), 8 + output_tokens);
    }
}

#[test]
fn logprobs_are_of_the_sampled_distribution() {
    let engine = random_engine(EngineSettings { max_context: Some(64), ..EngineSettings::default() });
    let regex = ConstraintSpec::Regex("ab[a-f]{6}yz".to_owned());
    for constrained in [false, true] {
        let constraint = || constrained.then(|| engine.compile(&regex).unwrap().start());
        let tokens = |logprobs| -> Vec<_> {
            let mut session = engine.session(SessionConfig::default()).unwrap();
            session.prefill(&[1; 8]).unwrap();
            let params = GenerateParams {
                constraint: constraint(),
                logprobs,
                max_output_tokens: Some(12),
                ..Default::default()
            };
            let events = session.generate(params).map(Result::unwrap);
            events
                .filter_map(|event| match event {
                    SessionEvent::Token { id, logprobs, .. } => Some((id, logprobs)),
                    SessionEvent::Prefill(_)
                    | SessionEvent::PromptLogprobs(_)
                    | SessionEvent::Finished(_) => None,
                })
                .collect()
        };
        let plain = tokens(None);
        assert!(plain.iter().all(|(_, logprobs)| logprobs.is_none()));
        let scored = tokens(Some(3));
        assert_eq!(
            scored.iter().map(|(id, _)| id).collect::<Vec<_>>(),
            plain.iter().map(|(id, _)| id).collect::<Vec<_>>()
        );
        // The end token after them is not forced where the model has several.
        for (index, (id, logprobs)) in scored.iter().enumerate().take(10) {
            let logprobs = logprobs.as_ref().unwrap();
            assert_eq!(
                logprobs.top.first(),
                Some(&(*id, logprobs.logprob)),
                "greedy takes the most probable token"
            );
            let forced = constrained && !(2..8).contains(&index);
            assert_eq!(
                (logprobs.logprob == 0.0, logprobs.top.len()),
                (forced, if forced { 1 } else { 3 }),
                "{index}"
            );
        }
    }
}

#[test]
fn invalid_request_is_an_error_and_changes_nothing() {
    let settings = EngineSettings { max_context: Some(64), ..EngineSettings::default() };
    let engine = random_engine(settings);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    assert!(matches!(session.prefill(&[]), Err(Error::EmptyPrompt)));
    let error = support::last_error(session.generate(GenerateParams::default()));
    assert!(matches!(error, Error::EmptyPrompt));
    session.prefill(&[1, 2]).unwrap();
    let too_long = session.sync(&[7; 65], &CancelHandle::new());
    assert!(matches!(too_long, Err(Error::PromptTooLong { prompt_tokens: 65, context_tokens: 64 })));
    assert!(matches!(session.prefill(&[7; 63]), Err(Error::PromptTooLong { prompt_tokens: 65, .. })));
    let sampler = Some(SamplerParams { temperature: -1.0, ..SamplerParams::default() });
    let error =
        support::last_error(session.generate(GenerateParams { sampler, ..GenerateParams::default() }));
    assert!(matches!(error, Error::InvalidSampler { field: "temperature", .. }));
    let error = support::last_error(
        session.generate(GenerateParams { stop: vec![String::new()], ..GenerateParams::default() }),
    );
    assert!(matches!(error, Error::EmptyStopString { index: 0 }));
    assert_eq!(session.tokens(), [1, 2]);
    assert!(matches!(engine.session(stop(&["", "a"])), Err(Error::EmptyStopString { index: 0 })));
}

#[test]
fn equal_seed_gives_equal_tokens() {
    let engine = random_engine(EngineSettings::default());
    let sample = |seed| {
        let sampler = SamplerParams { temperature: 1.0, seed: Some(seed), ..SamplerParams::default() };
        let config = SessionConfig { sampler, max_output_tokens: Some(20), ..SessionConfig::default() };
        let mut session = engine.session(config).unwrap();
        session.prefill(&[5, 6, 7]).unwrap();
        ids(session.generate(GenerateParams::default())).unwrap()
    };
    assert_eq!(sample(1), sample(1));
    assert_ne!(sample(1), sample(2));
}

#[test]
fn statistics_cover_the_turn() {
    let engine = scripted_engine(["hello", "hello"]);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let none = CancelHandle::new();
    let first = session.sync(&[1, 2, 3, 4], &none).unwrap();
    assert_eq!((first.cached_tokens, first.prefilled_tokens), (0, 4));
    let (_, finished) = session.generate(GenerateParams::default()).into_text().unwrap();
    assert_eq!((finished.usage.prompt_tokens, finished.usage.cached_tokens), (4, 0));
    assert_eq!(finished.timing.prefilled_tokens, 4);
    assert_eq!(finished.timing.decoded_tokens, finished.usage.output_tokens - 1);
    assert!(finished.timing.prefill >= first.elapsed);
    assert!(finished.timing.ttft.unwrap() >= finished.timing.prefill);

    // The next turn: all but the end token is cached; the end token and the new ones run.
    let cached = session.tokens().len() - 1;
    let next = [session.tokens(), vec![8, 9]].concat();
    let second = session.sync(&next, &none).unwrap();
    assert_eq!((second.cached_tokens, second.prefilled_tokens), (cached, 3));
    let (_, finished) = session.generate(GenerateParams::default()).into_text().unwrap();
    assert_eq!((finished.usage.prompt_tokens, finished.usage.cached_tokens), (next.len(), cached));
    assert_eq!(finished.timing.prefilled_tokens, 3);
}

#[test]
fn generation_config_adds_end_ids() {
    let model = lm_session::testing::FakeLm::scripted(&tokenizer(), ["ab!c"]);
    let mut loaded = loaded(model);
    loaded.generation_config.eos_token_ids = vec![b'!'.into()];
    let engine = Engine::new(loaded, EngineSettings::default()).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    session.prefill(&[1]).unwrap();
    assert_eq!(session.generate(GenerateParams::default()).into_text().unwrap().0, "ab");
}

#[test]
fn continued_output_equals_an_uninterrupted_one() {
    let engine = random_engine(EngineSettings::default());
    let spec = ConstraintSpec::Regex("[a-z€é ]{3,60}\\.".to_owned());
    for seed in 0..6 {
        let sampler = SamplerParams {
            presence_penalty: 3.0,
            penalty_window: Some(20),
            seed: Some(seed),
            ..SamplerParams::default()
        };
        let params = |constrained: bool, continued| GenerateParams {
            sampler: Some(sampler.clone()),
            max_output_tokens: Some(40),
            constraint: constrained.then(|| engine.compile(&spec).unwrap().start()),
            continued,
            ..GenerateParams::default()
        };
        for constrained in [false, true] {
            let mut session = engine.session(SessionConfig::default()).unwrap();
            session.prefill(&support::prompt(seed as u32, 7)).unwrap();
            let (text, finished) = session.generate(params(constrained, 0)).into_text().unwrap();
            let whole = session.tokens().to_vec();
            let output = whole.len() - 7;
            for kept in [0, 1, output / 2, output - 1] {
                session.sync(&whole[..7 + kept], &CancelHandle::new()).unwrap();
                let (rest, again) = session.generate(params(constrained, kept)).into_text().unwrap();
                assert_eq!(session.tokens(), whole, "{kept} of {output} tokens kept");
                assert!(text.ends_with(&rest), "{rest:?} is not the end of {text:?}");
                assert_eq!((again.usage.prompt_tokens, again.usage.output_tokens), (7, output));
                assert_eq!(again.reason, finished.reason);
            }
        }
    }
}
