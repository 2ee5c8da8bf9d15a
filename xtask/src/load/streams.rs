//! Concurrent streams with tools; 5 % of the clients leave in the middle of them.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::clients::{Clients, Leaving};
use super::figure::{Figure, percentile};
use super::program::{Lm, Server};
use super::reply::Reply;
use super::requests;

const NAME: &str = "streams";
/// Growth of the resident memory after the warm-up that counts as flat, in percent.
const FLAT: f64 = 5.0;

/// Runs the clients for a time; its first quarter is the warm-up of the memory.
pub fn run(lm: &Lm, clients: usize, seconds: u64) -> Result<Vec<Figure>> {
    let server = Server::start(lm, &[])?;
    let at_start = server.resident();
    let (began, time) = (Instant::now(), Duration::from_secs(seconds));
    let clients = Clients {
        addr: &server.addr,
        number: clients,
        until: began + time,
        request: &requests::with_tools,
        leaving: Leaving::Some,
    };
    let (replies, warm) = thread::scope(|scope| {
        let running = scope.spawn(|| clients.run());
        thread::sleep(time / 4);
        let warm = server.resident();
        (running.join().unwrap_or_default(), warm)
    });
    let elapsed = began.elapsed();
    let at_end = server.resident();
    let mut figures = latencies(NAME, &replies, elapsed);
    figures.extend([
        Figure::new(NAME, "resident memory, start", at_start, "MB"),
        Figure::new(NAME, "resident memory, after the warm-up", warm, "MB"),
        Figure::new(NAME, "resident memory, end", at_end, "MB"),
        Figure::new(NAME, "growth after the warm-up", (at_end / warm - 1.0) * 100.0, "%").at_most(FLAT),
    ]);
    Ok(figures)
}

/// Counts, times and rate of replies.
pub fn latencies(name: &'static str, replies: &[Reply], elapsed: Duration) -> Vec<Figure> {
    let left = replies.iter().filter(|reply| reply.left).count();
    let complete: Vec<&Reply> = replies.iter().filter(|reply| reply.is_complete()).collect();
    let ttft: Vec<f64> = complete.iter().filter_map(|reply| reply.ttft).collect();
    let gaps: Vec<f64> = complete.iter().flat_map(|reply| reply.gaps.iter().copied()).collect();
    let tokens: usize = complete.iter().map(|reply| reply.tokens).sum();
    let refused = replies.iter().filter(|reply| reply.status == 429).count();
    let failed: Vec<&Reply> =
        replies.iter().filter(|reply| !reply.left && reply.status != 429 && !reply.is_complete()).collect();
    if let Some(reply) = failed.first() {
        eprintln!("first of {} failed replies: {reply:?}", failed.len());
    }
    vec![
        Figure::count(name, "complete replies", complete.len()).at_least(1.0),
        Figure::count(name, "clients that left", left),
        Figure::count(name, "replies with 429", refused),
        Figure::count(name, "other replies", failed.len()).at_most(0.0),
        Figure::new(name, "time to first token, p50", percentile(&ttft, 50), "ms"),
        Figure::new(name, "time to first token, p99", percentile(&ttft, 99), "ms"),
        Figure::new(name, "between tokens, p50", percentile(&gaps, 50), "ms"),
        Figure::new(name, "between tokens, p99", percentile(&gaps, 99), "ms"),
        Figure::new(name, "rate of complete replies", tokens as f64 / elapsed.as_secs_f64(), "tokens/s"),
    ]
}
