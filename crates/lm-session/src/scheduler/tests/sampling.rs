//! Tokens on the sampling threads, and the end of an engine.

use super::*;
use crate::scheduler::sampling_job::Sampled;

#[test]
fn requests_continue_while_another_is_sampled() {
    let mut bench = Bench::new(64);
    let sampled = SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    let slow = bench.sample(1, 3, 2, &sampled);
    let fast = bench.generate(2, 3, 4);
    while !bench.scheduler.active.iter().all(Active::is_sampling) {
        bench.scheduler.step(); // The answers of the sampling threads stay in the channel.
    }
    assert_eq!((tokens(&slow).len(), tokens(&fast).len()), (0, 4));
    assert!(!bench.scheduler.is_runnable());
    for _ in 0..2 {
        let command = bench.commands.recv().unwrap();
        bench.scheduler.handle(command);
        bench.scheduler.step();
    }
    assert_eq!(tokens(&slow).len(), 2);
    assert!(bench.scheduler.is_idle());
}

#[test]
fn generation_is_cancelled_during_sampling() {
    let mut bench = Bench::new(64);
    let sampled = SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    let replies = bench.sample(1, 3, 9, &sampled);
    bench.scheduler.step();
    bench.cancel.cancel();
    bench.scheduler.step();
    let last = received(&replies).last();
    let Some(Reply::Event(SessionEvent::Finished(finished))) = last else { panic!("{last:?}") };
    assert_eq!((finished.reason, finished.usage.prompt_tokens), (FinishReason::Cancelled, 3));
    assert!(bench.scheduler.is_idle());
    // The token is late and dropped, or is not sampled.
    while let Ok(command) = bench.commands.recv_timeout(Duration::from_millis(200)) {
        bench.scheduler.handle(command);
    }
    assert!(bench.scheduler.is_idle());
}

#[test]
fn token_of_an_earlier_request_is_dropped() {
    let mut bench = Bench::new(64);
    let sampled = SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    let first = bench.sample(1, 3, 9, &sampled);
    bench.scheduler.step();
    let number = bench.scheduler.active[0].number;
    let second = bench.sample(1, 40, 9, &sampled);
    let outcome = Err(Error::WorkerPanicked { message: "too late".to_owned() });
    let late = Sampled { request: number, ids: vec![7], generated: Vec::new(), outcome };
    bench.scheduler.handle(Command::Sampled(Box::new(late)));
    assert_eq!((tokens(&first).len(), tokens(&second).len()), (0, 0));
    assert_eq!(bench.scheduler.active[0].request.ids.len(), 40);
}

#[test]
fn engine_is_not_drained_during_sampling() {
    let mut bench = Bench::new(8);
    let sampled = SamplerParams { temperature: 1.0, ..SamplerParams::default() };
    let running = bench.sample(1, 3, 1, &sampled);
    bench.scheduler.handle(Command::Shutdown);
    bench.scheduler.step();
    assert!(!bench.scheduler.is_drained());
    let command = bench.commands.recv().unwrap();
    bench.scheduler.handle(command);
    assert!(bench.scheduler.is_drained());
    assert_eq!(tokens(&running).len(), 1);
}

#[test]
fn shutdown_rejects_new_and_runs_current_requests() {
    let mut bench = Bench::new(8);
    let running = bench.generate(1, 3, 4);
    bench.scheduler.handle(Command::Shutdown);
    let rejected = bench.generate(2, 3, 4);
    assert!(matches!(rejected.try_recv(), Ok(Reply::Failed { error: Error::EngineStopped, .. })));
    assert!(!bench.scheduler.is_drained());
    bench.steps_until_idle();
    assert_eq!(tokens(&running).len(), 4);
    assert!(bench.scheduler.is_drained());
}
