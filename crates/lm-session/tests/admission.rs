//! Waiting requests: bounds, priorities, deadlines, cancellation.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

mod support;

use std::time::{Duration, Instant};

use lm_session::{
    CancelHandle, Constraint, ConstraintSpec, EngineSettings, Error, FinishReason, GenerateParams,
    Generation, Result, TokenId,
};
use support::{AllowAll, endless, gate, generate, hooked_engine, ids, last, prompt, random_engine, tokens};

#[test]
fn requests_beyond_the_bounds_are_rejected() {
    let (wait, arrived, open) = gate();
    let settings = EngineSettings {
        max_running_requests: 1,
        max_waiting_requests: 2,
        kv_cache_tokens: Some(4096),
        ..EngineSettings::default()
    };
    let (engine, _) = hooked_engine(settings, wait);
    let mut sessions: Vec<_> = (0..40).map(|_| endless(&engine)).collect();
    let mut running = Vec::new();
    let mut rejected = 0;
    for (seed, session) in sessions.iter_mut().enumerate() {
        match session.submit(&prompt(seed as u32, 5), tokens(3)) {
            Ok(generation) => running.push((seed, generation)),
            Err(Error::Busy { waiting, retry_after }) => {
                assert_eq!(waiting, 2);
                assert!(retry_after >= Duration::from_millis(100));
                assert!(session.tokens().is_empty());
                rejected += 1;
            }
            Err(error) => panic!("{error}"),
        }
        if seed == 0 {
            arrived.recv().unwrap(); // The first one runs, and no longer waits.
        }
    }
    assert_eq!((running.len(), rejected), (3, 37));
    drop(open);
    for (seed, generation) in running {
        let mut alone = endless(&random_engine(EngineSettings::default()));
        alone.prefill(&prompt(seed as u32, 5)).unwrap();
        assert_eq!(ids(generation).unwrap(), generate(&mut alone, 3).unwrap(), "{seed}");
    }
    // A place is free again.
    sessions[39].submit(&[1, 2], tokens(1)).unwrap().into_text().unwrap();
}

fn constrained(constraint: &dyn Constraint) -> GenerateParams {
    GenerateParams { constraint: Some(constraint.fork()), ..tokens(3) }
}

/// Submits requests with `params` while another one runs alone, finishes all that were taken, and returns
/// their number.
fn taken(max_waiting_grammar_bytes: usize, params: impl Fn() -> GenerateParams, count: usize) -> usize {
    let (wait, arrived, open) = gate();
    let settings = EngineSettings {
        max_running_requests: 1,
        max_waiting_grammar_bytes,
        kv_cache_tokens: Some(4096),
        ..EngineSettings::default()
    };
    let (engine, _) = hooked_engine(settings, wait);
    let mut sessions: Vec<_> = (0..count + 2).map(|_| endless(&engine)).collect();
    let mut first = sessions.pop().unwrap();
    let runs = first.submit(&[1, 2], tokens(1)).unwrap();
    arrived.recv().unwrap();
    let mut plain = sessions.pop().unwrap();
    let mut generations = Vec::new();
    for session in &mut sessions {
        match session.submit(&[3, 4], params()) {
            Ok(generation) => generations.push(generation),
            Err(Error::Busy { waiting, retry_after }) => {
                assert_eq!(waiting, generations.len());
                assert!(retry_after >= Duration::from_millis(100));
                assert!(session.tokens().is_empty());
            }
            Err(error) => panic!("{error}"),
        }
    }
    let plain = plain.submit(&[5, 6], tokens(1));
    let taken = generations.len();
    drop(open);
    let plain = plain.expect("it has no grammar");
    let reasons = generations.into_iter().map(|generation| last(generation).reason);
    assert!(reasons.into_iter().all(|reason| reason == FinishReason::MaxOutputTokens));
    last(runs);
    last(plain);
    // The places are free again.
    assert_eq!(last(sessions[count - 1].submit(&[3, 4], params()).unwrap()).usage.prompt_tokens, 2);
    taken
}

#[test]
fn grammar_state_bounds_waiting_requests() {
    let bytes = 1 << 20;
    // The masks of a request count as well.
    for (bound, expected) in [(0, 1), (bytes / 2, 1), (3 * bytes + bytes / 2, 3), (100 * bytes, 20)] {
        assert_eq!(
            taken(bound, || constrained(&AllowAll { before: || (), state_bytes: bytes }), 20),
            expected,
            "{bound}"
        );
    }
}

