//! Rows of draft tokens in steps.

use super::*;
use crate::speculation::Speculation;

const ALWAYS: Speculation = Speculation { max_draft: 3, min_match: 1, break_even: Some(0.0) };

/// A prompt whose continuation by its own period is drafted after each token.
fn repeating(len: u32) -> Vec<u32> {
    (0..len).map(|position| position % 5).collect()
}

impl Bench {
    /// A generation of `max_output_tokens` whose sampler always takes the prompt's next token.
    fn speculate(&mut self, session: u64, len: u32, max_output_tokens: usize, random: bool) -> Replies {
        let follow = (0..200).map(|id| (id, if id < 5 { 0.0 } else { f32::NEG_INFINITY }));
        let sampler = SamplerParams {
            temperature: if random { 1.0 } else { 0.0 },
            seed: Some(session),
            logit_bias: follow.collect(),
            ..SamplerParams::default()
        };
        let mut generating = generating(len as usize, max_output_tokens, &sampler);
        generating.drafter = crate::speculation::Drafter::new(ALWAYS);
        self.run(session, repeating(len), Task::Generate(Box::new(generating)))
    }

    /// Steps, with the answers of the sampling threads, until nothing is active.
    fn run_to_end(&mut self) {
        while !self.scheduler.is_idle() {
            self.scheduler.step();
            while self.scheduler.active.iter().any(Active::is_sampling) {
                let command = self.commands.recv().unwrap();
                self.scheduler.handle(command);
            }
        }
    }
}

#[test]
fn accepted_draft_tokens_are_kept() {
    let mut bench = Bench::new(64);
    let replies = bench.speculate(1, 12, 40, false);
    bench.run_to_end();
    let calls = bench.model.calls();
    assert_eq!(calls[0], vec![0..12]);
    let mut rejected = 0;
    for (call, next) in calls[1..].iter().zip(&calls[2..]) {
        let ([call], [next]) = (&call[..], &next[..]) else { panic!("one sequence") };
        assert!((1..=4).contains(&call.len()));
        assert!(call.start < next.start && next.start <= call.end, "{call:?}, then {next:?}");
        rejected += call.end - next.start;
    }
    assert!(rejected > 0, "{calls:?}");
    assert_eq!(tokens(&replies).len(), 40);
    assert!(calls.len() < 41);
}

#[test]
fn drafts_evict_no_other_session() {
    let mut bench = Bench::new(2);
    let _idle = bench.prefill(7, 20);
    bench.steps_until_idle();
    let replies = bench.speculate(1, 20, 12, false); // 32 tokens: one page.
    bench.run_to_end();
    assert_eq!(tokens(&replies).len(), 12);
    assert_eq!(bench.scheduler.caches.len(SessionId(7)), 20);
}

#[test]
fn pages_lost_during_sampling_are_run_again() {
    let alone = || {
        let mut bench = Bench::new(64);
        let replies = bench.speculate(1, 30, 20, true);
        bench.run_to_end();
        tokens(&replies)
    };
    let expected = alone();
    let mut bench = Bench::new(64);
    let replies = bench.speculate(1, 30, 20, true);
    let mut evictions = 0;
    while !bench.scheduler.is_idle() {
        bench.scheduler.step();
        // Half of the time its pages are lost, once with the page that only its drafts had.
        if evictions % 2 == 0 {
            bench.scheduler.caches.evict(SessionId(1));
        }
        evictions += 1;
        while bench.scheduler.active.iter().any(Active::is_sampling) {
            let command = bench.commands.recv().unwrap();
            bench.scheduler.handle(command);
        }
    }
    assert_eq!(tokens(&replies), expected);
    assert!(evictions > 2);
}
