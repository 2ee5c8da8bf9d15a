use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::*;
use crate::cancel::CancelHandle;
use crate::event::{FinishReason, SessionEvent};
use crate::generate::{Clock, Generating, StopMatcher};
use crate::ids::AdapterId;
use crate::sampling::{Masked, Sampler, SamplerParams};
use crate::scheduler::request::RequestLimits;
use crate::testing::{FakeLm, tokenizer};

type Replies = async_channel::Receiver<Reply>;

mod arrivals;
mod drafts;
mod followers;
mod sampling;
mod waiting;

const CHUNK: usize = 16;

/// A scheduler over `num_pages` that is stepped manually.
struct Bench {
    scheduler: Scheduler,
    model: Arc<FakeLm>,
    cancel: CancelHandle,
    /// Deadline of the next requests.
    deadline: Option<Instant>,
    /// Adapter of the next requests.
    adapter: Option<AdapterId>,
    commands: Receiver<Command>,
}

impl Bench {
    fn new(num_pages: usize) -> Self {
        let model = Arc::new(FakeLm::random(1, tokenizer().logits_width()));
        let settings = EngineSettings {
            prefill_chunk: CHUNK,
            step_budget: Duration::from_secs(3600), // However busy the machine is.
            ..EngineSettings::default()
        };
        let (answers, commands) = channel();
        let scheduler = Scheduler::new(
            model.clone(),
            Encoders::default(),
            num_pages,
            &settings,
            answers,
            Totals::default(),
        )
        .unwrap();
        Self { scheduler, model, cancel: CancelHandle::new(), deadline: None, adapter: None, commands }
    }

    fn run(&mut self, session: u64, ids: Vec<u32>, task: Task) -> Replies {
        let (replies, answers) = async_channel::unbounded();
        let (cancel, deadline) = (self.cancel.clone(), self.deadline);
        let limits = RequestLimits { cancel, deadline, ..RequestLimits::default() };
        self.scheduler.handle(Command::Run(Request {
            session: SessionId(session),
            adapter: self.adapter,
            low_ranks: None,
            ids,
            media: Vec::new(),
            matching: 0,
            task,
            limits,
            prompt_rows: None,
            waiting: None,
            replies,
        }));
        answers
    }

    fn prefill(&mut self, session: u64, len: usize) -> Replies {
        self.run(session, prompt(session, len), Task::Prefill)
    }

    fn generate(&mut self, session: u64, len: usize, max_output_tokens: usize) -> Replies {
        self.sample(session, len, max_output_tokens, &SamplerParams::default())
    }

    fn sample(
        &mut self,
        session: u64,
        len: usize,
        max_output_tokens: usize,
        sampler: &SamplerParams,
    ) -> Replies {
        let generating = generating(len, max_output_tokens, sampler);
        self.run(session, prompt(session, len), Task::Generate(Box::new(generating)))
    }

    fn steps_until_idle(&mut self) -> usize {
        let mut steps = 0;
        while !self.scheduler.is_idle() {
            self.scheduler.step();
            steps += 1;
            assert!(steps < 10_000, "the scheduler makes no progress");
        }
        steps
    }

    fn steps_until(&mut self, reached: impl Fn(&Self) -> bool) {
        while !reached(self) {
            assert!(!self.scheduler.is_idle(), "everything has ended before");
            self.scheduler.step();
        }
    }

    /// Number of rows of each sequence of each forward pass.
    fn rows(&self) -> Vec<Vec<usize>> {
        self.model.calls().iter().map(|call| call.iter().map(Range::len).collect()).collect()
    }

    fn free_pages(&self) -> usize {
        self.scheduler.caches.stats().free_pages
    }
}

/// A generation after `prompt_tokens` without constraint, stop rules and drafts.
fn generating(prompt_tokens: usize, max_output_tokens: usize, sampler: &SamplerParams) -> Generating {
    Generating {
        sampler: Sampler::new(sampler, &Arc::new(tokenizer())).unwrap(),
        guide: None,
        forced_tokens: 0,
        logprobs: None,
        drafter: None,
        masked: Masked::default(),
        decoder: tokenizer().stream_decoder(),
        stop: StopMatcher::new(Vec::new()).unwrap(),
        stop_ids: Vec::new(),
        max_output_tokens: Some(max_output_tokens),
        context_tokens: 4096,
        prompt_tokens,
        continued_tokens: 0,
        clock: Clock::start(PrefillStats::default()),
    }
}

fn prompt(session: u64, len: usize) -> Vec<u32> {
    (0..len as u32).map(|position| (position * 7 + session as u32) % 100).collect()
}

/// All replies so far.
fn received(replies: &Replies) -> impl Iterator<Item = Reply> {
    std::iter::from_fn(|| replies.try_recv().ok())
}

