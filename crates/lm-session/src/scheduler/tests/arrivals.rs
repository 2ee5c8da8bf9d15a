//! Short prompts that arrive beside long ones.

use super::*;

const LONG: usize = 20 * CHUNK;
/// Rows of a step that go to short prompts first, and those of all longer prompts beside a short one.
const FOR_SHORT: usize = 7 * CHUNK / 8;
const FOR_LONG: usize = CHUNK / 8;

/// A scheduler in the middle of this many long prompts.
fn busy(long: u64) -> (Bench, Vec<Replies>) {
    let mut bench = Bench::new(256);
    let replies = (1..=long).map(|session| bench.prefill(session, LONG)).collect();
    (0..3).for_each(|_| bench.scheduler.step());
    (bench, replies)
}

/// Steps until each of these generations has its first token.
fn steps_to_first_tokens(bench: &mut Bench, replies: &[Replies]) -> usize {
    let mut silent: Vec<&Replies> = replies.iter().collect();
    for steps in 0..1_000 {
        silent.retain(|replies| tokens(replies).is_empty());
        if silent.is_empty() {
            return steps;
        }
        bench.scheduler.step();
    }
    panic!("{} generations have no token", silent.len());
}

fn all_end(bench: &mut Bench, prefills: &[Replies], len: usize) {
    bench.steps_until_idle();
    for replies in prefills {
        let last = received(replies).last();
        assert!(
            matches!(last, Some(Reply::Prefilled { prefilled_tokens, .. }) if prefilled_tokens == len),
            "{last:?}"
        );
    }
}

#[test]
fn short_prompt_has_its_token_after_one_short_step() {
    for long in [1, 4, 8] {
        let (mut bench, prefills) = busy(long);
        let short = bench.generate(100, CHUNK / 2, 1);
        assert_eq!(steps_to_first_tokens(&mut bench, &[short]), 1, "beside {long}");
        let rows: usize = bench.rows().last().expect("a step").iter().sum();
        assert!((CHUNK / 2 + 1..=CHUNK / 2 + FOR_LONG).contains(&rows), "{rows} rows beside {long}");
        bench.scheduler.step();
        assert_eq!(bench.rows().last().expect("a step").iter().sum::<usize>(), CHUNK, "whole chunks again");
        all_end(&mut bench, &prefills, LONG);
    }
}

#[test]
fn short_prompts_that_arrive_together_share_the_steps() {
    for (count, len) in [(2, CHUNK / 2), (6, 7), (20, 2)] {
        let (mut bench, prefills) = busy(8);
        let short: Vec<Replies> = (0..count).map(|index| bench.generate(100 + index, len, 1)).collect();
        let steps = steps_to_first_tokens(&mut bench, &short);
        assert!(steps <= (count as usize * len).div_ceil(FOR_SHORT), "{count} of {len}: {steps}");
        all_end(&mut bench, &prefills, LONG);
    }
}

#[test]
fn short_prompt_is_first_beside_decoding_too() {
    for long in [1, 4, 8] {
        let (mut bench, prefills) = busy(long);
        let decoding = bench.generate(99, 2, 50);
        bench.scheduler.step();
        bench.scheduler.pace = StepPace::new(Duration::from_millis(1));
        bench.scheduler.pace.record(1, 0, Duration::from_secs(3600)); // Steps have 8 prompt rows, 7 for it.
        let short = bench.generate(100, CHUNK / 2, 1);
        assert_eq!(steps_to_first_tokens(&mut bench, &[short]), 2, "beside {long}");
        assert!(tokens(&decoding).len() >= 2, "it goes on");
        all_end(&mut bench, &prefills, LONG);
    }
}

#[test]
fn long_prompts_end_under_a_steady_flow_of_short_ones() {
    // Arrivals in each step: fewer rows than it has for them, as many, and more.
    for (arrivals, len) in [(1, CHUNK / 2), (2, 7), (3, CHUNK / 2)] {
        let mut bench = Bench::new(256);
        let long = bench.prefill(0, LONG);
        let (mut short, mut steps) = (Vec::new(), 0);
        while !received(&long).any(|reply| matches!(reply, Reply::Prefilled { .. })) {
            for _ in 0..arrivals {
                let session = 1 + short.len() as u64;
                short.push(bench.generate(session, len, 1));
            }
            bench.scheduler.step();
            steps += 1;
            assert!(steps <= LONG, "{arrivals} of {len}: a row a step at least");
        }
        bench.steps_until_idle();
        assert!(short.iter().all(|replies| tokens(replies).len() == 1), "{arrivals} of {len}");
    }
}

#[test]
fn higher_priority_is_before_short_prompts() {
    let mut bench = Bench::new(64);
    let mut first = |session: u64, len: usize, priority: i32| {
        let replies = bench.prefill(session, len);
        let active = bench.scheduler.active.iter_mut().find(|active| active.request.session.0 == session);
        active.expect("it is admitted").request.limits.priority = priority;
        replies
    };
    let _replies = [first(1, LONG, 1), first(2, 4, 0)];
    bench.scheduler.step();
    assert_eq!(bench.rows(), [[CHUNK]]);
}
