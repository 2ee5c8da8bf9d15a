//! Records of requests, and their replay.

use std::io::{self, BufReader, Write};
use std::sync::{Arc, Mutex};

use crate::support::AllowAll;
use lm_session::testing::{FakeLm, loaded, tokenizer};
use lm_session::{
    CancelHandle, ChannelBudget, Constraint, ConstraintSpec, Engine, EngineSettings, Error, GenerateParams,
    RecordHeader, RecordReader, RecordedEnd, Replayed, RequestRecord, Result, SamplerParams, SessionConfig,
    SessionEvent, TokenId,
};

fn random_engine(seed: u64) -> Engine {
    Engine::new(loaded(FakeLm::random(seed, tokenizer().logits_width())), EngineSettings::default()).unwrap()
}

/// A prompt of `len` tokens.
fn ids(len: TokenId) -> Vec<TokenId> {
    (0..len).map(|index| 5 + index * 7 % 50).collect()
}

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().lines().map(str::to_owned).collect()
    }

    fn requests(&self) -> Vec<RequestRecord> {
        let bytes = self.0.lock().unwrap().clone();
        RecordReader::new(BufReader::new(&*bytes)).unwrap().collect::<Result<_>>().unwrap()
    }
}

fn recorded(engine: &Engine) -> Memory {
    let memory = Memory::default();
    engine.record(memory.clone()).unwrap();
    memory
}

/// An engine, and the record of its request of 12 tokens.
fn recorded_request() -> (Engine, RequestRecord) {
    let engine = random_engine(3);
    let file = recorded(&engine);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let params = GenerateParams { max_output_tokens: Some(12), ..GenerateParams::default() };
    session.submit(&ids(9), params).unwrap().into_text().unwrap();
    let request = file.requests().remove(0);
    (engine, request)
}

fn replay(engine: &Engine, request: &RequestRecord) -> Replayed {
    engine.replay(request, &CancelHandle::new()).unwrap()
}

fn sampled(temperature: f32) -> SamplerParams {
    let logit_bias = vec![(7, f32::NEG_INFINITY), (8, 1.5)];
    SamplerParams { temperature, top_p: 0.9, repetition_penalty: 1.1, logit_bias, ..SamplerParams::default() }
}

/// Parameters of all kinds: greedy and sampled, limited, stopped, under grammars and budgets.
fn kinds(engine: &Engine) -> Vec<GenerateParams> {
    let grammar = |regex: &str| engine.compile(&ConstraintSpec::Regex(regex.to_owned())).unwrap().start();
    let budget = |inner| {
        let budget = ChannelBudget::new(engine.tokenizer(), "<think>", "\n", "</think>", 5).unwrap();
        Box::new(budget.with(inner).starting_inside()) as Box<dyn Constraint>
    };
    let limited = |tokens| GenerateParams { max_output_tokens: Some(tokens), ..GenerateParams::default() };
    vec![
        limited(20),
        // Before any drawn seed, so that the seed yields a letter.
        GenerateParams {
            stop: ('a'..='z').map(String::from).collect(),
            sampler: Some(SamplerParams { seed: Some(1), ..sampled(1.3) }),
            ..limited(60)
        },
        GenerateParams { sampler: Some(sampled(1.0)), ..limited(20) },
        GenerateParams { sampler: Some(SamplerParams { seed: Some(5), ..sampled(0.7) }), ..limited(20) },
        GenerateParams { constraint: Some(grammar("[a-z]{5,30}[0-9]{3}")), ..limited(40) },
        GenerateParams {
            constraint: Some(grammar("[a-z ]{3,}!")),
            sampler: Some(sampled(1.0)),
            ..limited(12)
        },
        GenerateParams { constraint: Some(budget(None)), sampler: Some(sampled(1.0)), ..limited(30) },
        GenerateParams {
            constraint: Some(budget(Some(grammar("[a-z\\n]{0,20}</think>[0-9]+")))),
            ..limited(40)
        },
    ]
}

