//! SIGTERM during streams: the server is no longer ready, the streams end as they should, and the program
//! ends with 0.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::figure::Figure;
use super::program::{Lm, Server};
use super::reply::{PATH, Reply, milliseconds};
use super::requests;
use super::wire::Connection;

const NAME: &str = "shutdown";
const STREAMS: usize = 16;
/// Longest wait for the first tokens, and for the end of the readiness.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs streams of this many tokens, and ends the server after the first tokens of all of them.
pub fn run(lm: &Lm, tokens: usize) -> Result<Vec<Figure>> {
    let mut server = Server::start(lm, &[])?;
    ensure!(ready(&server.addr) == Some(200), "the server is not ready");
    let body = requests::merged(requests::of_length(tokens), requests::streamed()).to_string();
    let (started, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (replies, asked, unready, running) = thread::scope(|scope| -> Result<_> {
        let stream = || {
            let reply = stream(&server.addr, &body, &started);
            ended.fetch_add(1, Ordering::AcqRel);
            reply
        };
        let streams: Vec<_> = (0..STREAMS).map(|_| scope.spawn(stream)).collect();
        wait(|| started.load(Ordering::Acquire) == STREAMS)?;
        let asked = Instant::now();
        server.terminate()?;
        wait(|| ready(&server.addr) != Some(200))?;
        let unready = asked.elapsed();
        let running = STREAMS - ended.load(Ordering::Acquire);
        refuses(&server.addr)?;
        let replies: Vec<Reply> =
            streams.into_iter().map(|stream| stream.join().unwrap_or_default()).collect();
        Ok((replies, asked, unready, running))
    })?;
    let streams_end = asked.elapsed();
    let status = server.wait()?;
    let complete = replies.iter().filter(|reply| reply.is_complete()).count();
    let whole = replies.iter().filter(|reply| reply.tokens == tokens).count();
    Ok(vec![
        Figure::new(NAME, "SIGTERM to the end of readiness", milliseconds(unready), "ms"),
        Figure::count(NAME, "streams that still ran then", running).at_least(STREAMS as f64),
        Figure::count(NAME, "complete streams", complete).at_least(STREAMS as f64),
        Figure::count(NAME, "streams with all their tokens", whole).at_least(STREAMS as f64),
        Figure::new(NAME, "SIGTERM to the end of the streams", streams_end.as_secs_f64(), "s"),
        Figure::new(
            NAME,
            "end of the streams to that of the program",
            milliseconds(asked.elapsed() - streams_end),
            "ms",
        ),
        Figure::new(NAME, "exit code", status.code().map_or(f64::NAN, f64::from), "").at_most(0.0),
    ])
}

/// Reads a stream; counts it in `started` at its first token.
fn stream(addr: &str, body: &str, started: &AtomicUsize) -> Reply {
    let begins = |outputs| {
        started.fetch_add(usize::from(outputs == 1), Ordering::AcqRel);
        false
    };
    match Connection::open(addr) {
        Ok(mut connection) => Reply::read_until(&mut connection, body, begins),
        Err(error) => Reply::unconnected(&error),
    }
}

/// Status of `/ready` on a separate connection; `None` if the server does not listen, or closes the
/// connection: it ends.
fn ready(addr: &str) -> Option<u16> {
    let head = Connection::open(addr).and_then(|mut connection| connection.get("/ready"));
    head.ok().map(|head| head.status)
}

/// Fails if a new request is answered, and not with 503.
fn refuses(addr: &str) -> Result<()> {
    let body = requests::of_length(1).to_string();
    let head = Connection::open(addr).and_then(|mut connection| connection.post(PATH, &body));
    if let Ok(head) = head {
        ensure!(head.status == 503, "a request after SIGTERM is answered with {}, not 503", head.status);
        ensure!(head.retry_after.is_some(), "the 503 has no Retry-After");
    }
    Ok(())
}

fn wait(until: impl Fn() -> bool) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if until() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    bail!("nothing happened in {PATIENCE:?}")
}
