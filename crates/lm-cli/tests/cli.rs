//! End-to-end tests of the `lm` program: arguments and standard input in, output and exit code out. No terminal, no network.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lm"))
        .args(args)
        .env_remove("LM_LOG")
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn lm(args: &[&str], input: &str) -> Run {
    let mut child = start(args);
    let mut stdin = child.stdin.take().expect("is piped");
    // A program that fails may not read its input.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("output is text");
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs a command that must succeed and print only the memory choices on standard error.
fn ok(args: &[&str], input: &str) -> String {
    let run = lm(args, input);
    let said = run.err.lines().find(|line| !line.starts_with("memory: "));
    assert_eq!((run.code, said), (Some(0), None), "{args:?}: {}", run.out);
    run.out
}

/// Runs a command that must fail with one `error: …` line; returns it without the hint.
fn error(args: &[&str], input: &str) -> String {
    let run = lm(args, input);
    assert_eq!(run.code, Some(1), "{args:?}: {}", run.err);
    let mut lines = run.err.lines().filter(|line| !line.starts_with("memory: "));
    let first = lines.next().and_then(|line| line.strip_prefix("error: ")).expect("an error line");
    assert!(lines.all(|line| line.starts_with("hint: ")), "{}", run.err);
    first.to_owned()
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("a line of JSON")
}

/// Writes the embedded model's files to a temporary folder.
fn pocket_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in lm_pocket::FILES {
        std::fs::write(folder.path().join(name), bytes).expect("the file can be written");
    }
    folder
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

#[test]
fn a_chat_calls_the_demo_tools_and_answers_from_their_results() {
    let questions = "How is the weather in Paris?\n\nWhat is the stock price of Apple?\n";
    let run = lm(&["chat", "--tools", "demo"], questions);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let (answers, notes): (Vec<_>, Vec<_>) = (run.out.lines().collect(), run.err.lines().collect());
    assert_eq!((answers.len(), notes.len()), (2, 4), "{}{}", run.out, run.err);
    assert_eq!(notes[0], "→ get_weather({\"location\": \"Paris\"})");
    let weather = parse(notes[1].strip_prefix("← ").expect("a result"));
    assert!(answers[0].contains(&weather["temperature"].to_string()), "{}", run.out);
    assert!(notes[2].starts_with("→ get_stock_price("), "{}", run.err);
    let price = parse(notes[3].strip_prefix("← ").expect("a result"));
    assert!(answers[1].contains(&price["price"].to_string()), "{}", run.out);
}

#[test]
fn declared_tools_are_answered_by_the_next_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tools.json");
    let declaration = json!([{
        "name": "get_weather",
        "description": "Returns the weather for a given location.",
        "parameters": {
            "type": "object",
            "properties": {"location": {"type": "string", "description": "The location to get the weather for."}},
            "required": ["location"],
        },
    }]);
    std::fs::write(&file, declaration.to_string()).expect("the file can be written");
    let result = "{\"location\": \"Paris\", \"temperature\": 31, \"unit\": \"C\", \"condition\": \"Rainy\"}";
    let run = lm(&["chat", "--tools", shown(&file)], &format!("How is the weather in Paris?\n{result}\n"));
    let notes: Vec<_> = run.err.lines().collect();
    assert_eq!(notes, ["→ get_weather({\"location\": \"Paris\"})", &format!("← {result}")]);
    assert!(run.out.contains("31") && run.out.lines().count() == 1, "{}", run.out);
}

#[test]
fn the_commands_of_a_chat_work_without_a_terminal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("chat.json");
    let save = format!("/save {}\n", shown(&file));
    let run = lm(
        &["chat", "--system", "Be brief."],
        &format!("Hello\n{save}/history\n/reset\n/history\n/quit\nHello\n"),
    );
    assert_eq!(run.code, Some(0));
    let reply = run.out.strip_suffix('\n').expect("a line");
    let expected = format!(
        "(saved to {})\nsystem: Be brief.\nuser: Hello\nassistant: {reply}\n(begun again)\nsystem: Be brief.\n",
        file.display()
    );
    let notes: String = run
        .err
        .lines()
        .filter(|line| !line.starts_with("[thinking]"))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(notes, expected);
    let saved = parse(&std::fs::read_to_string(&file).expect("was saved"));
    let roles: Vec<_> =
        saved["messages"].as_array().expect("a list").iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
}