#[test]
fn every_request_kind_replays_in_another_engine() {
    let (engine, file) = (random_engine(3), Memory::default());
    engine.record(file.clone()).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    for params in kinds(&engine) {
        // Earlier tokens of the session are part of each prompt.
        session.prefill(&ids(40)).unwrap();
        session.generate(params).into_text().unwrap();
    }
    engine.stop_recording();
    session.prefill(&ids(3)).unwrap();
    session
        .generate(GenerateParams { max_output_tokens: Some(2), ..Default::default() })
        .into_text()
        .unwrap();
    let requests = file.requests();
    assert_eq!(requests.len(), 8, "those of the time in which it was recorded");
    let other = random_engine(3);
    assert_eq!(other.fingerprint(), engine.fingerprint());
    for (number, request) in requests.iter().enumerate() {
        assert!(!request.tokens.is_empty() && !request.custom, "{number}");
        assert_eq!(replay(&other, request), Replayed::Equal, "{number}: {:?}", request.end);
    }
    assert!(requests.iter().any(|request| matches!(request.end, RecordedEnd::StopString(_))));
    assert!(requests.iter().any(|request| request.end == RecordedEnd::MaxOutputTokens));
    assert!(requests[2].sampler.seed.is_some(), "a drawn seed is recorded");
}

#[test]
fn replay_reports_the_first_difference() {
    let (engine, request) = recorded_request();
    for at in [0, 5, 11] {
        let mut other = request.clone();
        other.tokens[at] ^= 1;
        let expected =
            Replayed::Token { at, recorded: Some(other.tokens[at]), replayed: Some(request.tokens[at]) };
        assert_eq!(replay(&engine, &other), expected);
    }
    let mut short = request.clone();
    short.tokens.pop();
    let last = request.tokens.last().copied();
    assert_eq!(replay(&engine, &short), Replayed::Token { at: 11, recorded: None, replayed: last });
    let mut long = request.clone();
    long.tokens.push(1);
    assert_eq!(replay(&engine, &long), Replayed::Token { at: 12, recorded: Some(1), replayed: None });
    let mut ended = request.clone();
    ended.end = RecordedEnd::EndToken;
    let expected = Replayed::End { recorded: RecordedEnd::EndToken, replayed: RecordedEnd::MaxOutputTokens };
    assert_eq!(replay(&engine, &ended), expected);
    let other = random_engine(4);
    let wider = FakeLm::random(3, tokenizer().logits_width() + 1);
    let wider = Engine::new(loaded(wider), EngineSettings::default()).unwrap();
    assert_ne!(wider.fingerprint(), engine.fingerprint());
    assert!(matches!(replay(&other, &request), Replayed::Token { .. }));
}

#[test]
fn ended_requests_are_compared_up_to_their_end() {
    let engine = random_engine(3);
    let file = recorded(&engine);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    for dropped in [true, false] {
        let mut generation = session.submit(&ids(9), GenerateParams::default()).unwrap();
        let tokens = generation.by_ref().filter(|event| matches!(event, Ok(SessionEvent::Token { .. })));
        assert_eq!(tokens.take(4).count(), 4);
        if !dropped {
            generation.canceller().cancel();
            generation.by_ref().for_each(drop);
        }
    }
    let cancel = CancelHandle::new();
    cancel.cancel();
    let params = GenerateParams { cancel, ..GenerateParams::default() };
    session.submit(&ids(9), params).unwrap().for_each(drop);
    let requests = file.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!((&request.end, replay(&engine, request)), (&RecordedEnd::Caller, Replayed::Equal));
    }
    assert_eq!((requests[0].tokens.len(), requests[2].tokens.len()), (4, 0));
    let cancel = CancelHandle::new();
    cancel.cancel();
    assert!(matches!(engine.replay(&requests[0], &cancel), Err(Error::Cancelled)));
}

