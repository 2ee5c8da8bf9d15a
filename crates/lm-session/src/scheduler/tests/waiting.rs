//! Requests that wait for a place in the batch.

use super::*;

/// A scheduler that runs one request at a time.
fn one_at_a_time() -> Bench {
    let mut bench = Bench::new(64);
    bench.scheduler.max_running = 1;
    bench
}

#[test]
fn equal_priority_requests_run_in_order_of_arrival() {
    let mut bench = one_at_a_time();
    // The length of the prompt identifies the request.
    let _replies = [(1, 3), (2, 4), (3, 5), (4, 6)].map(|(session, len)| bench.prefill(session, len));
    bench.steps_until_idle();
    assert_eq!(bench.rows(), [[3], [4], [5], [6]]);
}

#[test]
fn waiting_request_ends_at_its_deadline() {
    let mut bench = one_at_a_time();
    let running = bench.prefill(1, 3 * CHUNK);
    bench.scheduler.step();
    bench.deadline = Some(Instant::now());
    let late = bench.generate(2, 3, 5);
    bench.scheduler.step();
    let last = received(&late).last();
    let Some(Reply::Event(SessionEvent::Finished(finished))) = last else { panic!("{last:?}") };
    assert_eq!(finished.reason, FinishReason::DeadlineExceeded);
    assert!(running.try_recv().is_err(), "the other one has not ended");
    assert_eq!(bench.rows(), [[CHUNK], [CHUNK]]);
}
