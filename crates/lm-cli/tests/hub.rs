//! End-to-end tests of models by name: a hub on loopback, a separate home directory for each test.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lm_hub::testing::{Access, Fault, HubServer, TOKEN, TestFile, TestRepo};
use serde_json::Value;

const NAME: &str = "owner/pocket";

struct Home {
    folder: tempfile::TempDir,
    server: HubServer,
}

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

/// The embedded model as a repository, with additional unneeded files.
fn pocket() -> TestRepo {
    let mut files = vec![
        TestFile::text("README.md", "---\nlicense: apache-2.0\nlanguage: [en]\n---\n# Pocket\n"),
        TestFile::large("pytorch_model.bin", vec![1; 1000]),
        TestFile::text("original/params.json", "{}"),
    ];
    for (name, bytes) in lm_pocket::FILES {
        files.push(match std::str::from_utf8(bytes) {
            Ok(text) if name.ends_with("json") || name.ends_with("jinja") => TestFile::text(name, text),
            _ => TestFile::large(name, bytes.to_vec()),
        });
    }
    TestRepo::new(NAME, files)
}

impl Home {
    fn new(repo: TestRepo) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder, server: HubServer::start(vec![repo]).expect("a port") }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lm"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["HF_", "LM_", "OLLAMA_", "XDG_"].iter().any(|prefix| name.starts_with(prefix))
                || name.to_ascii_lowercase().ends_with("_proxy")
            {
                command.env_remove(&*name);
            }
        }
        command.args(args).env("HOME", self.folder.path()).env("HF_ENDPOINT", self.server.url());
        command.stdin(Stdio::null());
        command
    }

    fn lm_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let output = self.command(args).envs(variables.iter().copied()).output().expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("output is text");
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn lm(&self, args: &[&str]) -> Run {
        self.lm_with(args, &[])
    }

    fn ok(&self, args: &[&str]) -> String {
        let run = self.lm(args);
        assert_eq!(run.code, Some(0), "{args:?}: {}{}", run.out, run.err);
        run.out
    }

    /// Runs a command that must fail; returns its error and hint.
    fn error(&self, args: &[&str], variables: &[(&str, &str)]) -> String {
        let run = self.lm_with(args, variables);
        assert_eq!(run.code, Some(1), "{args:?}: {}{}", run.out, run.err);
        run.err
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join(".cache/huggingface/hub")
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
        fs::write(path, content).expect("can be written");
    }
}

#[test]
fn model_is_pulled_used_listed_and_removed() {
    let home = Home::new(pocket());
    home.server.fail("model.safetensors", Fault::CutAfter(100_000));
    let path = home.ok(&["pull", NAME]);
    let snapshot = Path::new(path.trim_end());
    assert!(snapshot.starts_with(home.cache().join("models--owner--pocket/snapshots")), "{path}");
    assert!(snapshot.join("model.safetensors").is_file() && !snapshot.join("pytorch_model.bin").exists());

    let asked = home.server.seen().len();
    let shown = home.ok(&["inspect", NAME]);
    for expected in [
        "owner/pocket\n",
        "licence       apache-2.0",
        "as stored, f16",
        "q4, q8",
        "2048 tokens",
        "in model.safetensors",
    ] {
        assert!(shown.contains(expected), "no {expected} in {shown}");
    }
    let question = "How is the weather in Paris?";
    let reply = home.ok(&["generate", "--tools", "demo", "-m", NAME, question]);
    assert_eq!(reply, home.ok(&["generate", "--tools", "demo", question]), "the embedded model's reply");
    let listed: Value = serde_json::from_str(&home.ok(&["list", "--json"])).expect("one line of JSON");
    assert_eq!((&listed["name"], &listed["path"]), (&NAME.into(), &path.trim_end().into()));
    let table = home.ok(&["list"]);
    assert!(table.starts_with("owner/pocket  ") && table.trim_end().ends_with("Hugging Face"), "{table}");
    assert_eq!(home.server.seen().len(), asked, "only `pull` uses the network");

    assert!(home.error(&["rm", NAME], &[]).contains("`--yes`"));
    assert!(home.ok(&["rm", NAME, "--yes"]).starts_with("owner/pocket removed, "));
    assert!(!home.cache().join("models--owner--pocket").exists());
    assert_eq!(home.ok(&["list"]), "");
    assert!(home.error(&["rm", NAME, "--yes"], &[]).contains("no model `owner/pocket`"));
}