#[test]
fn requests_with_caller_code_are_not_replayed() {
    let engine = random_engine(3);
    let file = recorded(&engine);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let budget = ChannelBudget::new(engine.tokenizer(), "<think>", "", "</think>", 5).unwrap();
    let anything = || Box::new(AllowAll { before: || (), state_bytes: 0 });
    let constraints: [Box<dyn Constraint>; 2] = [anything(), Box::new(budget.with(Some(anything())))];
    for constraint in constraints {
        let params =
            GenerateParams { constraint: Some(constraint), max_output_tokens: Some(4), ..Default::default() };
        session.submit(&ids(9), params).unwrap().into_text().unwrap();
    }
    for request in file.requests() {
        assert!(request.custom && request.constraint.is_none() && !request.tokens.is_empty());
        assert_eq!(replay(&engine, &request), Replayed::Custom);
    }
}

#[test]
fn continued_outputs_and_full_contexts_are_replayed() {
    let settings = EngineSettings { max_context: Some(64), ..EngineSettings::default() };
    let engine =
        || Engine::new(loaded(FakeLm::random(3, tokenizer().logits_width())), settings.clone()).unwrap();
    let recording = engine();
    let file = recorded(&recording);
    let mut session = recording.session(SessionConfig::default()).unwrap();
    let params = GenerateParams { max_output_tokens: Some(6), ..GenerateParams::default() };
    session.submit(&ids(20), params).unwrap().into_text().unwrap();
    let params = GenerateParams {
        continued: session.tokens().len() - 20,
        sampler: Some(sampled(1.0)),
        ..Default::default()
    };
    session.submit(&session.tokens(), params).unwrap().into_text().unwrap();
    let requests = file.requests();
    assert_eq!((requests[1].continued, requests[1].prompt.len() - requests[1].continued), (6, 20));
    assert!(requests.iter().all(|request| replay(&engine(), request) == Replayed::Equal));
}

#[test]
fn invalid_records_are_errors_with_their_line() {
    let engine = random_engine(3);
    let file = recorded(&engine);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let params = GenerateParams { max_output_tokens: Some(4), ..GenerateParams::default() };
    session.submit(&ids(5), params).unwrap().into_text().unwrap();
    let lines = file.lines();
    let read = |text: &str| -> Result<Vec<RequestRecord>> { RecordReader::new(text.as_bytes())?.collect() };
    let line_of = |text: &str| match read(text) {
        Err(Error::InvalidRecord { line, .. }) => line,
        other => panic!("{other:?}: {text}"),
    };
    let [header, request] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(read(&format!("{header}\n{request}\n{request}")).unwrap().len(), 2);
    for wrong in ["", "\n", "{}", "[1]", "\u{0}", request, &header.replace("\"version\":1", "\"version\":2")]
    {
        assert_eq!(line_of(wrong), 1, "{wrong}");
    }
    assert_eq!(line_of(&format!("{}x", &header.replace(RecordHeader::FORMAT, "other"))), 1);
    for end in (1..request.len() - 1).step_by(7).filter(|&end| request.is_char_boundary(end)) {
        assert_eq!(line_of(&format!("{header}\n{request}\n{}", &request[..end])), 3);
    }
    for (from, to) in [
        ("\"prompt\":[", "\"prompt\":[-1,"),
        ("\"prompt\":[", "\"prompt\":[1e99,"),
        ("\"continued\":0", "\"continued\":null"),
        ("\"custom\":false", "\"custom\":false,\"other\":1"),
        ("\"end\":", "\"end\":{\"stop_string\":7},\"end\":"),
    ] {
        assert!(request.contains(from));
        assert_eq!(line_of(&format!("{header}\n{}", request.replacen(from, to, 1))), 2, "{to}");
    }
    let nested = "{\"budget\":{\"inner\":".repeat(5_000);
    let deep = request.replacen("\"constraint\":null", &format!("\"constraint\":{nested}"), 1);
    assert_eq!(line_of(&format!("{header}\n{deep}")), 2);
}