#[test]
fn a_conversation_that_cannot_be_saved_goes_on() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let run = lm(&["chat"], &format!("/save {}\n/save /nowhere/a/b\nHello\n", shown(file.path())));
    assert_eq!(run.code, Some(1));
    let errors: Vec<_> = run.err.lines().collect();
    assert!(errors[0].contains("exists already; give another name"), "{}", run.err);
    assert!(errors[1].contains("`/nowhere/a/b` cannot be written"), "{}", run.err);
    assert_eq!(run.out.lines().count(), 1, "the turn after them is answered: {}", run.out);
}

#[test]
fn bytes_that_are_no_text_and_quoted_lines_are_messages() {
    let mut child = start(&["chat", "-n", "2"]);
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(b"caf\xe9\n\"\"\"one\ntwo\"\"\"\n/history\n").expect("the program reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let notes = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(notes.contains("user: caf\u{fffd}\n") && notes.contains("user: one\ntwo\n"), "{notes}");
}

/// A model may write a call although there are no tools, as the embedded one does to its second greeting.
#[test]
fn without_tools_a_reply_has_no_call_in_it() {
    let run = lm(&["chat"], "hello\nhello\nhello\n");
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 3), "{}", run.out);
    assert!(!run.out.contains("tool_call"), "{}", run.out);
}

#[test]
fn a_turn_that_fails_leaves_the_others_and_the_exit_code_tells() {
    let long = "word ".repeat(3000);
    let run = lm(&["chat"], &format!("{long}\n/nothing\nHello\n"));
    assert_eq!(run.code, Some(1));
    let errors: Vec<_> = run.err.lines().collect();
    assert!(errors[0].starts_with("error: ") && errors[0].contains("2048"), "{}", run.err);
    assert!(errors[1].starts_with("hint: ") && errors[1].contains("/clear"), "{}", run.err);
    assert!(errors[2].contains("no command `/nothing`"), "{}", run.err);
    assert_eq!(run.out.lines().count(), 1, "the last turn is answered: {}", run.out);
}

/// Runs `lm generate --json`, and checks every event against the published schema.
fn events(args: &[&str], input: &str) -> Vec<Value> {
    let schema = include_str!("../../../docs/generate-events.schema.json");
    let schema = jsonschema::validator_for(&parse(schema)).expect("a schema");
    let run = lm(&[&["generate", "--json"], args].concat(), input);
    let events: Vec<_> = run.out.lines().map(parse).collect();
    for event in &events {
        let faults: Vec<_> = schema.iter_errors(event).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{event}: {faults:?}");
    }
    assert_eq!((&events[0]["type"], &events[0]["version"]), (&json!("start"), &json!(1)));
    events
}

#[test]
fn events_are_one_json_object_a_line() {
    let events = events(&["--tools", "demo", "How is the weather in Paris?"], "");
    assert_eq!(events[1]["type"], "tool_call");
    assert_eq!(events[1]["arguments"], json!({"location": "Paris"}));
    let last = events.last().expect("an event");
    assert_eq!((&last["type"], &last["finish_reason"]), (&json!("finished"), &json!("tool_calls")));
    assert_eq!(last["message"]["tool_calls"][0]["function"]["name"], "get_weather");
    assert!(last["usage"]["completion_tokens"].as_u64() > Some(1));
}

#[test]
fn streamed_text_is_the_message() {
    let events = events(&[], "Hello");
    let texts = events.iter().filter(|event| event["type"] == "text");
    let text: String = texts.filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(events.last().expect("an event")["message"]["content"], text);
    assert_eq!(lm(&["generate", "Hello"], "").out, format!("{text}\n"));
}