fn tokens(replies: &Replies) -> Vec<u32> {
    let token = |reply| match reply {
        Reply::Event(SessionEvent::Token { id, .. }) => Some(id),
        _ => None,
    };
    received(replies).filter_map(token).collect()
}

#[test]
fn step_has_all_decode_rows_and_one_prompt_chunk() {
    let mut bench = Bench::new(64);
    bench.scheduler.pace.record(1, 0, Duration::ZERO); // The budget has room for any number of rows.
    let _one = bench.generate(1, 3, 5);
    bench.scheduler.step();
    let _two = bench.generate(2, 10, 5);
    let _three = bench.prefill(3, 20);
    bench.scheduler.step();
    bench.scheduler.step();
    // Equal shares of the chunk; the second prompt is short in the next step, which is short then.
    assert_eq!(bench.rows(), [vec![3], vec![1, 8, 8], vec![1, 2, CHUNK / 8]]);
}

#[test]
fn stored_logits_need_no_forward_pass() {
    let mut bench = Bench::new(8);
    let _filled = bench.prefill(1, 5);
    bench.steps_until_idle();
    let calls = bench.rows().len();
    let ids = prompt(1, 5);
    let (replies, answers) = async_channel::unbounded();
    let again = Request {
        session: SessionId(1),
        adapter: None,
        media: Vec::new(),
        low_ranks: None,
        ids,
        matching: 5,
        task: Task::Prefill,
        limits: RequestLimits::default(),
        prompt_rows: None,
        waiting: None,
        replies,
    };
    bench.scheduler.handle(Command::Run(again));
    assert!(matches!(answers.try_recv(), Ok(Reply::Prefilled { cached_tokens: 5, prefilled_tokens: 0 })));
    assert_eq!(bench.rows().len(), calls);
}

#[test]
fn cancel_takes_effect_before_the_next_forward_pass() {
    let mut bench = Bench::new(64);
    let prefill = bench.prefill(1, 3 * CHUNK);
    let generation = bench.generate(2, 40, 100);
    bench.scheduler.step();
    bench.cancel.cancel();
    bench.scheduler.step();
    assert_eq!(bench.rows(), [[CHUNK / 2, CHUNK / 2]]);
    assert!(bench.scheduler.is_idle());
    let cancelled = Reply::Failed { error: Error::Cancelled, cached_tokens: CHUNK / 2 };
    assert_eq!(format!("{:?}", prefill.try_recv().unwrap()), format!("{cancelled:?}"));
    let last = received(&generation).last();
    let Some(Reply::Event(SessionEvent::Finished(finished))) = last else { panic!("{last:?}") };
    assert_eq!((finished.reason, finished.usage.output_tokens), (FinishReason::Cancelled, 0));
}

