//! End-to-end tests of `lm generate`: answers, events, prompts and flags.

use crate::program;
use crate::program::{lm, parse, pocket_folder, shown, text_file};
use serde_json::{Value, json};

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
fn events_are_json_lines() {
    let events = events(&["--tools", "demo", "How is the weather in Paris?"], "");
    assert_eq!(events[1]["type"], "tool_call");
    assert_eq!(events[1]["arguments"], json!({"location": "Paris"}));
    let last = events.last().expect("an event");
    assert_eq!((&last["type"], &last["finish_reason"]), (&json!("finished"), &json!("tool_calls")));
    assert_eq!(last["message"]["tool_calls"][0]["function"]["name"], "get_weather");
    assert!(last["usage"]["completion_tokens"].as_u64() > Some(1));
}

#[test]
fn draft_model_keeps_tokens_and_needs_the_same_tokenizer() {
    let draft = pocket_folder();
    let reply = lm(&["generate", "What is the capital of France?", "--draft-model", shown(draft.path())], "");
    assert_eq!(reply.out, lm(&["generate", "What is the capital of France?"], "").out);
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/qwen3-tiny");
    let error = program::error(&["generate", "Hello", "--draft-model", other], "");
    assert!(error.contains("has another tokenizer"), "{error}");
    program::refused(&["embed", "Hello", "--draft-model", other], "`lm embed` drafts no tokens");
    program::refused(&["embed", "Hello", "--record", "requests.jsonl"], "has no requests to record");
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
fn last_event_reports_failed_and_cut_replies() {
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
fn only_the_answer_is_on_standard_output() {
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
fn inline_schema_is_read_and_unbounded_string_noted() {
    let choice = lm(&["generate", "Hello", "-m", "pocket", "--schema", r#" {"enum": ["a", "b"]}"#], "");
    assert!(["\"a\"\n", "\"b\"\n"].contains(&choice.out.as_str()), "{}{}", choice.out, choice.err);
    program::refused(&["generate", "Hello", "--schema", "{"], "--schema: the text is not JSON");
    let early =
        program::error(&["generate", "Hello", "-m", "./nowhere", "--schema", r#"{"type": "whole"}"#], "");
    assert!(early.contains("\"whole\" is not a type"), "{early}");
    let cut =
        lm(&["generate", "Hello", "--temperature", "0", "--schema", r#"{"type": "object"}"#, "-n", "12"], "");
    assert!(cut.err.contains("maxLength limits a string"), "{}{}", cut.out, cut.err);
    assert!(parse(&cut.out).is_object(), "{}", cut.out);
}

#[test]
fn prompt_is_positional_named_or_from_a_file() {
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
        (&["convert", shown(folder.path())], "the output is missing"),
        (&["generate", "m/smol"], "looks like the path or the name of a model"),
        (&["generate", "./model.gguf"], "--prompt (-p) sends this text as a prompt"),
        (&["eval"], "the text is missing"),
    ] {
        let run = lm(args, "");
        assert_eq!((run.code, run.err.contains(message)), (Some(2), true), "{args:?}: {}", run.err);
    }
    for args in [&["-p", "m/smol"][..], &["-m", shown(folder.path()), "m/smol"]] {
        let run = lm(&[&["generate", "-n", "2"], args].concat(), "");
        assert_eq!(run.code, Some(0), "{args:?}: {}", run.err);
    }
    let text = lm(&["generate", "-n", "2", "-p", shown(folder.path())], "");
    assert_eq!(text.code, Some(0), "{}", text.err);
}

#[test]
fn grammar_is_a_file_or_a_text() {
    let gbnf = text_file(b"root ::= \"ab\" number\nnumber ::= [0-9]");
    let lark = text_file(b"start: \"ab\" /[0-9]/");
    let texts = ["root ::= \"ab\" [0-9]", "start: \"ab\" /[0-9]/", "number: /[0-9]/\nstart: \"ab\" number"];
    for grammar in [shown(gbnf.path()), shown(lark.path())].into_iter().chain(texts) {
        let run = lm(&["generate", "Hello", "--grammar", grammar], "");
        let digit = run.out.trim_end().strip_prefix("ab");
        assert!(digit.is_some_and(|it| it.parse::<u8>().is_ok()), "{grammar}: {} {}", run.out, run.err);
    }
}

#[test]
fn errors_of_grammars_name_their_files() {
    let mistyped = text_file(b"# a list\nroot := \"a\"");
    let unknown = text_file(b"start: /a/ other");
    let name = |file: &tempfile::NamedTempFile| format!("error: --grammar {}: ", shown(file.path()));
    let mistyped_error = format!("{}GBNF, line 2: expected `::=` after `root`", name(&mistyped));
    let unknown_error = format!("{}invalid grammar: at 1(8): unknown name: \"other\"", name(&unknown));
    for (grammar, message) in [
        (shown(mistyped.path()), mistyped_error.as_str()),
        (shown(unknown.path()), unknown_error.as_str()),
        ("root ::= other", "error: --grammar: GBNF, line 1: no rule `other`"),
        ("start: other", "error: --grammar: invalid grammar: at 1(8): unknown name: \"other\""),
        ("no-such-file.gbnf", "error: --grammar no-such-file.gbnf cannot be read"),
    ] {
        let run = lm(&["generate", "Hello", "--grammar", grammar], "");
        assert!(run.code == Some(1) && run.err.contains(message), "{grammar}: {:?} {}", run.code, run.err);
        assert!(!run.err.contains("%lark"), "{}", run.err);
    }
}

#[test]
fn piped_text_precedes_the_prompt() {
    let replies = |prompt: &str, input: &str| lm(&["generate", "--raw", "-n", "8", "--", prompt], input).out;
    let whole = replies("The weather\n\nin Paris", "");
    assert_eq!(replies("in Paris", "The weather\n"), whole);
    assert_eq!(replies("in Paris", " \n"), replies("in Paris", ""));
    assert_eq!(lm(&["generate", "--raw", "-n", "8", "-"], "\u{feff}The weather\n\nin Paris").out, whole);
}

#[test]
fn raw_text_is_continued_up_to_the_limit() {
    let args =
        ["generate", "--raw", "--json", "--max-tokens", "5", "--logit-bias", "2037=-inf", "--logit-bias"];
    let out = lm(&[args.as_slice(), &["2039=-inf", "The weather"]].concat(), "").out;
    let events: Vec<_> = out.lines().map(parse).collect();
    assert_eq!(events.iter().filter(|event| event["type"] == "token").count(), 5);
    assert_eq!(events[6]["finish_detail"], "max_tokens");
}

#[test]
fn sampling_depends_on_the_seed() {
    let reply =
        |seed| lm(&["generate", "--temperature", "3", "--seed", seed, "--max-tokens", "30", "Hello"], "").out;
    assert_eq!(reply("1"), reply("1"));
    assert_ne!(reply("1"), reply("2"));
}

#[test]
fn unwritable_pack_cache_is_reported() {
    let (folder, file) = (pocket_folder(), text_file(b"no folder"));
    let cache = format!("--pack-cache={}/packed", shown(file.path()));
    let run =
        lm(&["generate", "-m", shown(folder.path()), "--quantize", "q4", &cache, "-n", "2", "Hello"], "");
    assert_eq!(run.code, Some(0));
    assert!(run.err.contains("loading without the pack cache"), "{}", run.err);
}

/// A copy of a model folder with a chat template that writes these placeholders of images and audio.
fn with_template(model: &str, [image, audio]: [&str; 2]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for file in std::fs::read_dir(model).expect("a folder").map(|file| file.expect("a file").path()) {
        std::fs::copy(&file, folder.path().join(file.file_name().expect("a name"))).expect("is copied");
    }
    let part = format!(
        "{{% if part.type == 'image' %}}{image}{{% elif part.type == 'audio' %}}{audio}{{% else %}}{{{{ part.text }}}}{{% endif %}}"
    );
    let parts = format!("{{% for part in m.content %}}{part}{{% endfor %}}");
    let content =
        format!("{{% if m.content is string %}}{{{{ m.content }}}}{{% else %}}{parts}{{% endif %}}");
    let template = format!("{{% for m in messages %}}{content}{{% endfor %}}");
    std::fs::write(folder.path().join("chat_template.jinja"), template).expect("is written");
    folder
}

#[test]
fn chat_with_a_model_without_settings_samples() {
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/qwen3-tiny");
    let folder = with_template(tiny, ["", ""]);
    let settings = folder.path().join("generation_config.json");
    std::fs::remove_file(settings).expect("the checkpoint has one");
    let seed = |more: &[&str]| {
        let args = [&["Hello", "-m", shown(folder.path()), "-n", "2"], more].concat();
        events(&args, "")[0]["seed"].clone()
    };
    assert!(seed(&[]).is_u64(), "drawn for a reply that is sampled");
    assert!(seed(&["--temperature", "0"]).is_null());
    assert!(seed(&["--raw"]).is_null(), "plain text is continued greedily");
}

#[test]
fn media_files_are_read_before_the_model() {
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vision/gemma3-tiny");
    let media = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/media/");
    let folder = with_template(tiny, ["<start_of_image>", ""]);
    let tokens = |images: &[&str]| {
        let files: Vec<_> = images.iter().map(|name| format!("{media}{name}")).collect();
        let images = files.iter().flat_map(|file| ["--image", file]);
        let args: Vec<_> = ["in the rain?", "-m", shown(folder.path()), "--temperature", "0", "-n", "8"]
            .into_iter()
            .chain(images)
            .collect();
        let events = events(&args, "");
        let last = events.last().expect("an event").clone();
        (last["usage"]["prompt_tokens"].as_u64().expect("a count"), last["message"]["content"].clone())
    };
    let [none, one, other, two] =
        [&[][..], &["rgb_37x53.png"], &["rgba_29x41.png"], &["rgb_37x53.png", "rgba_29x41.png"]].map(tokens);
    // Nine rows per image, with a marker on each side and line breaks; those between two images are one
    // token.
    assert_eq!([one.0 - none.0, other.0 - none.0, two.0 - none.0], [14, 14, 27]);
    assert_ne!(one.1, other.1);
    let error = program::error(&["generate", "Hello", "--image", tiny], "");
    assert!(error.contains("gemma3-tiny"), "{error}");
    let error = program::error(&["generate", "Hello", "--image", &format!("{media}README.md")], "");
    assert!(error.contains("README.md") && error.contains("not image data"), "{error}");
    let error = program::error(&["generate", "Hello", "--audio", &format!("{media}rgb_1x1.png")], "");
    assert!(error.contains("rgb_1x1.png") && error.contains("expected WAV"), "{error}");
    let audio = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/sound/one_sample.wav");
    for (option, file, kind) in
        [("--image", &*format!("{media}rgb_1x1.png"), "images"), ("--audio", audio, "audio")]
    {
        let error = program::error(&["generate", "Hello", option, file], "");
        let expected = format!("{file}: the model `pocket` reads no {kind}");
        assert_eq!(error, expected, "the embedded model reads text");
    }
    let error = program::error(&["generate", "Hello", "--image", "https://example.com/cat.png"], "");
    assert!(error.contains("https://example.com/cat.png: URLs are not fetched"), "{error}");
    let error = program::error(&["generate", "Hello", "--audio", audio, "-m", shown(folder.path())], "");
    assert!(error.contains("reads no audio"), "a model of images and text: {error}");
}

#[test]
fn multimodal_model_reports_modalities_and_reads_audio() {
    let data = |path: &str| format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    let folder = with_template(&data("audio/gemma4-tiny"), ["<|image|>", "<|audio|>"]);
    let model = shown(folder.path());
    assert!(program::ok(&["inspect", model], "").contains("input         text, images, audio\n"));
    let reply = |more: &[&str]| {
        let args = ["in the rain?", "-m", model, "--temperature", "0", "-n", "8"];
        let last = events(&[&args, more].concat(), "").last().expect("an event").clone();
        (last["usage"]["prompt_tokens"].as_u64().expect("a count"), last["message"]["content"].clone())
    };
    let audios = ["sound/pcm16_16k.wav", "sound/silence.wav"].map(data);
    let (none, noise, silence) =
        (reply(&[]), reply(&["--audio", &audios[0]]), reply(&["--audio", &audios[1]]));
    // 8,000 and 1,000 samples: 50 and 6 frames, four of them a row, with a marker on each side.
    assert_eq!([noise.0 - none.0, silence.0 - none.0], [13 + 2, 2 + 2]);
    assert_ne!(noise.1, silence.1);
    let one_sample = data("sound/one_sample.wav");
    let error = program::error(&["generate", "Hello", "-m", model, "--audio", &one_sample], "");
    assert!(error.starts_with(&format!("{one_sample}: ")), "{error}");
    assert!(error.contains("1 samples"), "too short for a frame: {error}");
    let second = ["--system", "Listen.", "--audio", &audios[0], "--audio", &one_sample];
    let error = program::error(&[&["generate", "Hello", "-m", model], &second[..]].concat(), "");
    assert!(error.starts_with(&format!("{one_sample}: ")), "{error}");
    assert!(error.contains("part 1 of message 1"), "{error}");
    chat_names_the_file(model, &audios[0], &one_sample);
}

/// Checks that a chat names a rejected audio file after an accepted one, which its history shows.
fn chat_names_the_file(model: &str, heard: &str, refused: &str) {
    let lines = format!("/audio {heard}\nHello\n/audio {refused}\nWhat is it?\n/history\n");
    let run = lm(&["chat", "-m", model, "-n", "2", "--system", "Listen."], &lines);
    let errors: Vec<_> = run.err.lines().filter(|line| line.starts_with("error: ")).collect();
    let [error] = errors[..] else { panic!("{}", run.err) };
    assert!(error.contains(refused) && error.contains("part 0 of message 3"), "{error}");
    assert!(run.err.contains("user: [audio] Hello") && !run.err.contains("What is it?"), "{}", run.err);
}

#[test]
fn truncated_image_is_named() {
    let data = |path: &str| format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    let folder = with_template(&data("vision/gemma3-tiny"), ["<start_of_image>", ""]);
    let cut = folder.path().join("cut.png");
    let whole = std::fs::read(data("media/rgb_37x53.png")).expect("an image");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("is written");
    let args = ["generate", "Hello", "-m", shown(folder.path()), "--image", shown(&cut)];
    let error = program::error(&args, "");
    assert!(error.starts_with(&format!("{}: ", shown(&cut))), "{error}");
    assert!(error.contains("the PNG file cannot be decoded"), "{error}");
}

#[test]
fn examples_with_repository_files_run() {
    let documents = [
        include_str!("../../../docs/cli.md"),
        include_str!("../../../testdata/audio/README.md"),
        include_str!("../../../testdata/vision/README.md"),
    ];
    let starts = documents.iter().flat_map(|document| document.split("lm generate ").skip(1));
    let examples: Vec<_> = starts
        .filter_map(|start| start.split(['\n', '`']).next().filter(|line| line.contains(" testdata/")))
        .collect();
    assert_eq!(examples.len(), 4, "{examples:?}");
    for example in examples {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/");
        let words =
            shlex::split(&example.replace(" testdata/", &format!(" {root}"))).expect("a command line");
        let args: Vec<_> = ["generate"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let run = program::lm(&args, "");
        assert_eq!(run.code, Some(0), "{example}: {}", run.err);
    }
}

#[test]
fn mismatched_tower_is_warned_about_once() {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vision/mmproj/");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("m.gguf");
    std::fs::copy(format!("{files}gemma3-tiny/model.gguf"), &model).expect("is copied");
    let tower = format!("{files}smolvlm-tiny/mmproj-smolvlm-tiny.gguf");
    std::fs::copy(tower, folder.path().join("mmproj.gguf")).expect("is copied");
    let run = program::lm(&["generate", "Hello", "-m", shown(&model), "-n", "1"], "");
    let warnings =
        run.err.lines().filter(|line| line.contains("the mmproj file beside the model is not used"));
    assert_eq!((run.code, warnings.count()), (Some(0), 1), "{}", run.err);
}

#[test]
fn gguf_model_reads_images_with_mmproj() {
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vision/mmproj/");
    let image = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/media/rgb_37x53.png");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("m.gguf");
    std::fs::copy(format!("{files}gemma3-tiny/model.gguf"), &model).expect("is copied");
    let tower = format!("{files}gemma3-tiny/mmproj-gemma3-tiny.gguf");
    let args = ["in the rain?", "-m", shown(&model), "--temperature", "0", "-n", "4"];
    let reply = |more: &[&str]| {
        let events = events(&[&args, more].concat(), "");
        let last = events.last().expect("an event").clone();
        (last["usage"]["prompt_tokens"].as_u64().expect("a count"), last["message"]["content"].clone())
    };
    let (none, seen) = (reply(&[]), reply(&["--mmproj", &tower, "--image", image]));
    assert_eq!(seen.0 - none.0, 14);
    let inspect = |more: &[&str]| program::ok(&[&["inspect", shown(&model)], more].concat(), "");
    assert!(inspect(&[]).contains("input         text\n"));
    assert!(inspect(&["--mmproj", &tower]).contains("input         text, images\n"));

    std::fs::copy(&tower, folder.path().join("mmproj-f32.gguf")).expect("is copied");
    assert_eq!(reply(&["--image", image]), seen);
    assert!(inspect(&[]).contains("input         text, images\n"));
    let other = format!("{files}smolvlm-tiny/mmproj-smolvlm-tiny.gguf");
    let error = program::error(&[&["generate"], &args[..], &["--mmproj", &other]].concat(), "");
    assert!(error.contains("idefics3") && error.contains("gemma3"), "{error}");
    program::refused(&["generate", "Hello", "--mmproj", &tower], "--mmproj: the embedded model");
}