#[test]
fn grammar_state_grows_with_the_grammar() {
    let (engine, _) = hooked_engine(EngineSettings::default(), |_| Ok(()));
    let object = |names: usize| {
        let properties: serde_json::Map<_, _> = (0..names)
            .map(|name| (format!("name_{name}"), serde_json::json!({"type": "string", "maxLength": 20})))
            .collect();
        let schema = serde_json::json!({"type": "object", "properties": properties});
        engine.compile(&ConstraintSpec::Lark { text: format!("start: %json {schema}"), markers: vec![] })
    };
    let bytes = |names| object(names).unwrap().start().state_bytes();
    let (small, large) = (bytes(1), bytes(50));
    assert!(small > 1_000 && large > small + 10_000, "{small} {large}");
    let long = engine.compile(&ConstraintSpec::Regex("[a-z]{200}".to_owned())).unwrap().start();
    let params = || GenerateParams { max_output_tokens: Some(3), ..constrained(&*long) };
    assert!(long.state_bytes() > 1_000);
    // Too few tokens for the text: rejected before the queue.
    let rejected = endless(&engine).submit(&[1], params());
    assert!(matches!(rejected, Err(Error::BudgetTooSmall { .. })), "{rejected:?}");
    let any = engine.compile(&ConstraintSpec::Regex("[a-z]{1,200}".to_owned())).unwrap().start();
    let held = taken(16 * any.state_bytes(), || constrained(&*any), 40);
    assert!((2..=16).contains(&held), "{held}: a request's search has a state, too");
}

/// Resident memory of this process in bytes, if the system reports it.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<usize>().ok().map(|kilobytes| kilobytes << 10)
}

/// With default settings: requests beyond the bounds are rejected; accepted and repeated requests give the
/// tokens they would give alone.
#[test]
fn all_admitted_of_512_requests_finish() {
    const REQUESTS: usize = 512;
    const KINDS: usize = 8;
    let deadline = || Some(Instant::now() + Duration::from_secs(300));
    let params = || GenerateParams { deadline: deadline(), ..tokens(4) };
    let alone: Vec<Vec<TokenId>> = (0..KINDS)
        .map(|kind| {
            let mut session = endless(&random_engine(EngineSettings::default()));
            ids(session.submit(&prompt(kind as u32, 40), params()).unwrap()).unwrap()
        })
        .collect();
    let (wait, arrived, open) = gate();
    let (engine, _) = hooked_engine(EngineSettings::default(), wait);
    let pages = engine.cache_stats().unwrap().total_pages;
    let mut sessions: Vec<_> = (0..REQUESTS).map(|_| endless(&engine)).collect();
    let before = resident();
    let submit = |number: usize, session: &mut lm_session::Session| -> Result<Generation> {
        session.submit(&prompt((number % KINDS) as u32, 40), params())
    };
    let (mut accepted, mut rejected) = (Vec::new(), Vec::new());
    for (number, session) in sessions.iter_mut().enumerate() {
        match submit(number, session) {
            Ok(generation) => accepted.push((number, generation)),
            Err(Error::Busy { waiting: 256, retry_after }) => {
                assert!(retry_after >= Duration::from_millis(100));
                rejected.push((number, session));
            }
            Err(error) => panic!("{error}"),
        }
        if number == 0 {
            arrived.recv().unwrap();
        }
    }
    assert_eq!((accepted.len(), rejected.len()), (257, 255), "one runs, 256 wait");
    if let (Some(before), Some(now)) = (before, resident()) {
        assert!(now < before + (64 << 20), "{before} bytes before, {now} with all requests");
    }
    drop(open);
    std::thread::scope(|scope| {
        // Each on a thread of its own, as a server has them.
        for (number, session) in rejected {
            let alone = &alone[number % KINDS];
            scope.spawn(move || {
                let generation = loop {
                    match submit(number, session) {
                        Ok(generation) => break generation,
                        Err(Error::Busy { retry_after, .. }) => std::thread::sleep(retry_after),
                        Err(error) => panic!("{error}"),
                    }
                };
                assert_eq!(&ids(generation).unwrap(), alone, "{number}");
            });
        }
        for (number, generation) in accepted {
            assert_eq!(ids(generation).unwrap(), alone[number % KINDS], "{number}");
        }
    });
    drop(sessions);
    let stats = engine.cache_stats().unwrap();
    assert_eq!((stats.total_pages, stats.free_pages), (pages, pages), "every page is free again");
}

