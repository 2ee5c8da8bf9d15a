//! Ten times as many clients as the queue takes: each request is answered, or refused with 429.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::clients::{Clients, Leaving};
use super::figure::Figure;
use super::program::{Lm, Server};
use super::requests;
use super::streams::latencies;

const NAME: &str = "queue";
/// Requests that run at the same time.
const PARALLEL: &str = "8";

/// Runs the clients for a time.
pub fn run(lm: &Lm, queue: usize, seconds: u64) -> Result<Vec<Figure>> {
    let server = Server::start(lm, &["--parallel", PARALLEL, "--queue", &queue.to_string()])?;
    let began = Instant::now();
    let clients = Clients {
        addr: &server.addr,
        number: 10 * queue,
        until: began + Duration::from_secs(seconds),
        request: &requests::with_tools,
        leaving: Leaving::Some,
    };
    let replies = clients.run();
    let elapsed = began.elapsed();
    let refused = || replies.iter().filter(|reply| reply.status == 429);
    let without_time = refused().filter(|reply| reply.retry_after.is_none_or(|seconds| seconds == 0));
    let mut figures = latencies(NAME, &replies, elapsed);
    figures.push(Figure::count(NAME, "429 without a time to retry", without_time.count()).at_most(0.0));
    Ok(figures)
}