#[test]
fn rejected_request_replays_as_its_error() {
    let engine = random_engine(3);
    let file = recorded(&engine);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let params = GenerateParams { max_output_tokens: Some(4), ..GenerateParams::default() };
    session.submit(&ids(5), params).unwrap().into_text().unwrap();
    engine.stop_recording();
    let request = file.requests().remove(0);
    let rejected = |change: &dyn Fn(&mut RequestRecord)| {
        let mut request = request.clone();
        change(&mut request);
        engine.replay(&request, &CancelHandle::new()).expect_err("it is rejected")
    };
    assert!(matches!(rejected(&|it| it.prompt.clear()), Error::EmptyPrompt));
    assert!(matches!(rejected(&|it| it.prompt = vec![1; 1 << 20]), Error::PromptTooLong { .. }));
    assert!(matches!(rejected(&|it| it.prompt.push(TokenId::MAX)), Error::Model(_)));
    assert!(matches!(rejected(&|it| it.sampler.temperature = -1.0), Error::InvalidSampler { .. }));
    assert!(matches!(rejected(&|it| it.stop = vec![String::new()]), Error::EmptyStopString { .. }));
    assert!(matches!(rejected(&|it| it.adapter = Some(3)), Error::UnknownAdapter { .. }));
    let bad = |it: &mut RequestRecord| {
        let spec = ConstraintSpec::Regex("(".to_owned());
        it.constraint = Some(lm_session::ConstraintRecord::Grammar(spec));
    };
    assert!(matches!(rejected(&bad), Error::Grammar { .. }));
    let mut beyond = request.clone();
    beyond.continued = usize::MAX;
    assert!(engine.replay(&beyond, &CancelHandle::new()).is_ok(), "all tokens are output");
    assert_eq!(replay(&engine, &request), Replayed::Equal, "the engine continues");
}

/// A disk that is full after some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = bytes.len().min(self.0);
        self.0 -= written;
        if written == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(written) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn unwritable_record_fails_its_request() {
    let engine = random_engine(3);
    assert!(matches!(engine.record(Full(10)), Err(Error::Recording(_))));
    engine.record(Full(700)).unwrap();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let params = || GenerateParams { max_output_tokens: Some(4), ..GenerateParams::default() };
    let ended = session.submit(&ids(500), params()).unwrap().into_text();
    assert!(matches!(ended, Err(Error::Recording(_))), "{ended:?}");
    drop(session.submit(&ids(500), params()).unwrap());
    engine.stop_recording();
    assert!(session.submit(&ids(500), params()).unwrap().into_text().is_ok());
}

#[test]
fn unread_tokens_are_not_recorded() {
    let engine = random_engine(3);
    let file = recorded(&engine);
    let params = || GenerateParams { max_output_tokens: Some(12), ..GenerateParams::default() };
    let (mut session, mut other) = (
        engine.session(SessionConfig::default()).unwrap(),
        engine.session(SessionConfig::default()).unwrap(),
    );
    let mut held = session.submit(&ids(9), params()).unwrap();
    let tokens = held.by_ref().filter(|event| matches!(event, Ok(SessionEvent::Token { .. })));
    assert_eq!(tokens.take(2).count(), 2);
    other.submit(&ids(30), params()).unwrap().into_text().unwrap(); // The others wait to be read meanwhile.
    session.submit(&ids(9), params()).unwrap().into_text().unwrap();
    held.by_ref().for_each(drop);
    let requests = file.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2].tokens.len(), 2);
}

#[test]
fn failed_request_is_compared_up_to_its_failure() {
    let (engine, mut failed) = recorded_request();
    failed.tokens.truncate(4);
    failed.end = RecordedEnd::Error("poison".to_owned());
    assert_eq!(replay(&engine, &failed), Replayed::Equal);
}

#[test]
fn record_lines_are_complete_during_recording() {
    let engine = random_engine(3);
    let file = Memory::default();
    engine.record(io::BufWriter::new(file.clone())).unwrap();
    assert_eq!(file.lines().len(), 1);
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let params = GenerateParams { max_output_tokens: Some(4), ..GenerateParams::default() };
    session.submit(&ids(9), params).unwrap().into_text().unwrap();
    assert_eq!(file.lines().len(), 2);
}
