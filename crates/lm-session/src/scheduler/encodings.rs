//! Encoded media: a thread that runs the encoders, and a cache of their results.

use std::collections::{HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use lm_model::EncodedMedia;

use crate::error::{Error, Result};
use crate::media::{Encoded, Encoders, Media, MediaKey};
use crate::panics::caught;
use crate::scheduler::engine_thread::mark_engine_thread;
use crate::scheduler::request::Command;

/// Encodings of an engine's media: cached and in progress.
pub(crate) struct Encodings {
    encoders: Encoders,
    cache: EncodingCache,
    /// Media waiting for the thread or being encoded.
    running: HashSet<MediaKey>,
    results: Sender<Command>,
    thread: Option<EncodingThread>,
    encoded: u64,
}

struct Job {
    media: Arc<Media>,
    /// Dropped when the request has ended: the job is then skipped.
    alive: Weak<()>,
}

struct EncodingThread {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Encodings {
    /// Creates an empty cache of `max_bytes`; the thread answers through `results`. Earlier caches of this
    /// engine have produced `encoded` encodings.
    pub fn new(encoders: Encoders, max_bytes: usize, results: Sender<Command>, encoded: u64) -> Self {
        let cache = EncodingCache { max_bytes, ..EncodingCache::default() };
        Self { encoders, cache, running: HashSet::new(), results, thread: None, encoded }
    }

    /// The model's encoders.
    pub fn encoders(&self) -> &Encoders {
        &self.encoders
    }

    /// Number of media encoded so far, including earlier caches.
    pub fn encoded(&self) -> u64 {
        self.encoded
    }

    /// Bytes of the cached encodings.
    pub fn cached_bytes(&self) -> usize {
        self.cache.bytes
    }

    /// Returns the encoding of `media`, if cached. Otherwise the thread starts it, for the request of
    /// `alive`.
    pub fn get(&mut self, media: &Arc<Media>, alive: &Arc<()>) -> Option<Arc<EncodedMedia>> {
        let found = self.cache.get(media.key());
        if found.is_none() && self.running.insert(media.key()) {
            self.start(Job { media: media.clone(), alive: Arc::downgrade(alive) });
        }
        found
    }

    fn start(&mut self, job: Job) {
        if self.thread.is_none() {
            self.thread = EncodingThread::start(self.encoders.clone(), &self.results);
        }
        let rejected = match &self.thread {
            Some(thread) => thread.jobs.send(job).err().map(|rejected| rejected.0),
            None => Some(job),
        };
        if let Some(Job { media, .. }) = rejected {
            // The system gives no thread.
            let encoded = Encoded { key: media.key(), outcome: Some(encode(&self.encoders, &media)) };
            let _ = self.results.send(Command::Encoded(encoded)); // The engine may have ended.
        }
    }

    /// Takes an answer of the thread, and returns the encoding or the error.
    pub fn finish(&mut self, encoded: Encoded) -> Option<Result<Arc<EncodedMedia>>> {
        let Encoded { key, outcome } = encoded;
        self.running.remove(&key);
        if let Some(Ok(encoding)) = &outcome {
            self.encoded += 1;
            self.cache.insert(key, encoding.clone());
        }
        outcome
    }
}

impl Drop for Encodings {
    fn drop(&mut self) {
        let Some(EncodingThread { jobs, thread }) = self.thread.take() else { return };
        drop(jobs); // Ends the thread after the jobs of requests that are alive.
        drop(thread.join()); // It catches panics.
    }
}

impl EncodingThread {
    /// Starts the thread; `None` if the system cannot.
    fn start(encoders: Encoders, results: &Sender<Command>) -> Option<Self> {
        let (jobs, received) = channel();
        let results = results.clone();
        let name = "lm-media".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || serve(&encoders, &received, &results));
        thread.ok().map(|thread| Self { jobs, thread })
    }
}

/// Encodes until the jobs end.
fn serve(encoders: &Encoders, jobs: &Receiver<Job>, results: &Sender<Command>) {
    mark_engine_thread();
    for Job { media, alive } in jobs {
        let wanted = alive.strong_count() > 0;
        let outcome = wanted.then(|| encode(encoders, &media));
        let _ = results.send(Command::Encoded(Encoded { key: media.key(), outcome })); // The engine may have ended.
    }
}

/// Decodes and encodes a media item; a panic becomes its error.
fn encode(encoders: &Encoders, media: &Media) -> Result<Arc<EncodedMedia>> {
    let span = tracing::info_span!("encode_media", kind = media.kind().name(), rows = media.rows());
    let _entered = span.enter();
    caught(|| {
        let encoded = encoders.encode(&media.decode()?)?;
        match encoded.rows.rows() == media.rows() {
            true => Ok(Arc::new(encoded)),
            false => {
                let (expected, found) = (media.rows(), encoded.rows.rows());
                Err(Error::MediaRows { kind: media.kind(), expected, found })
            }
        }
    })
}

/// Encodings within a number of bytes; the least recently used ones are dropped first.
#[derive(Default)]
struct EncodingCache {
    max_bytes: usize,
    bytes: usize,
    /// The least recently used first.
    entries: VecDeque<(MediaKey, Arc<EncodedMedia>)>,
}

impl EncodingCache {
    fn get(&mut self, key: MediaKey) -> Option<Arc<EncodedMedia>> {
        let index = self.entries.iter().position(|(known, _)| *known == key)?;
        let entry = self.entries.remove(index)?;
        let encoding = entry.1.clone();
        self.entries.push_back(entry);
        Some(encoding)
    }

    fn insert(&mut self, key: MediaKey, encoding: Arc<EncodedMedia>) {
        if self.get(key).is_some() {
            return;
        }
        self.bytes += encoding.bytes();
        self.entries.push_back((key, encoding));
        while self.bytes > self.max_bytes
            && let Some((_, dropped)) = self.entries.pop_front()
        {
            self.bytes -= dropped.bytes();
        }
    }
}
