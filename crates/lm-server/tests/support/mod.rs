//! A server in the background, and an HTTP client that sends exactly what a test says.
#![allow(dead_code, reason = "no test program uses all of it")]

pub mod operations;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lm_conversation::{ConversationConfig, LoadOptions, ModelFolder, PromptTemplate};
use lm_model::testing::{FakeAudio, FakeVision, HookedLm};
use lm_server::{ServedModel, Server, ServerConfig, ShutdownHandle};
use lm_session::testing::{FakeLm, loaded, scripted_engine, tokenizer};
use lm_session::{Engine, EngineSettings, LoadedModel};
use serde_json::{Value, json};

/// Longest wait for bytes of a server.
const PATIENCE: Duration = Duration::from_secs(120);

const TEMPLATE: &str = "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}";

/// Writes the placeholders of [`FakeVision`] for an image and of [`FakeAudio`] for an audio clip.
const MEDIA: &str = "{% for m in messages %}{{ m.role + ': ' }}{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}\
                        {% if part.type == 'image' %}<tool_response>{% elif part.type == 'audio' %}</tool_response>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{{ '\n' }}{% endfor %}";

/// An empty store of conversations.
pub fn store() -> Arc<lm_store::Store> {
    Arc::new(lm_store::Store::in_memory().expect("a store"))
}

/// Model of an engine without a chat template, also named `other/name`.
pub fn model(engine: Engine) -> ServedModel {
    let template = Some(PromptTemplate::new(TEMPLATE).expect("it compiles"));
    let defaults = ConversationConfig { template, ..ConversationConfig::from_engine(&engine) };
    ServedModel::new(engine, defaults).alias("other/name")
}

/// A running server; it ends when it is dropped.
pub struct Running {
    pub addr: SocketAddr,
    pub shutdown: ShutdownHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Serves an engine without a chat template with this configuration on a free port.
    pub fn start(engine: Engine, config: ServerConfig) -> Self {
        Self::serve(model(engine), config)
    }

    /// Serves the embedded model as `pocket` and `gpt-4o-mini`.
    pub fn embedded(settings: EngineSettings, config: ServerConfig) -> Self {
        let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
        let engine = Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).expect("it loads");
        let defaults = ConversationConfig::from_engine(&engine);
        Self::serve(ServedModel::new(engine, defaults).alias("gpt-4o-mini"), config)
    }

    /// Serves a model on a free port.
    pub fn serve(model: ServedModel, config: ServerConfig) -> Self {
        Self::serve_all(vec![model], config)
    }

    /// Serves models on a free port.
    pub fn serve_all(models: Vec<ServedModel>, config: ServerConfig) -> Self {
        let config = ServerConfig { addr: ([127, 0, 0, 1], 0).into(), ..config };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let server = runtime.block_on(Server::bind(models, config)).expect("it listens");
        let (addr, shutdown) = (server.local_addr(), server.shutdown_handle());
        let thread = Some(std::thread::spawn(move || runtime.block_on(server.run())));
        Self { addr, shutdown, thread }
    }

    /// Serves a model that reads images and audio.
    pub fn with_media(model: FakeLm) -> Self {
        let (vision, audio) = (Arc::new(FakeVision::default()), Arc::new(FakeAudio::default()));
        Self::of_media_model(LoadedModel { vision: Some(vision), audio: Some(audio), ..loaded(model) })
    }

    /// Serves a model that reads audio and no images.
    pub fn hearing(model: FakeLm) -> Self {
        let audio = Arc::new(FakeAudio::default());
        Self::of_media_model(LoadedModel { audio: Some(audio), ..loaded(model) })
    }

    fn of_media_model(model: LoadedModel) -> Self {
        let engine = Engine::new(model, EngineSettings::default()).expect("an engine");
        let template = Some(PromptTemplate::new(MEDIA).expect("it compiles"));
        let defaults = ConversationConfig { template, ..ConversationConfig::from_engine(&engine) };
        Self::serve(ServedModel::new(engine, defaults), ServerConfig::default())
    }

    /// Serves replies, one after another.
    pub fn scripted<const N: usize>(replies: [&'static str; N], config: ServerConfig) -> Self {
        Self::start(scripted_engine(replies), config)
    }

    /// Sends a request, and waits for the whole response.
    pub fn send(&self, request: &Request) -> Response {
        let mut client = self.open(request);
        let (status, headers) = client.head();
        Response { status, headers, body: client.rest() }
    }

    /// Sends a request, and leaves its response to the caller.
    pub fn open(&self, request: &Request) -> Client {
        let mut client = self.connect();
        client.write(request.text().as_bytes());
        client
    }

    /// Opens a connection.
    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.addr).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        Client(BufReader::new(stream))
    }

    pub fn get(&self, path: &str) -> Response {
        self.send(&Request::new("GET", path))
    }

    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.send(&Request::new("POST", path).body(body))
    }

    /// Waits for the end of the server.
    pub fn wait(mut self) {
        self.thread.take().expect("it runs").join().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.begin();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A request; each has a connection of its own.
#[derive(Clone, Debug)]
pub struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Request {
    pub fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: String::new() }
    }

    pub fn chat(fields: Value) -> Self {
        Self::new("POST", "/v1/chat/completions").body(&chat(fields))
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn body(self, body: &Value) -> Self {
        self.text_body(&body.to_string())
    }

    pub fn text_body(self, body: &str) -> Self {
        Self { body: body.to_owned(), ..self }
    }

    pub fn text(&self) -> String {
        let Self { method, path, headers, body } = self;
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += "Host: localhost\r\n";
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text + "\r\n" + body
    }
}

