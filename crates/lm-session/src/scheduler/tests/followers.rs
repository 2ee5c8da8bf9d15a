use super::*;
use lm_model::PAGE_LEN;

const SHARED: usize = 3 * PAGE_LEN;
const OWN: usize = 5;

/// A prompt that starts with the same three pages for all sessions.
fn ids(session: u64) -> Vec<u32> {
    let own = (0..OWN as u32).map(|position| 100 + 10 * session as u32 + position);
    prompt(0, SHARED).into_iter().chain(own).collect()
}

/// Prefills of the same prefix, all admitted before the first step.
fn start(bench: &mut Bench, sessions: std::ops::Range<u64>) -> Vec<Replies> {
    sessions.map(|session| bench.run(session, ids(session), Task::Prefill)).collect()
}

fn rows_run(bench: &Bench) -> usize {
    bench.rows().iter().flatten().sum()
}

#[test]
fn prompts_starting_together_share_a_prefix() {
    let mut bench = Bench::new(64);
    let replies = start(&mut bench, 1..9);
    bench.steps_until_idle();
    assert_eq!(rows_run(&bench), SHARED + 8 * OWN);
    assert_eq!(bench.free_pages(), 64 - 3 - 8);
    for (index, replies) in replies.iter().enumerate() {
        let cached = if index == 0 { 0 } else { SHARED };
        let expected = Reply::Prefilled { cached_tokens: cached, prefilled_tokens: SHARED + OWN - cached };
        assert_eq!(format!("{:?}", replies.try_recv().unwrap()), format!("{expected:?}"));
    }
}

#[test]
fn follower_becomes_leader_when_its_leader_ends() {
    let mut bench = Bench::new(64);
    let replies = start(&mut bench, 1..4);
    bench.steps_until(|bench| rows_run(bench) >= SHARED / 2);
    bench.scheduler.handle(Command::Close { session: SessionId(1) });
    bench.steps_until_idle();
    assert!(matches!(replies[0].try_recv(), Ok(Reply::Failed { error: Error::Cancelled, .. })));
    for replies in &replies[1..] {
        assert!(matches!(replies.try_recv(), Ok(Reply::Prefilled { .. })));
    }
    // Tokens that the leader has run in an incomplete page run again.
    assert!(rows_run(&bench) < SHARED + 2 * OWN + PAGE_LEN, "{}", rows_run(&bench));
}

#[test]
fn follower_tokens_equal_a_single_prompt() {
    let mut together = Bench::new(64);
    let replies = start(&mut together, 1..4);
    together.steps_until_idle();
    drop(replies);
    for session in 1..4 {
        let mut alone = Bench::new(64);
        let _replies = start(&mut alone, session..session + 1);
        alone.steps_until_idle();
        let row = |bench: &mut Bench| bench.scheduler.caches.take_logits(SessionId(session)).unwrap();
        assert_eq!(row(&mut together), row(&mut alone), "{session}");
    }
}

#[test]
fn isolated_sessions_do_not_follow() {
    let mut bench = Bench::new(64);
    bench.scheduler.caches = KvCaches::new(bench.model.new_cache(64).unwrap(), crate::PrefixCache::Session);
    let _replies = start(&mut bench, 1..4);
    bench.steps_until_idle();
    assert_eq!(rows_run(&bench), 3 * (SHARED + OWN));
}

#[test]
fn prompts_of_different_adapters_run_at_the_same_time() {
    let mut bench = Bench::new(64);
    let mut replies = Vec::new();
    for adapter in [None, Some(AdapterId(0)), Some(AdapterId(1))] {
        bench.adapter = adapter;
        replies.push(bench.run(1 + replies.len() as u64, ids(0), Task::Prefill));
    }
    bench.scheduler.step();
    assert_eq!(bench.rows()[0].len(), 3);
    bench.steps_until_idle();
    assert_eq!(rows_run(&bench), 3 * (SHARED + OWN));
}
