//! Tokens a second through HTTP, and of the same requests to the engine alone (`lm batch`), by turns.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::figure::{Figure, median};
use super::program::{Lm, Server};
use super::reply::{PATH, Reply, tokens};
use super::requests;
use super::wire::Connection;

const NAME: &str = "overhead";
/// Share of the engine's rate that is the goal.
const GOAL: f64 = 97.0;

/// Measures replies of `tokens` tokens, `requests` a stream, with one stream and with eight.
pub fn run(lm: &Lm, tokens: usize, requests: usize, runs: usize) -> Result<Vec<Figure>> {
    let (mut batch, server) = (Batch::start(lm)?, Server::start(lm, &[])?);
    let whole = requests::of_length(tokens);
    let streamed = requests::merged(whole.clone(), requests::streamed()).to_string();
    let whole = whole.to_string();
    let mut figures = Vec::new();
    for streams in [1, 8] {
        let mut rates: [Vec<f64>; 3] = Default::default();
        // The first round is a warm-up.
        for round in 0..=runs {
            let turn = [
                batch.turn(&whole, streams, requests)?,
                through_http(&server.addr, streams, requests, |connection| answer(connection, &whole))?,
                through_http(&server.addr, streams, requests, |connection| stream(connection, &streamed))?,
            ];
            let expected = tokens * requests * streams;
            for (rates, (generated, seconds)) in rates.iter_mut().zip(turn).filter(|_| round > 0) {
                ensure!(generated == expected, "{generated} tokens were generated, expected {expected}");
                rates.push(generated as f64 / seconds);
            }
        }
        figures.extend(compared(streams, &rates));
    }
    Ok(figures)
}

fn compared(streams: usize, [engine, whole, streamed]: &[Vec<f64>; 3]) -> [Figure; 5] {
    let share = |rates: &[f64]| {
        let shares: Vec<f64> =
            std::iter::zip(rates, engine).map(|(rate, engine)| rate / engine * 100.0).collect();
        median(&shares)
    };
    let rate = |name: &str, rates: &[f64]| {
        Figure::new(NAME, format!("{streams} × {name}"), median(rates), "tokens/s")
    };
    let of_engine = |name: &str, rates: &[f64]| {
        Figure::new(NAME, format!("{streams} × {name} of engine"), share(rates), "%").at_least(GOAL)
    };
    [
        rate("engine", engine),
        rate("HTTP, one object", whole),
        of_engine("HTTP, one object,", whole),
        rate("HTTP, streamed", streamed),
        of_engine("HTTP, streamed,", streamed),
    ]
}

/// A running `lm batch`, which answers lines as they come.
struct Batch {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Batch {
    fn start(lm: &Lm) -> Result<Self> {
        let mut child = lm
            .command("batch")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start `lm batch`")?;
        let input = child.stdin.take().context("`lm batch` has no standard input")?;
        let output = child.stdout.take().context("`lm batch` has no standard output")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Answers `requests` times `streams` requests, `streams` at a time; returns the number of tokens and the
    /// seconds.
    fn turn(&mut self, body: &str, streams: usize, requests: usize) -> Result<(usize, f64)> {
        let began = Instant::now();
        let (line, all) = (format!("{body}\n"), requests * streams);
        let mut answers = Vec::with_capacity(all);
        self.input.write_all(line.repeat(streams).as_bytes())?;
        while answers.len() < all {
            let mut answer = String::new();
            ensure!(self.output.read_line(&mut answer)? > 0, "`lm batch` has ended");
            answers.push(answer);
            if answers.len() + streams <= all {
                self.input.write_all(line.as_bytes())?;
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let answers: Vec<Value> =
            answers.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?;
        Ok((answers.iter().map(tokens).sum(), seconds))
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers `requests` requests on each of `streams` connections; returns the number of tokens and the
/// seconds.
fn through_http(
    addr: &str,
    streams: usize,
    requests: usize,
    answer: impl Fn(&mut Connection) -> Result<usize> + Sync,
) -> Result<(usize, f64)> {
    let mut connections = (0..streams).map(|_| Connection::open(addr)).collect::<Result<Vec<_>>>()?;
    let began = Instant::now();
    let client =
        |connection: &mut Connection| (0..requests).map(|_| answer(&mut *connection)).sum::<Result<usize>>();
    let generated = thread::scope(|scope| {
        let client = |connection| scope.spawn(|| client(connection));
        let clients: Vec<_> = connections.iter_mut().map(client).collect();
        let panicked = |_| Err(anyhow!("a client's thread panicked"));
        clients.into_iter().map(|client| client.join().unwrap_or_else(panicked)).sum::<Result<usize>>()
    })?;
    Ok((generated, began.elapsed().as_secs_f64()))
}

fn answer(connection: &mut Connection, body: &str) -> Result<usize> {
    let head = connection.post(PATH, body)?;
    let text = connection.body(&head)?;
    ensure!(head.status == 200, "the server answers {text}");
    Ok(tokens(&serde_json::from_str(&text)?))
}

fn stream(connection: &mut Connection, body: &str) -> Result<usize> {
    let reply = Reply::read(connection, body);
    ensure!(reply.is_complete(), "a stream failed: {reply:?}");
    Ok(reply.tokens)
}
