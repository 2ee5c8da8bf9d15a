//! The web page, in headless Chromium: `page/*.mjs` drive it, with what `page/install` installs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{Request, Running, slow_engine};
use lm_conversation::{ConversationConfig, PromptTemplate};
use lm_server::{ApiKeys, DownloadProgress, Preset, ServedDownloads, ServedModel, ServedTools, ServerConfig};
use lm_session::EngineSettings;
use lm_session::testing::{FakeLm, scripted_engine, tokenizer};
use lm_tools::{CallContext, Map, ToolError, ToolErrorKind, ToolSpec, Toolset};
use serde_json::{Value, json};

/// ChatML with tools in the Hermes format.
const TEMPLATE: &str = include_str!("../../../testdata/templates/hermes.jinja");

/// A reply in Markdown.
const FIRST: &str = "# Reply one\n\nWith **bold**, a [link](https://example.com) and\n\n- apple\n- pear\n\n```js\nlet x = 1 < 2;\n```\n\n\
       | a | b |\n|---|---|\n| 1 | 2 |\n";

/// Serves a model that gives these replies, with calls in the Hermes format.
fn scripted<const N: usize>(replies: [&'static str; N], config: ServerConfig) -> Running {
    let engine = scripted_engine(replies);
    let template = Some(PromptTemplate::new(TEMPLATE).expect("it compiles"));
    let processor = lm_processors::by_name("hermes").map(Into::into);
    let defaults = ConversationConfig { template, processor, ..ConversationConfig::from_engine(&engine) };
    Running::serve(ServedModel::new(engine, defaults).alias("other/name"), config)
}

/// Folder of what `page/install` installs; prints that the test is skipped if it is not there.
fn installed() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/page-test");
    if folder.join("browser").exists() && folder.join("node_modules/playwright-core").exists() {
        return Some(folder);
    }
    println!("skipped: no target/page-test; crates/lm-server/tests/page/install installs it");
    None
}

