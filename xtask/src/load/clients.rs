//! Clients that send one request after another until a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::reply::Reply;
use super::wire::Connection;

/// One in this many clients leaves in the middle of its stream.
const LEAVES: usize = 20;

/// Clients of one kind.
pub struct Clients<'a> {
    pub addr: &'a str,
    pub number: usize,
    pub until: Instant,
    /// Request of a number, which counts up over all clients.
    pub request: &'a (dyn Fn(usize) -> Value + Sync),
    pub leaving: Leaving,
}

/// Clients that leave before the end of their streams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    None,
    /// 5 % of them.
    Some,
}

impl Clients<'_> {
    /// Runs them; a started stream is read to its end. Returns all replies.
    pub fn run(&self) -> Vec<Reply> {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let clients: Vec<_> = (0..self.number).map(|_| scope.spawn(|| self.client(&next))).collect();
            clients.into_iter().flat_map(|client| client.join().unwrap_or_default()).collect()
        })
    }

    fn client(&self, next: &AtomicUsize) -> Vec<Reply> {
        let (mut connection, mut replies) = (None, Vec::new());
        while Instant::now() < self.until {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let leave_after = self.leave_after(number);
            let reply = self.reply(&mut connection, number, leave_after);
            if reply.left || reply.error.is_some() {
                connection = None;
            }
            if reply.status == 429 {
                let wait = Duration::from_secs(reply.retry_after.unwrap_or(1));
                thread::sleep(wait.min(self.until.saturating_duration_since(Instant::now())));
            }
            replies.push(reply);
        }
        replies
    }

    fn reply(&self, connection: &mut Option<Connection>, number: usize, leave_after: Option<usize>) -> Reply {
        let body = (self.request)(number).to_string();
        let opened = match connection.take() {
            Some(open) => Ok(open),
            None => Connection::open(self.addr),
        };
        match opened {
            Ok(open) => {
                Reply::read_until(connection.insert(open), &body, |outputs| Some(outputs) == leave_after)
            }
            Err(error) => Reply::unconnected(&error),
        }
    }

    /// Number of events after which the client of a request leaves.
    fn leave_after(&self, number: usize) -> Option<usize> {
        let leaves = self.leaving == Leaving::Some && number % LEAVES == LEAVES - 1;
        leaves.then_some(1 + number / LEAVES % 8)
    }
}