#[test]
fn a_reply_that_fails_or_is_cut_says_so_in_its_last_event() {
    let long = "word ".repeat(3000);
    let failed = events(&[&long], "");
    let last = failed.last().expect("an event");
    assert!(last["error"]["message"].as_str().is_some_and(|message| message.contains("2048")), "{last}");
    let cut = events(&["-n", "2", "Hello"], "");
    let last = cut.last().expect("an event");
    assert_eq!((&last["finish_reason"], &last["finish_detail"]), (&json!("length"), &json!("max_tokens")));
    let run = lm(&["generate", "-n", "2", "Hello"], "");
    assert!(run.err.contains("the reply was cut: it reached --max-tokens"), "{}", run.err);
}

#[test]
fn the_answer_alone_is_on_standard_output() {
    let run = lm(&["generate", "Is it raining?", "--regex", "yes|no", "--thinking", "on"], "");
    assert!(["yes\n", "no\n"].contains(&run.out.as_str()), "{}", run.out);
    assert!(run.err.starts_with("[thinking] "), "{}", run.err);
    let hidden =
        lm(&["generate", "Is it raining?", "--regex", "yes|no", "--thinking", "on", "--hide-thinking"], "");
    assert_eq!((hidden.out, hidden.err.as_str()), (run.out, ""));
    let schema = text_file(br#"{"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": false}"#);
    let run = lm(&["generate", "Hello", "--schema", shown(schema.path()), "--thinking", "on"], "");
    assert!(parse(&run.out)["a"].is_u64(), "{}", run.out);
}

#[test]
fn a_prompt_comes_by_position_by_name_or_from_a_file() {
    let expected = lm(&["generate", "Hello"], "").out;
    let file = text_file(b"Hello");
    for args in [&["-p", "Hello"][..], &["-f", shown(file.path())], &["--file", "-"], &["-"], &[]] {
        let input = if args.is_empty() || args.contains(&"-") { "Hello" } else { "" };
        assert_eq!(lm(&[&["generate"], args].concat(), input).out, expected, "{args:?}");
    }
    let folder = pocket_folder();
    for (args, message) in [
        (&["generate", shown(folder.path())][..], "is a model, and this command takes a prompt there"),
        (&["generate", "Hello", "-p", "Hello"], "given twice"),
        (&["generate", ""], "the prompt is empty"),
        (&["generate"], "the prompt is empty"),
        (
            &["generate", "Hello", "--tools", "demo", "--tool-choice", "get_wether"],
            "get_weather, get_stock_price",
        ),
        (&["generate", "Hello", "--temperature", "-1"], "expected a number of at least 0"),
        (&["generate", "Hello", "--top-p", "2"], "expected a number from 0 to 1"),
        (&["generate", "Hello", "-n", "0"], "at least 1"),
        (&["generate", "Hello", "-t", "100000"], "1..=1024"),
        (&["generate", "Hello", "--regex", "("], "unclosed group"),
        (&["convert", shown(folder.path())], "expected MODEL OUTPUT"),
        (&["eval"], "the text is missing"),
    ] {
        let run = lm(args, "");
        assert_eq!((run.code, run.err.contains(message)), (Some(2), true), "{args:?}: {}", run.err);
    }
    let text = lm(&["generate", "-n", "2", "-p", shown(folder.path())], "");
    assert_eq!(text.code, Some(0), "{}", text.err);
}

#[test]
fn errors_name_the_flag_and_the_thing() {
    let check = |args: &[&str], expected: &str| {
        let run = lm(args, "");
        assert!(run.code == Some(1) && run.err.contains(expected), "{args:?}: {}", run.err);
    };
    check(
        &["generate", "Hello", "--context", "99999999"],
        "--context 99999999: this model supports at most 2048",
    );
    let empty = text_file(b"");
    check(&["chat", shown(empty.path())], "is neither a model folder nor a GGUF file: it is empty");
    let schema = text_file(br##"{"$ref": "#/nowhere"}"##);
    check(&["generate", "Hello", "--schema", shown(schema.path())], "the schema has nothing at #/nowhere");
    let ids = text_file(b"[1]\n\n[1, 999999]\n");
    let out = empty.path().with_extension("npy");
    check(
        &["logits", "--ids", shown(ids.path()), "--out", shown(&out)],
        "line 3: token id 999999, the model has ids below 2048",
    );
    let run = lm(&["generate", "Hello", "--memory", "1kB"], "");
    let figures: Vec<f64> = run.err.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [needed, _, weights, cache, besides] = [0, 1, 2, 3, 5].map(|index| figures[index]);
    assert!((needed - weights - cache - besides).abs() < 0.2, "{}", run.err);
}

#[test]
fn plain_text_is_continued_up_to_the_limit() {
    let args =
        ["generate", "--raw", "--json", "--max-tokens", "5", "--logit-bias", "2037=-inf", "--logit-bias"];
    let out = lm(&[args.as_slice(), &["2039=-inf", "The weather"]].concat(), "").out;
    let events: Vec<_> = out.lines().map(parse).collect();
    assert_eq!(events.iter().filter(|event| event["type"] == "token").count(), 5);
    assert_eq!(events[6]["finish_detail"], "max_tokens");
}

#[test]
fn sampling_follows_its_seed() {
    let reply =
        |seed| lm(&["generate", "--temperature", "3", "--seed", seed, "--max-tokens", "30", "Hello"], "").out;
    assert_eq!(reply("1"), reply("1"));
    assert_ne!(reply("1"), reply("2"));
}

#[test]
fn tokens_are_listed_for_reading() {
    let lines = ok(&["tokenize", "--text", "Hello"], "");
    assert!(lines.trim_end().ends_with("\"Hello\""), "{lines}");
    assert_eq!(ok(&["tokenize", "--text", "😀"], "").lines().count(), 4, "bytes are escaped");
}

#[test]
fn a_converted_folder_answers_like_one_quantised_while_loading() {
    let folder = pocket_folder();
    let quantised = folder.path().join("q4");
    ok(&["convert", shown(folder.path()), shown(&quantised), "--quantize", "q4"], "");
    let prompt = "How is the weather in Paris?";
    let converted = ok(&["generate", "-m", shown(&quantised), "--tools", "demo", prompt], "");
    assert_eq!(converted, ok(&["generate", "--quantize", "q4", "--tools", "demo", prompt], ""));
    assert!(ok(&["inspect", shown(&quantised)], "").contains("U8"));
    assert!(error(&["convert", shown(folder.path()), shown(&quantised)], "").contains("exists already"));
    let embedded = folder.path().join("pocket.gguf");
    assert!(
        ok(&["convert", shown(&embedded)], "").starts_with(&format!("wrote {} (q8_0, ", shown(&embedded)))
    );
}

#[test]
fn figures_are_printed_as_json() {
    let lists = ["--prefill", "8,100000", "--decode", "0", "--sequences", "2", "--turn", "16", "--runs", "1"];
    let run = lm(&[&["bench", "--json"], &lists[..]].concat(), "");
    let figures: Vec<_> = run.out.lines().map(parse).collect();
    let of = |metric: &str| figures.iter().find(|figure| figure["metric"] == metric).expect(metric);
    for metric in ["load", "prefill", "decode", "second_turn", "dram_rate", "matrix_rate"] {
        assert!(of(metric)["value"].as_f64() > Some(0.0), "{}", run.out);
    }
    let two = figures.iter().find(|figure| figure["sequences"] == 2).expect("two sequences");
    assert_eq!((&two["metric"], &two["unit"]), (&json!("decode"), &json!("tokens/s")));
    assert!(of("decode")["limit"].as_f64() > Some(0.0), "{}", run.out);
    assert!(run.err.contains("skipped: prefill of 100000 tokens"), "{}", run.err);
}

/// Writes a text to a temporary file.
fn text_file(text: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text).expect("the file can be written");
    file
}

const TEXT: &str = "<|im_start|>user\nHow is the weather in Paris?<|im_end|>\n<|im_start|>assistant\n\
                    I am sorry, none of my tools can help with that.<|im_end|>\n";

#[test]
fn a_model_is_as_far_from_itself_as_its_quantisation() {
    let (folder, text) = (pocket_folder(), text_file(TEXT.repeat(5).as_bytes()));
    let (model, text) = (shown(folder.path()), shown(text.path()));
    let eval = |more: &[&str]| parse(&ok(&[&["eval", model, text, "--json"], more].concat(), ""));
    let against = |more: &[&str]| eval(&[&["--against", model, "--context", "64"], more].concat());
    let kl = |report: &Value| report["against"]["kl_divergence"].as_f64().expect("a number");
    let itself = against(&["--quantize", "q4", "--against-quantize", "q4", "--kv", "f32"]);
    assert_eq!((kl(&itself), &itself["against"]["same_top"]), (0.0, &json!(1.0)));
    let [stored, q8, q4] =
        [&[][..], &["--quantize", "q8"], &["--quantize", "q4"]].map(|more| kl(&against(more)));
    assert!(stored < 1e-6 && stored < q8 && q8 < 0.01 * q4 && q4 < 0.2, "{stored} {q8} {q4}");
    assert_eq!(eval(&[])["against"], Value::Null);
}

#[test]
fn windows_and_prefixes_are_scored_as_documented() {
    let (folder, text) = (pocket_folder(), text_file(TEXT.as_bytes()));
    let (model, text) = (shown(folder.path()), shown(text.path()));
    let eval = |more: &[&str]| parse(&ok(&[&["eval", model, text, "--json"], more].concat(), ""));
    let tokens = parse(&ok(&["tokenize"], &json!(TEXT).to_string()))["ids"].as_array().map(Vec::len);
    let tokens = tokens.expect("a list") as u64;
    for (more, windows, scored) in [
        (&[][..], 1, tokens - 1),
        (&["--context", "10"], tokens.div_ceil(10), tokens - tokens.div_ceil(10)),
        (&["--prefix", "<|im_end|>"], 1, tokens),
    ] {
        let report = eval(more);
        assert_eq!(
            (&report["windows"], &report["scored_tokens"]),
            (&json!(windows), &json!(scored)),
            "{more:?}"
        );
        assert_eq!(report["tokens"], tokens);
    }
    let perplexity = |more: &[&str]| eval(more)["perplexity"].as_f64().expect("a number");
    assert!(perplexity(&[]) < perplexity(&["--context", "2"]), "what came before helps");
    let out = ok(&["eval", model, text, "--against", model], "");
    let names: Vec<_> = out.lines().skip(2).map(|line| line.split("  ").next()).collect();
    assert_eq!(names, ["perplexity", "against", "KL divergence", "same top token"].map(Some));
}

/// Perplexities of transformers for the same text (testdata/models/accuracy.py): layers with windows, and without.
#[test]
fn perplexities_are_those_of_transformers() {
    let text = text_file(TEXT.as_bytes());
    for (model, expected) in [
        ("models/pocket/model", 9.5453),
        ("testdata/models/llama-tiny-bias", 14_527.691_8),
        ("testdata/models/qwen3-tiny-window", 20_445.924_2),
    ] {
        let model = format!("{}/../../{model}", env!("CARGO_MANIFEST_DIR"));
        let report =
            parse(&ok(&["eval", &model, shown(text.path()), "--context", "64", "--kv", "f32", "--json"], ""));
        let perplexity = report["perplexity"].as_f64().expect("a number");
        assert!((perplexity / expected - 1.0).abs() < 1e-4, "{model}: {perplexity} is not {expected}");
    }
}

#[test]
fn a_text_that_cannot_be_scored_is_named() {
    let folder = pocket_folder();
    let model = shown(folder.path());
    let check = |text: &[u8], more: &[&str], expected: &str| {
        let file = text_file(text);
        let message = error(&[&["eval", model, shown(file.path())], more].concat(), "");
        assert!(message.contains(expected), "no {expected} in {message}");
    };
    check(b"", &[], "it has 0");
    check(b"\xff\xfe text", &[], "UTF-8");
    check(b"some text", &["--context", "1"], "at least 2 tokens");
    check(b"some text", &["--context", "5000"], "the model holds 2048");
    check(b"some text", &["--against", "nowhere"], "--against: there is no model");
    let nowhere = folder.path().join("nowhere.txt");
    assert!(error(&["eval", model, shown(&nowhere)], "").contains("nowhere.txt"));
    assert!(error(&["eval", model, model], "").contains(model), "a folder is no text");
}

#[test]
fn a_model_that_is_not_there_tells_what_would_be_one() {
    let run = lm(&["chat", "nowhere"], "");
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!("missing_model", run.err);
}

#[test]
fn a_broken_folder_is_named_with_the_file() {
    let folder = pocket_folder();
    let path = shown(folder.path());
    let break_and_check = |file: &str, bytes: &[u8], expected: &[&str]| {
        let whole = std::fs::read(folder.path().join(file)).expect("is there");
        std::fs::write(folder.path().join(file), bytes).expect("can be written");
        let message = error(&["generate", "-m", path, "Hello"], "");
        for expected in expected {
            assert!(message.contains(expected), "no {expected} in {message}");
        }
        std::fs::write(folder.path().join(file), whole).expect("can be written");
    };
    let weights = std::fs::read(folder.path().join("model.safetensors")).expect("is there");
    break_and_check("model.safetensors", &weights[..weights.len() / 2], &["model.safetensors"]);
    break_and_check("config.json", b"{\"model_type\": \"gpt2\"}", &["config.json", "gpt2", "qwen3"]);
    break_and_check("chat_template.jinja", b"{% for %}", &["template", "line 1"]);
    break_and_check("tokenizer.json", b"[", &["tokenizer"]);
    std::fs::remove_file(folder.path().join("tokenizer.json")).expect("is there");
    assert!(error(&["tokenize", path], "").contains("tokenizer.json"));
}

#[test]
fn a_device_that_is_not_built_in_tells_how_to_get_it() {
    let run = lm(&["generate", "--device", "gpu", "Hello"], "");
    // If the program is built with the feature, the device may exist.
    if run.code != Some(0) {
        assert!(run.err.contains("feature") || run.err.contains("adapter"), "{}", run.err);
    }
}

#[test]
fn usage_errors_end_with_two() {
    for args in
        [["chat", "--quantize", "q5"], ["generate", "--raw", "--tools=demo"], ["bench", "--runs", "0"]]
    {
        assert_eq!(lm(&args, "").code, Some(2), "{args:?}");
    }
    assert_eq!(lm(&[], "").code, Some(2));
}

#[test]
fn help_is_as_documented() {
    for command in [
        "batch",
        "bench",
        "chat",
        "completions",
        "convert",
        "detokenize",
        "eval",
        "generate",
        "grammar",
        "inspect",
        "list",
        "logits",
        "parse",
        "pull",
        "rm",
        "score",
        "template",
        "tokenize",
    ] {
        insta::assert_snapshot!(format!("help_{command}"), ok(&[command, "--help"], ""));
    }
    insta::assert_snapshot!("help", ok(&["--help"], ""));
}

/// Ctrl-C is the signal SIGINT: without a terminal it ends the program with its turn.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_piped_chat() {
    // Without its end tokens the model generates until the context is full.
    let endless = ["chat", "--logit-bias", "2037=-inf", "--logit-bias", "2039=-inf"];
    let mut child = start(&endless);
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(b"Hello\nHello\n").expect("the program reads");
    let mut stdout = child.stdout.take().expect("is piped");
    let mut first = [0];
    stdout.read_exact(&mut first).expect("the reply begins");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("output is text");
    assert_eq!(rest.lines().count(), 1, "the second turn is not run: {rest}");
    assert_eq!(child.wait().expect("the program ends").code(), Some(130));
}

#[test]
fn completions_and_man_pages_are_generated() {
    assert!(ok(&["completions", "bash"], "").contains("--hide-thinking"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    ok(&["man", shown(folder.path())], "");
    let page = std::fs::read_to_string(folder.path().join("lm-chat.1")).expect("a page");
    assert!(page.contains("hide\\-thinking"), "{page}");
}