fn node(args: &[&str]) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page");
    let output = Command::new("node").args(args).current_dir(scripts).output().expect("node runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{args:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// Drives the page of a server.
fn drive(script: &str, server: impl FnOnce() -> Running) {
    if installed().is_some() {
        let server = server();
        node(&[script, &format!("http://{}/", server.addr)]);
    }
}

#[test]
fn page_needs_no_key_and_has_a_strict_csp() {
    let keys = ApiKeys::new(["secret".to_owned()]).expect("a key");
    let server = Running::scripted(["Hello!"], ServerConfig { keys, ..ServerConfig::default() });
    let page = server.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert!(!page.body.contains("style=") && !page.body.contains("onclick="), "the policy forbids both");
    assert_eq!(server.get("/page/main.js").header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(server.get("/page/none.js").status, 401);
    assert_eq!(server.send(&Request::new("GET", "/").header("Host", "other.example")).status, 403);
}

#[test]
fn modules_work_without_a_browser() {
    if installed().is_some() {
        node(&["--test", "unit.mjs", "runner.mjs"]);
    }
}

#[test]
fn chats_render_branch_and_persist() {
    let replies = [FIRST, "Reply two", "Reply three", "Reply four", "Reply five"];
    drive("chat.mjs", || scripted(replies, ServerConfig::default()));
}

#[test]
fn conversations_are_those_of_the_server() {
    let config = || ServerConfig { store: Some(crate::support::store()), ..ServerConfig::default() };
    drive("store.mjs", || scripted(["Reply one", "Reply two"], config()));
    // The page works as with those of the browser.
    let replies = [FIRST, "Reply two", "Reply three", "Reply four", "Reply five"];
    drive("chat.mjs", || scripted(replies, config()));
}

#[test]
fn calls_can_be_approved_denied_or_always_allowed() {
    const WEATHER: &str =
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"Paris\"}}\n</tool_call>";
    const SUM: &str =
        "<tool_call>\n{\"name\": \"calculate\", \"arguments\": {\"expression\": \"6 * 7\"}}\n</tool_call>";
    const NEXT_SUM: &str = "<tool_call>\n{\"name\": \"calculate\", \"arguments\": {\"expression\": \"6 * 7 + 1\"}}\n</tool_call>";
    const DIVISION: &str =
        "<tool_call>\n{\"name\": \"calculate\", \"arguments\": {\"expression\": \"1 / 0\"}}\n</tool_call>";
    let replies = [
        WEATHER,
        "It is sunny.",
        WEATHER,
        "Then I do not know.",
        SUM,
        NEXT_SUM,
        "It is 42 and 43.",
        DIVISION,
        "That is impossible.",
    ];
    drive("tools.mjs", || scripted(replies, ServerConfig::default()));
}

#[test]
fn media_are_sent_and_stored() {
    let model = FakeLm::scripted(&tokenizer(), ["A red pixel.", "Still a red pixel."]);
    drive("media.mjs", || Running::with_media(model));
}

#[test]
fn passages_of_long_files_are_sent() {
    let config = ServerConfig { store: Some(crate::support::store()), ..ServerConfig::default() };
    drive("passages.mjs", || scripted(["Reply one", "Reply two"], config));
}

#[test]
fn page_speaks_the_language_of_the_browser() {
    drive("language.mjs", || scripted(["Reply one", "Reply two"], ServerConfig::default()));
}

#[test]
fn full_context_has_ways_on() {
    let replies = ["Reply one", "Reply two", "Reply three", "Reply four"];
    drive("full_context.mjs", || scripted(replies, ServerConfig::default()));
}

#[test]
fn models_are_loaded_and_downloaded() {
    let model = |name: &str| {
        ServedModel::on_demand(name, || {
            let engine = scripted_engine(["From the new one"]);
            let config = ConversationConfig::from_engine(&engine);
            let template = Some(PromptTemplate::new(TEMPLATE).expect("it compiles"));
            Ok((engine, ConversationConfig { template, ..config }))
        })
    };
    let downloads = ServedDownloads::new(move |name, progress| {
        progress(DownloadProgress { file: "model.gguf".to_owned(), done_bytes: 10, total_bytes: 20 });
        (name == "owner/new").then(|| model(name)).ok_or_else(|| format!("there is no `{name}`"))
    });
    let config = ServerConfig { downloads: Some(downloads), ..ServerConfig::default() };
    drive("models.mjs", || Running::serve(model("first").file_bytes(7), config));
}

#[test]
fn server_tools_run_on_the_server() {
    const FIND: &str =
        "<tool_call>\n{\"name\": \"find_notes\", \"arguments\": {\"query\": \"apples\"}}\n</tool_call>";
    const FIND_NONE: &str =
        "<tool_call>\n{\"name\": \"find_notes\", \"arguments\": {\"query\": \"\"}}\n</tool_call>";
    const SLOW: &str = "<tool_call>\n{\"name\": \"slow\", \"arguments\": {}}\n</tool_call>";
    let replies = [FIND, "There are two.", FIND_NONE, "That failed.", SLOW, "Gone on."];
    let config = ServerConfig { tools: ServedTools::new(notes), ..ServerConfig::default() };
    drive("server_tools.mjs", || scripted(replies, config));
}

/// Tools of a server: one whose calls may fail, one that runs until it is cancelled, and one that has the
/// name of a tool of the page.
fn notes() -> Toolset {
    let spec = |name, key: &str| {
        let properties = json!({key: {"type": "string"}});
        ToolSpec::new(name, "A tool.", json!({"type": "object", "properties": properties}))
    };
    let find = |arguments: Map<String, Value>| match arguments.get("query").and_then(Value::as_str) {
        Some(query) if !query.is_empty() => Ok(json!({"found": "2 notes", "about": [query, "pears"]})),
        _ => Err(ToolError::new(ToolErrorKind::InvalidArguments, "the query is empty")),
    };
    let slow = |_: Map<String, Value>, context: CallContext| async move {
        context.cancelled().await;
        Ok(Value::Null)
    };
    let tools = Toolset::new().with_fn(spec("find_notes", "query"), find);
    let tools = tools.and_then(|tools| tools.with_async_fn(spec("slow", "reason"), slow));
    let tools = tools.and_then(|tools| tools.with_fn(spec("calculate", "expression"), |_| Ok("1".into())));
    tools.expect("tools")
}

#[test]
fn replies_stop_and_continue() {
    drive("stop.mjs", || {
        // Its reply of 400 tokens lasts two minutes: longer than a browser on a busy machine needs to stop
        // it.
        let (engine, _) = slow_engine(Duration::from_millis(300), EngineSettings::default());
        Running::start(engine, ServerConfig::default())
    });
}

#[test]
fn settings_reach_the_request() {
    let Value::Object(options) =
        json!({"temperature": 0.5, "max-tokens": 20, "stop": ["a", "b"], "quantize": "q4"})
    else {
        unreachable!("it is an object")
    };
    let presets = vec![Preset { name: "short".to_owned(), options }];
    let config = ServerConfig { presets, ..ServerConfig::default() };
    drive("settings.mjs", || scripted(["Reply one", "Reply two"], config));
}

#[test]
fn hostile_text_stays_text() {
    const REPLY: &str = "<script>window.hacked = 1</script>\n\n<img src=x onerror=window.hacked=1>\n\n[a](javascript:window.hacked=1)\n\n\
                         ```html\n<script>window.hacked = 1</script>\n```\n\nstays text";
    drive("hostile.mjs", || scripted([REPLY, "stays text too"], ServerConfig::default()));
}

#[test]
fn replies_are_rendered_by_the_server() {
    const ALL: &str = "The root is \\(x = \\frac{-b}{2a}\\).\n\n```rust\nfn main() {\n    let x = \"<b>\";\n}\n```\n\n\
                       - [x] done\n- <script>window.hacked = 1</script>\n\n| a | b |\n|---|---|\n| 1 | $5 and $6 |\n\nthe end";
    const AGAIN: &str = "**one** word after another, so that it takes several updates\n\n**two**\n\n**three**\n\nthe second end";
    drive("markdown.mjs", || scripted([ALL, AGAIN, "**three** <b>"], ServerConfig::default()));
}

#[test]
fn text_of_a_file_is_read_for_who_has_the_key() {
    let keys = ApiKeys::new(["secret".to_owned()]).expect("a key");
    let server = Running::scripted(["Hello!"], ServerConfig { keys, ..ServerConfig::default() });
    let post = |text: &str| Request::new("POST", "/page/document").text_body(text);
    assert_eq!(server.send(&post("a text")).status, 401);
    let read = |text: &str| server.send(&post(text).header("Authorization", "Bearer secret"));
    assert_eq!(read("é\r\n").json(), json!({"text": "é\n", "encoding": null, "pages": null}));
    let refused = read("%PDF-1.7\nnothing");
    assert_eq!(
        (refused.status, &refused.json()["error"]["message"]),
        (400, &json!("it is a damaged PDF file"))
    );
}

#[test]
fn passages_of_a_text_are_chosen_for_who_has_the_key() {
    let keys = ApiKeys::new(["secret".to_owned()]).expect("a key");
    let server = Running::scripted(["Hello!"], ServerConfig { keys, ..ServerConfig::default() });
    let page =
        |number: usize, topic: &str| format!("--- page {number} ---\n{}\n", format!("{topic} ").repeat(200));
    let text = [page(1, "Coal"), page(2, "Wind"), page(3, "Tides")].concat();
    let request = |body: &Value| Request::new("POST", "/page/passages").body(body);
    let body = json!({"name": "energy.pdf", "text": text, "question": "What of wind?", "bytes": 1_500});
    assert_eq!(server.send(&request(&body)).status, 401);
    let choose = |body: &Value| server.send(&request(body).header("Authorization", "Bearer secret")).json();
    let answer = choose(&body);
    assert_eq!((&answer["fits"], &answer["pages"], &answer["of"]), (&json!(true), &json!([2]), &json!(3)));
    let prompt = answer["prompt"].as_str().expect("a prompt");
    assert!(
        prompt.starts_with("File \"energy.pdf (excerpts)\":\n```\n[…]\n--- page 2 ---\nWind"),
        "{prompt}"
    );
    let further = json!({"sent": answer["chosen"], "name": "energy.pdf", "text": text, "question": "wind", "bytes": 1_500});
    assert_eq!(choose(&further)["chosen"], json!([]));
    let none = json!({"name": "energy.pdf", "text": text, "question": "Quokkas?", "bytes": 1_500});
    assert_eq!((&choose(&none)["fits"], &choose(&none)["chosen"]), (&json!(false), &json!([0])));
}

#[test]
fn renderer_needs_the_key() {
    let keys = ApiKeys::new(["secret".to_owned()]).expect("a key");
    let server = Running::scripted(["Hello!"], ServerConfig { keys, ..ServerConfig::default() });
    let body = json!({"stream": "a", "at": 0, "text": "*x* <script>", "done": true});
    assert_eq!(server.send(&Request::new("POST", "/page/render").body(&body)).status, 401);
    let allowed = Request::new("POST", "/page/render").header("Authorization", "Bearer secret").body(&body);
    let response = server.send(&allowed);
    assert_eq!(response.status, 200, "{}", response.body);
    assert!(response.body.contains("<em>x</em> &lt;script&gt;"), "{}", response.body);
    let lost = json!({"stream": "b", "at": 5, "text": "x"});
    let lost = Request::new("POST", "/page/render").header("Authorization", "Bearer secret").body(&lost);
    assert_eq!(server.send(&lost).status, 409);
}

#[test]
fn page_asks_for_a_key() {
    drive("key.mjs", || {
        let keys = ApiKeys::new(["secret".to_owned()]).expect("a key");
        scripted(["Welcome"], ServerConfig { keys, ..ServerConfig::default() })
    });
}