#[test]
fn higher_priorities_are_admitted_first() {
    let (wait, arrived, open) = gate();
    let settings = EngineSettings { max_running_requests: 1, ..EngineSettings::default() };
    let (engine, model) = hooked_engine(settings, wait);
    let mut sessions: Vec<_> = (0..4).map(|_| endless(&engine)).collect();
    let priorities = [0, 0, 5, -5];
    let generations: Vec<_> = std::iter::zip(&mut sessions, priorities)
        .enumerate()
        .map(|(index, (session, priority))| {
            // The length of the prompt identifies the request.
            let generation =
                session.submit(&prompt(9, 3 + index), GenerateParams { priority, ..tokens(1) }).unwrap();
            if index == 0 {
                arrived.recv().unwrap();
            }
            generation
        })
        .collect();
    drop(open);
    generations.into_iter().for_each(|generation| assert_eq!(ids(generation).unwrap().len(), 1));
    let prompts: Vec<usize> = model.calls().iter().map(|call| call[0].len()).collect();
    assert_eq!(prompts, [3, 5, 4, 6]);
}

#[test]
fn waiting_requests_have_cancel_groups_and_deadlines() {
    let (wait, arrived, open) = gate();
    let settings = EngineSettings { max_running_requests: 1, prefill_chunk: 2, ..EngineSettings::default() };
    let (engine, model) = hooked_engine(settings, wait);
    let mut first = endless(&engine);
    let runs = first.submit(&[7, 8], tokens(2)).unwrap();
    arrived.recv().unwrap();
    let group = CancelHandle::new();
    let mut sessions: Vec<_> = (0..4).map(|_| endless(&engine)).collect();
    let [one, two, late, stays] = &mut sessions[..] else { panic!() };
    let grouped = || GenerateParams { cancel: group.clone(), ..tokens(9) };
    let (one, two) = (one.submit(&[1, 2], grouped()).unwrap(), two.submit(&[3, 4], grouped()).unwrap());
    let late = late.submit(&[5, 6], GenerateParams { deadline: Some(Instant::now()), ..tokens(9) }).unwrap();
    let stays = stays.submit(&[9, 9], tokens(2)).unwrap();
    group.cancel();
    drop(open);
    assert_eq!(last(one).reason, FinishReason::Cancelled);
    assert_eq!(last(two).reason, FinishReason::Cancelled);
    assert_eq!(last(late).reason, FinishReason::DeadlineExceeded);
    assert_eq!(last(runs).reason, FinishReason::MaxOutputTokens);
    assert_eq!(last(stays).reason, FinishReason::MaxOutputTokens);
    assert_eq!(model.calls().len(), 4, "only two of five ran: a prompt and a token each");
}

/// The session's tokens are those of the last request, its cache those of one that ran.
#[test]
fn request_ended_while_waiting_leaves_no_cache() {
    type Next = fn(&mut lm_session::Session) -> lm_session::Session;
    let nexts: [Next; 3] = [
        |session| session.fork().unwrap(),
        |session| {
            let len = session.tokens().len();
            session.rewind(len - 1);
            session.fork().unwrap()
        },
        |session| std::mem::replace(session, session.fork().unwrap()),
    ];
    for (len, next) in [20, 80].into_iter().flat_map(|len| nexts.map(|next| (len, next))) {
        let (wait, arrived, open) = gate();
        let settings = EngineSettings { max_running_requests: 1, ..EngineSettings::default() };
        let (engine, _) = hooked_engine(settings, wait);
        let (mut session, mut blocker) = (endless(&engine), endless(&engine));
        let prefilled = std::thread::scope(|scope| {
            let prefill = scope.spawn(|| session.prefill(&prompt(1, len)).unwrap());
            arrived.recv().unwrap();
            open.send(()).unwrap();
            prefill.join().unwrap()
        });
        assert_eq!(prefilled.prefilled_tokens, len);
        let blocks = blocker.submit(&prompt(3, 4), tokens(2)).unwrap();
        arrived.recv().unwrap();
        let late = GenerateParams { deadline: Some(Instant::now()), ..tokens(2) };
        let late = session.submit(&prompt(2, len), late).unwrap();
        drop(open);
        assert_eq!(last(late).reason, FinishReason::DeadlineExceeded);
        assert_eq!(last(blocks).reason, FinishReason::MaxOutputTokens);
        let mut session = next(&mut session);
        let again = [session.tokens(), vec![5, 6]].concat();
        let mut alone = endless(&random_engine(EngineSettings::default()));
        alone.prefill(&again).unwrap();
        let got = ids(session.submit(&again, tokens(3)).unwrap()).unwrap();
        assert_eq!(got, generate(&mut alone, 3).unwrap(), "{len}");
    }
}
