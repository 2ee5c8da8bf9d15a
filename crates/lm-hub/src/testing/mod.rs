//! Hub server on loopback for tests: the endpoints that downloads use, and injected network faults.

mod http;
mod repository;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use http::{Reply, Request};
pub use repository::{Access, Storage, TestFile, TestRepo};

/// The valid token of [`HubServer`].
pub const TOKEN: &str = "hf_test";

/// Two servers on loopback: one with the repositories, and the redirect target of large files.
///
/// ```
/// use lm_hub::testing::{HubServer, TestFile, TestRepo};
/// use lm_hub::{Cache, Hub, HubSettings};
///
/// let files = vec![TestFile::text("config.json", "{}"), TestFile::large("model.safetensors", vec![7; 1000])];
/// let server = HubServer::start(vec![TestRepo::new("owner/tiny", files)])?;
/// let folder = tempfile::tempdir()?;
/// let hub = Hub::new(HubSettings::new(server.url(), Cache::new(folder.path())))?;
/// let model = hub.fetch(&hub.plan(&"owner/tiny".parse()?)?, &mut |_| {})?;
/// assert_eq!(std::fs::read(model.join("model.safetensors"))?, vec![7; 1000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HubServer {
    hub: SocketAddr,
    files: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    stopped: AtomicBool,
    repos: Vec<TestRepo>,
    faults: Mutex<VecDeque<(String, Fault)>>,
    seen: Mutex<Vec<Seen>>,
}

/// Fault injected into one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection closes after this many bytes of the body.
    CutAfter(usize),
    /// The connection stalls after this many bytes of the body.
    StallAfter(usize),
    /// The first byte of the body is wrong.
    WrongByte,
    /// The range is ignored: the response is the whole file.
    IgnoreRange,
    /// The range begins one byte later than requested.
    ShiftRange,
    /// The file is one byte longer than announced.
    Longer,
    /// The response has this status, and no file.
    Status(u16),
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// `GET` or `HEAD`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// True if the server of large files received it.
    pub at_files: bool,
    /// The `Range` header.
    pub range: Option<String>,
    /// The `Authorization` header.
    pub authorization: Option<String>,
}

impl HubServer {
    /// Starts both servers, on free ports.
    ///
    /// # Errors
    /// When no port is available.
    pub fn start(repos: Vec<TestRepo>) -> io::Result<Self> {
        let [hub, files] = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let (hub_at, files_at) = (hub.local_addr()?, files.local_addr()?);
        let shared = Arc::new(Shared {
            stopped: AtomicBool::new(false),
            repos,
            faults: Mutex::default(),
            seen: Mutex::default(),
        });
        for (listener, at_files) in [(hub, false), (files, true)] {
            let shared = shared.clone();
            thread::spawn(move || serve(&listener, &shared, files_at, at_files));
        }
        Ok(Self { hub: hub_at, files: files_at, shared })
    }

    /// The endpoint, for `HF_ENDPOINT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.hub)
    }

    /// Injects a fault into the next response with the bytes of this path; faults of one path occur in the
    /// order given.
    pub fn fail(&self, path: &str, fault: Fault) {
        lock(&self.shared.faults).push_back((path.to_owned(), fault));
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }
}

impl Drop for HubServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // A connection wakes each listener, which then sees the stop flag.
        for address in [self.hub, self.files] {
            let _ = TcpStream::connect(address);
        }
    }
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>, files_at: SocketAddr, at_files: bool) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = shared.clone();
        thread::spawn(move || {
            // A client that disconnects is not an error of the server.
            let _ = respond(stream, &shared, files_at, at_files);
        });
    }
}

fn respond(mut stream: TcpStream, shared: &Shared, files_at: SocketAddr, at_files: bool) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let Some(request) = Request::read(&stream)? else { return Ok(()) };
    lock(&shared.seen).push(Seen {
        method: request.method.clone(),
        path: request.path.clone(),
        at_files,
        range: request.header("range"),
        authorization: request.header("authorization"),
    });
    let reply = repository::reply(&shared.repos, &request, files_at, at_files);
    let fault = match &reply {
        Reply { file: Some(path), .. } if request.method == "GET" => shared.next_fault(path),
        _ => None,
    };
    reply.write(&mut stream, &request, fault)
}

impl Shared {
    fn next_fault(&self, path: &str) -> Option<Fault> {
        let mut faults = lock(&self.faults);
        let index = faults.iter().position(|(of, _)| of == path)?;
        faults.remove(index).map(|(_, fault)| fault)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