/// Body of a chat completion: one message, and these fields.
pub fn chat(fields: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Hello"}]});
    if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
        body.extend(fields);
    }
    body
}

/// Values of all types, sizes and signs for a field.
pub fn values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(2),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("a\u{0}\u{fffd}"),
        json!("x".repeat(20_000)),
        json!([]),
        json!([null]),
        json!(["a", "b"]),
        json!([[-1], {}]),
        json!({}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        json!({"type": "json_schema", "json_schema": {"schema": {"enum": []}}}),
        json!({"type": "enabled", "effort": -1, "include_usage": 1, "temperature": "hot", "5": "x"}),
    ]
}

/// A connection.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("the server reads");
    }

    /// Says that no more bytes come.
    pub fn close_half(&mut self) {
        self.0.get_ref().shutdown(std::net::Shutdown::Write).expect("it is open");
    }

    /// Reads the status and the headers, with names in lower case.
    pub fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        (status.unwrap_or_else(|| panic!("{first:?} has a status")), headers)
    }

    /// Reads a line; empty at the end of the connection.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server answers");
        line.trim_end().to_owned()
    }

    /// Reads until the line of an event begins like this.
    pub fn event(&mut self, start: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// Reads to the end, in text that can have the sizes of chunks in it.
    pub fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes);
        String::from_utf8(bytes).expect("UTF-8")
    }
}

/// A whole response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// Status, type and code of an error.
    pub fn error(&self) -> (u16, String, Option<String>) {
        let error = &self.json()["error"];
        let text = |key: &str| error[key].as_str().map(str::to_owned);
        assert!(error["message"].is_string() && error.get("param").is_some(), "{error}");
        (self.status, text("type").expect("a type"), text("code"))
    }

    /// Data of the events of a stream.
    pub fn events(&self) -> Vec<String> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(str::to_owned).collect()
    }
}

/// Waits until `reached` is true; panics with what was expected if that does not happen.
pub fn wait_until(reached: impl Fn() -> bool, expected: &str) {
    let end = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < end, "not so: {expected}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Counter of forward passes.
#[derive(Clone, Default)]
pub struct Passes(Arc<AtomicUsize>);

impl Passes {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Counts a pass.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Waits for this many passes; panics if they do not come.
    pub fn wait_for(&self, number: usize) {
        wait_until(|| self.count() >= number, "the engine works");
    }

    /// Waits until no pass has run for half a second; panics if that does not happen.
    pub fn wait_for_silence(&self) {
        for _ in 0..60 {
            let before = self.count();
            std::thread::sleep(Duration::from_millis(500));
            if self.count() == before {
                return;
            }
        }
        panic!("the engine still works");
    }
}

/// Engine that needs this long for each pass, and never ends a reply by itself.
pub fn slow_engine(pass: Duration, settings: EngineSettings) -> (Engine, Passes) {
    let passes = Passes::default();
    let counted = passes.clone();
    let endless = std::iter::repeat_n(["word "; 400].concat(), 64);
    let model = FakeLm::scripted(&tokenizer(), endless);
    let model = HookedLm::new(Arc::new(model)).before_pass(move |_| {
        counted.add();
        std::thread::sleep(pass);
        Ok(())
    });
    (Engine::new(loaded(model), settings).expect("it fits"), passes)
}
