//! Streams beside clients that read one byte a second, and beside the same clients when they read at once.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::clients::{Clients, Leaving};
use super::figure::{Figure, median, percentile};
use super::program::{Lm, Server};
use super::reply::{PATH, Reply};
use super::requests;
use super::wire::Connection;

const NAME: &str = "slow-reader";
const STREAMS: usize = 8;
/// Time of a turn.
const TURN: Duration = Duration::from_secs(5);
/// Requests that the slow reader sends in a turn.
const REQUESTS: u32 = 2;
/// Ratio of the 99th percentiles with a slow reader and with a fast one that counts as no slowdown.
const RATIO: f64 = 1.25;

/// A client beside the streams.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    None,
    /// Reads at once.
    Fast,
    /// Reads one byte a second.
    Slow,
}

/// Runs the streams without it, with a fast and with a slow reader, by turns.
pub fn run(lm: &Lm, runs: usize) -> Result<Vec<Figure>> {
    let server = Server::start(lm, &[])?;
    let mut turns = [Reader::None, Reader::Fast, Reader::Slow].map(|reader| (reader, Vec::new()));
    for _ in 0..runs {
        for (reader, p99) in &mut turns {
            p99.push(turn(&server, *reader)?);
        }
    }
    let [alone, fast, slow] = turns.map(|(_, p99)| p99);
    let ratios: Vec<f64> = std::iter::zip(&slow, &fast).map(|(slow, fast)| slow / fast).collect();
    Ok(vec![
        Figure::new(NAME, "between tokens, p99, alone", median(&alone), "ms"),
        Figure::new(NAME, "between tokens, p99, with a fast reader", median(&fast), "ms"),
        Figure::new(NAME, "between tokens, p99, with a slow reader", median(&slow), "ms"),
        Figure::new(NAME, "slow reader / fast reader", median(&ratios), "x").at_most(RATIO),
    ])
}

/// Runs a turn; returns the 99th percentile of the times between the streams' tokens in milliseconds.
fn turn(server: &Server, reader: Reader) -> Result<f64> {
    let until = Instant::now() + TURN;
    let request = |_| requests::merged(requests::of_length(128), requests::streamed());
    let streams =
        Clients { addr: &server.addr, number: STREAMS, until, request: &request, leaving: Leaving::None };
    thread::scope(|scope| {
        let streams = scope.spawn(|| streams.run());
        let readers = (0..if reader == Reader::None { 0 } else { REQUESTS }).map(|number| {
            let start = TURN * number / REQUESTS;
            scope.spawn(move || {
                thread::sleep(start);
                read(&server.addr, reader, until)
            })
        });
        // All of them are started before the first is waited for.
        let readers: Vec<_> = readers.collect();
        for reader in readers {
            reader.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the reader's thread panicked")))?;
        }
        let replies = streams.join().unwrap_or_default();
        ensure!(replies.iter().all(Reply::is_complete), "a stream beside the reader failed: {replies:?}");
        let gaps: Vec<f64> = replies.into_iter().flat_map(|reply| reply.gaps).collect();
        Ok(percentile(&gaps, 99))
    })
}

/// Sends a request whose response is larger than what the system keeps for a connection, and reads it.
fn read(addr: &str, reader: Reader, until: Instant) -> Result<()> {
    let wide = json!({"logprobs": true, "top_logprobs": 20, "n": 4});
    let body = requests::merged(requests::of_length(1000), requests::streamed());
    let body = requests::merged(body, wide).to_string();
    let mut connection = Connection::open(addr)?;
    if reader == Reader::Fast {
        let reply = Reply::read(&mut connection, &body);
        ensure!(reply.is_complete(), "the fast reader's stream failed: {reply:?}");
        return Ok(());
    }
    connection.send("POST", PATH, &body)?;
    while Instant::now() < until {
        connection.byte()?;
        thread::sleep(Duration::from_secs(1).min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}