#[test]
#[cfg(unix)]
fn server_downloads_models_and_serves_all_of_the_machine() {
    use crate::serve::{get, post, started};

    let home = Home::new(pocket());
    let (server, addr, _) = started(&mut home.command(&["serve", "--port", "0"]));
    let body = format!(r#"{{"model": "{NAME}"}}"#);
    let pulled = post(&addr, "/api/pull", "", &body);
    assert!(pulled.contains(r#""status":"pulling model.safetensors""#), "{pulled}");
    assert!(pulled.contains(r#"{"status":"success"}"#), "{pulled}");
    let chat = format!(r#"{{"model": "{NAME}", "messages": [{{"role": "user", "content": "Hello"}}]}}"#);
    assert!(post(&addr, "/v1/chat/completions", "", &chat).contains("200 OK"));
    let missing = post(&addr, "/api/pull", "", r#"{"model": "owner/other"}"#);
    assert!(missing.contains(r#"{"error":"#) && missing.contains("owner/other"), "{missing}");
    drop(server);

    let (_server, addr, _) = started(&mut home.command(&["serve", "--port", "0", "--all"]));
    let models = get(&addr, "/v1/models");
    for name in [NAME, lm_pocket::NAME] {
        assert!(models.contains(&format!(r#""id":"{name}""#)), "{name}: {models}");
    }
    let open = ["serve", "--listen", "0.0.0.0:0", "--insecure"];
    for (options, allowed) in [(&open[..], "false"), (&[&open[..], &["--allow-downloads"]].concat(), "true")]
    {
        let (_server, addr, _) = started(&mut home.command(options));
        assert!(get(&addr, "/v1/models").contains(&format!(r#""downloads":{allowed}"#)), "{options:?}");
    }
}

#[test]
fn missing_name_is_not_downloaded_and_has_a_hint() {
    let home = Home::new(pocket());
    for command in [&["chat", NAME][..], &["inspect", NAME], &["generate", "-m", NAME, "Hello"]] {
        let error = home.error(command, &[]);
        assert!(error.contains("hint: `lm pull owner/pocket` downloads it"), "{error}");
    }
    assert!(home.error(&["chat", "llama3"], &[]).contains("`lm list`"));
    assert!(home.error(&["chat", "./owner/pocket"], &[]).contains("config.json"));
    assert_eq!(home.server.seen(), []);
}

#[test]
fn failed_pull_has_a_hint() {
    let home = Home::new(pocket());
    for (args, variables, expected) in [
        (&["pull", "owner/none"][..], &[][..], "HF_TOKEN"),
        (&["pull", "owner/none"], &[("HF_TOKEN", TOKEN)], "what the token may read"),
        (&["pull", NAME], &[("HF_TOKEN", "hf_old")], "no longer valid"),
        (&["pull", "owner/pocket@v9"], &[], "no revision `v9`"),
        (&["pull", NAME, "--file", "x.gguf"], &[], "no single file `x.gguf`"),
        (&["pull", NAME], &[("HF_HUB_OFFLINE", "1")], "unset HF_HUB_OFFLINE"),
        (&["pull", NAME], &[("HF_HUB_OFFLINE", "1")], "`lm list` shows the models on this machine"),
        // This port is closed.
        (
            &["pull", NAME],
            &[("HF_ENDPOINT", "http://127.0.0.1:9")],
            "`lm list` shows the models on this machine",
        ),
        (&["pull", NAME], &[("HF_ENDPOINT", "http://127.0.0.1:9")], "HTTPS_PROXY names a proxy"),
        (&["pull", NAME], &[("HF_ENDPOINT", "hub")], "HF_ENDPOINT is \"hub\""),
    ] {
        let error = home.error(args, variables);
        assert!(error.contains(expected), "{args:?} {variables:?}: no {expected} in {error}");
    }
    home.server.fail("model.safetensors", Fault::WrongByte);
    assert!(home.error(&["pull", NAME], &[]).contains("run the command again"));
    home.ok(&["pull", NAME]);
    let gated = Home::new(TestRepo { access: Access::Gated, ..pocket() });
    let error = gated.error(&["pull", NAME], &[]);
    assert!(error.contains(&format!("ask for access on {}/{NAME}", gated.server.url())), "{error}");
    for args in [&["pull", "../x"][..], &["pull", NAME, "--file", "../x"]] {
        let run = home.lm(args);
        assert_eq!(
            (run.code, run.err.contains("is not a model name")),
            (Some(2), true),
            "{args:?}: {}",
            run.err
        );
    }
}

#[test]
fn one_of_several_gguf_models_is_chosen() {
    let files = ["tiny-Q4_K_M.gguf", "tiny-Q8_0-00001-of-00002.gguf", "tiny-Q8_0-00002-of-00002.gguf"];
    let files = files.map(|path| TestFile::large(path, b"GGUF is not looked into here".to_vec()));
    let home = Home::new(TestRepo::new("owner/tiny-GGUF", files.to_vec()));
    let error = home.error(&["pull", "owner/tiny-GGUF"], &[]);
    assert!(
        error.contains("2 GGUF models") && error.contains("`owner/tiny-GGUF:tiny-Q4_K_M.gguf`"),
        "{error}"
    );
    let path = home.ok(&["pull", "owner/tiny-GGUF", "--file", "tiny-Q4_K_M.gguf"]);
    assert!(path.trim_end().ends_with("/tiny-Q4_K_M.gguf"), "{path}");
    assert!(home.ok(&["pull", "owner/tiny-GGUF:q8_0"]).contains("tiny-Q8_0-00001-of-00002.gguf"));
    let names: Vec<_> =
        home.ok(&["list"]).lines().map(|line| line.split(' ').next().map(str::to_owned)).collect();
    let expected = ["owner/tiny-GGUF:tiny-Q4_K_M.gguf", "owner/tiny-GGUF:tiny-Q8_0-00001-of-00002.gguf"];
    assert_eq!(names, expected.map(|name| Some(name.to_owned())));
    assert!(home.error(&["chat", "owner/tiny-GGUF"], &[]).contains("choose one"));
    home.ok(&["rm", "owner/tiny-GGUF:q8_0", "--yes"]);
    assert_eq!(home.ok(&["list"]).lines().count(), 1);
}

/// A GGUF model that reads images, and its `mmproj` file.
fn seeing() -> [Vec<u8>; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vision/mmproj/qwen3-vl-tiny");
    ["model.gguf", "mmproj-qwen3-vl-tiny.gguf"].map(|name| fs::read(folder.join(name)).expect("is there"))
}

#[test]
fn gguf_model_is_pulled_with_its_vision_tower() {
    let [model, tower] = seeing();
    let files = [("see-Q8_0.gguf", model), ("mmproj-F32.gguf", vec![0; 9]), ("mmproj-BF16.gguf", tower)];
    let files = files.map(|(path, bytes)| TestFile::large(path, bytes));
    let home = Home::new(TestRepo::new("owner/see-GGUF", files.to_vec()));
    let image = format!("{}/../../testdata/media/rgb_37x53.png", env!("CARGO_MANIFEST_DIR"));
    let look = ["generate", "What is it?", "-m", "owner/see-GGUF", "--image", &image, "-n", "2"];
    home.ok(&["pull", "owner/see-GGUF", "--no-mmproj"]);
    assert!(home.error(&look, &[]).contains("reads no images"));
    home.ok(&["pull", "owner/see-GGUF"]);
    home.ok(&look);
    home.ok(&["rm", "owner/see-GGUF:Q8_0", "--yes"]);
    let blobs = home.cache().join("models--owner--see-GGUF/blobs");
    assert_eq!(fs::read_dir(blobs).expect("is there").count(), 0, "the tower went with the model");
}

#[test]
fn ollama_model_has_its_projector() {
    let home = Home::new(pocket());
    let store = |sees: &[u8]| {
        let [model, _] = seeing();
        let mut layers = Vec::new();
        for (kind, letter, bytes) in [("model", "a", &*model), ("projector", "b", sees)] {
            let digest = letter.repeat(64);
            home.write(&format!(".ollama/models/blobs/sha256-{digest}"), bytes);
            let kind = format!("application/vnd.ollama.image.{kind}");
            layers.push(serde_json::json!({"mediaType": kind, "digest": format!("sha256:{digest}")}));
        }
        let manifest = serde_json::json!({"layers": layers}).to_string();
        home.write(".ollama/models/manifests/registry.ollama.ai/library/see/latest", manifest.as_bytes());
    };
    let image = format!("{}/../../testdata/media/rgb_37x53.png", env!("CARGO_MANIFEST_DIR"));
    let look = ["generate", "What is it?", "-m", "see", "--image", &image, "-n", "2"];
    store(&seeing()[1]);
    home.ok(&look);
    let run = home.lm(&["generate", "see", "-n", "2"]);
    assert!(run.code == Some(2) && run.err.contains("`see` looks like"), "{}{}", run.out, run.err);
    // A tower that cannot be read leaves a model of text.
    store(b"GGUF of an unknown kind");
    assert!(home.error(&look, &[]).contains("reads no images"));
    home.ok(&["generate", "What is it?", "-m", "see", "-n", "2"]);
}

#[test]
fn models_of_other_programs_are_used_in_place() {
    let home = Home::new(pocket());
    for (name, bytes) in lm_pocket::FILES {
        home.write(&format!(".lmstudio/models/owner/studio/{name}"), bytes);
    }
    let digest = "a".repeat(64);
    let manifest = format!(
        r#"{{"layers": [{{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:{digest}"}}]}}"#
    );
    home.write(".ollama/models/manifests/registry.ollama.ai/library/llama3.2/1b", manifest.as_bytes());
    let studio = home.folder.path().join(".lmstudio/models/owner/studio").display().to_string();
    let blobs = home.folder.path().join(".ollama/models/blobs");
    fs::create_dir_all(&blobs).expect("a folder");
    // Blobs have no extension: the file type is detected from the first bytes.
    let (file, blob) = (blobs.join("pocket.gguf"), blobs.join(format!("sha256-{digest}")));
    home.ok(&["convert", &studio, &file.display().to_string()]);
    fs::rename(file, blob).expect("can be renamed");
    let table = home.ok(&["list"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("owner/studio") && lines[0].ends_with("LM Studio"), "{table}");
    assert!(lines[1].starts_with("llama3.2:1b") && lines[1].ends_with("Ollama     studio"), "{table}");
    let question = "How is the weather in Paris?";
    let reply = home.ok(&["generate", "--tools", "demo", "-m", "owner/studio", question]);
    assert_eq!(reply, home.ok(&["generate", "--tools", "demo", question]));
    let of_ollama = home.ok(&["generate", "--tools", "demo", "-m", "llama3.2:1b", question]);
    assert_eq!(
        of_ollama,
        home.ok(&["generate", "--tools", "demo", "-m", &studio, "--quantize", "q8_0", question])
    );
    for line in home.ok(&["list", "--json"]).lines() {
        let listed: Value = serde_json::from_str(line).expect("JSON");
        let name = listed["name"].as_str().expect("a name");
        let inspected: Value = serde_json::from_str(&home.ok(&["inspect", name, "--json"])).expect("JSON");
        assert_eq!(listed["bytes"], inspected["bytes"], "{name}");
        assert_eq!(listed["general_name"], inspected["general_name"], "{name}");
        let by_path = home.ok(&["inspect", listed["path"].as_str().expect("a path"), "--json"]);
        let by_path: Value = serde_json::from_str(&by_path).expect("JSON");
        assert_eq!(listed["bytes"], by_path["bytes"], "{name} by its path");
    }
    let shown = home.ok(&["inspect", "llama3.2:1b"]);
    assert!(shown.starts_with("llama3.2:1b\n") && shown.contains("Q8_0"), "{shown}");
    assert!(home.error(&["rm", "llama3.2:1b", "--yes"], &[]).contains("`ollama rm llama3.2:1b`"));
    assert!(home.error(&["rm", "owner/studio", "--yes"], &[]).contains("belongs to LM Studio"));
    assert!(!home.cache().exists(), "nothing was copied");
}

#[test]
fn unfinished_downloads_are_listed() {
    let home = Home::new(pocket());
    for _ in 0..9 {
        home.server.fail("model.safetensors", Fault::Status(410));
    }
    home.error(&["pull", NAME], &[]);
    let table = home.ok(&["list"]);
    assert!(table.contains("owner/pocket") && table.contains("no weights"), "{table}");
    assert!(home.error(&["chat", NAME], &[]).contains("lm pull owner/pocket"));
    home.ok(&["rm", NAME, "--yes"]);
    assert_eq!(home.ok(&["list"]), "");
}

#[test]
fn damaged_branch_does_not_hide_other_models() {
    let home = Home::new(pocket());
    home.ok(&["pull", NAME]);
    home.write(".cache/huggingface/hub/models--a--b/refs/main", b"not a commit");
    let run = home.lm(&["list"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        run.out.contains(NAME) && run.err.contains("a branch or tag is omitted"),
        "{}{}",
        run.out,
        run.err
    );
}

#[test]
fn offline_pull_reports_the_host_and_fails_soon() {
    let home = Home::new(pocket());
    let start = std::time::Instant::now();
    // A port at which nothing listens.
    let error = home.error(&["pull", NAME], &[("HF_ENDPOINT", "http://127.0.0.1:9")]);
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(error.starts_with(&format!("asking http://127.0.0.1:9 for {NAME}\n")), "{error}");
    assert!(error.contains("hint: "), "{error}");
}