#[test]
fn request_that_never_fits_is_an_error() {
    let mut bench = Bench::new(2);
    let idle = bench.prefill(1, 20);
    bench.steps_until_idle();
    let replies = bench.prefill(2, 100);
    bench.steps_until_idle();
    assert!(matches!(idle.try_recv(), Ok(Reply::Prefilled { .. })));
    match replies.try_recv() {
        Ok(Reply::Failed {
            error: Error::CacheFull { needed_pages: 1, free_pages: 0 },
            cached_tokens: 64,
        }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn preempted_request_ends_as_if_alone() {
    let alone = |session| {
        let mut bench = Bench::new(64);
        let replies = bench.generate(session, 20, 60);
        bench.steps_until_idle();
        tokens(&replies)
    };
    // Each needs three pages at the end, together six.
    let mut bench = Bench::new(4);
    let (one, two) = (bench.generate(1, 20, 60), bench.generate(2, 20, 60));
    bench.steps_until_idle();
    assert!(bench.scheduler.caches.stats().evicted_pages > 0);
    assert_eq!(tokens(&one), alone(1));
    assert_eq!(tokens(&two), alone(2));
}

#[test]
fn youngest_follower_is_preempted() {
    let mut bench = Bench::new(6);
    // Each has two pages when the oldest needs a third.
    let replies = [1, 2, 3].map(|session| bench.generate(session, 20, 60));
    let preempted = |bench: &Bench| -> Vec<u64> {
        let active = bench.scheduler.active.iter().filter(|active| active.preempted);
        active.map(|active| active.request.session.0).collect()
    };
    while preempted(&bench).is_empty() {
        assert!(!bench.scheduler.is_idle(), "no request was preempted");
        bench.scheduler.step();
    }
    assert_eq!(preempted(&bench), [3]);
    bench.steps_until_idle();
    assert!(replies.iter().all(|replies| tokens(replies).len() == 60));
}

#[test]
fn longest_idle_sessions_are_evicted_first() {
    let mut bench = Bench::new(6);
    for session in 1..=2 {
        let _replies = bench.prefill(session, 80);
        bench.steps_until_idle();
    }
    let _replies = bench.prefill(3, 40);
    bench.steps_until_idle();
    let cached = [1, 2, 3].map(|session| bench.scheduler.caches.len(SessionId(session)));
    assert_eq!(cached, [32, 80, 40]);
}

#[test]
fn second_request_of_a_session_ends_the_first() {
    let mut bench = Bench::new(8);
    let first = bench.generate(1, 4, 100);
    bench.scheduler.step();
    let second = bench.generate(1, 6, 2);
    bench.steps_until_idle();
    assert!(matches!(received(&first).last(), Some(Reply::Event(SessionEvent::Finished(_)))));
    assert_eq!(tokens(&second).len(), 2);
    bench.scheduler.handle(Command::Close { session: SessionId(1) });
    assert_eq!(bench.free_pages(), 8);
}

#[test]
fn failed_batch_runs_isolated_until_the_culprit_fails() {
    let mut bench = Bench::new(64);
    let good = bench.generate(1, 3, 4);
    let bad = bench.run(2, vec![1, u32::MAX], Task::Prefill);
    let other = bench.generate(3, 3, 4);
    bench.steps_until_idle();
    let fault = bad.try_recv();
    assert!(matches!(fault, Ok(Reply::Failed { error: Error::Model(_), cached_tokens: 0 })), "{fault:?}");
    assert_eq!((tokens(&good).len(), tokens(&other).len()), (4, 4));
    // The failed batch left no trace; the first runs alone, the second fails, the third runs alone, and they
    // are batched again.
    assert_eq!(bench.rows(), [vec![3], vec![3], vec![1, 1], vec![1, 1], vec![1, 1]]);
}

#[test]
fn cancelled_culprit_keeps_batching_on() {
    let mut bench = Bench::new(64);
    let cancel = CancelHandle::new();
    let _good = bench.generate(1, 3, 30);
    bench.cancel = cancel.clone();
    let _bad = bench.run(2, vec![1, u32::MAX], Task::Prefill);
    bench.cancel = CancelHandle::new();
    let _other = bench.generate(3, 3, 30);
    bench.scheduler.step(); // Fails as a batch.
    cancel.cancel();
    bench.scheduler.step();
    bench.scheduler.step();
    // The load never falls, and no other request fails: the two others are batched once each has run alone.
    bench.scheduler.step();
    assert_eq!(bench.rows(), [vec![3], vec![3], vec![1, 1]]);
}

#[test]
fn failed_pool_allocation_is_retried() {
    let mut bench = Bench::new(8);
    bench.scheduler.caches.reset(|| Ok(lm_model::KvPool::empty(0))).unwrap();
    let replies = bench.prefill(1, 5);
    bench.steps_until_idle();
    assert!(matches!(replies.try_recv(), Ok(Reply::Prefilled { prefilled_tokens: 5, .. })));
}

#[test]
fn isolated_request_waits_for_page_holders() {
    let mut bench = Bench::new(4);
    let holder = bench.generate(1, 60, 60); // Four pages at its end.
    bench.steps_until(|bench| bench.scheduler.caches.len(SessionId(1)) >= 60);
    let waiting = bench.generate(2, 70, 2); // Needs three.
    let number = bench.scheduler.active[1].number;
    bench.scheduler.isolated.push(number);
    bench.steps_until_idle();
    assert_eq!((tokens(&holder).len(), tokens(&waiting).len()), (60, 2));
}

#[test]
fn oldest_prompt_is_served_when_rows_are_few() {
    let mut bench = Bench::new(64);
    let long = bench.prefill(0, 40);
    for session in 1..=20 {
        let _short = bench.prefill(session, 2);
    }
    bench.scheduler.step();
    assert!(bench.scheduler.caches.len(SessionId(0)) > 0, "{:?}", bench.rows());
    bench.steps_until_idle();
    assert!(matches!(long.try_recv(), Ok(Reply::Prefilled { prefilled_tokens: 40, .. })));
}

#[test]
fn prompts_leave_time_for_decoding() {
    let mut bench = Bench::new(64);
    bench.scheduler.pace = StepPace::new(Duration::from_millis(1));
    bench.scheduler.pace.record(1, 0, Duration::from_secs(3600)); // No budget has room for more than the fewest rows.
    let _decoding = bench.generate(1, 3, 5);
    bench.scheduler.step();
    let _prompt = bench.prefill(2, 40);
    bench.scheduler.step();
    assert_eq!(bench.rows(), [vec![3], vec![1, 8]]);
}

#[test]
fn short_prompts_fill_a_step() {
    let mut bench = Bench::new(64);
    let _replies = (bench.prefill(1, 8), bench.prefill(2, 8), bench.prefill(3, 2));
    bench.scheduler.step();
    assert_eq!(bench.rows(), [[8, 6, 2]]);
}
