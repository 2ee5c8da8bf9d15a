//! End-to-end tests of the `lm` program's commands, errors and help.

use std::path::Path;

use crate::program::{error, lm, ok, parse, pocket_folder, refused, shown, text_file};
use serde_json::{Value, json};

#[test]
fn errors_name_the_flag_and_the_value() {
    let check = |args: &[&str], expected: &str| {
        let run = lm(args, "");
        assert!(run.code == Some(1) && run.err.contains(expected), "{args:?}: {}", run.err);
    };
    let empty = text_file(b"");
    check(&["chat", shown(empty.path())], "is neither a model folder nor a GGUF file: it is empty");
    let schema = text_file(br##"{"$ref": "#/nowhere"}"##);
    check(&["generate", "Hello", "--schema", shown(schema.path())], "the schema has nothing at #/nowhere");
    let ids = text_file(b"[1]\n[2]\n[1, 999999]\n");
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
fn tokens_are_listed_for_reading() {
    let lines = ok(&["tokenize", "--text", "Hello"], "");
    assert!(lines.trim_end().ends_with("\"Hello\""), "{lines}");
    assert_eq!(ok(&["tokenize", "--text", "😀"], "").lines().count(), 4, "bytes are escaped");
}

#[test]
fn converted_folder_equals_quantisation_at_load() {
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
    assert!(of("decode")["swing"].is_null(), "one run has no range: {}", run.out);
    assert!(run.err.contains("skipped: prefill: it takes 100000 tokens"), "{}", run.err);
    assert!(!run.err.contains("measuring"), "only a terminal shows the progress: {}", run.err);
    for (runs, expected) in [("1", ", one run\n"), ("2", ", medians of 2 runs\n")] {
        let run = lm(&["bench", "--only", "prefill", "--prefill", "8", "--runs", runs], "");
        assert!(run.out.contains(expected), "{}", run.out);
        assert_eq!(run.out.trim_end().ends_with('–'), runs == "1", "{}", run.out);
    }
}

#[test]
fn folder_missing_a_model_file_gets_a_hint() {
    let recipe = format!("{}/../../models/pocket", env!("CARGO_MANIFEST_DIR"));
    let message = lm(&["inspect", &recipe], "").err;
    assert!(
        message.contains("has no model.safetensors\nhint: give a folder that holds config.json"),
        "{message}"
    );
}

#[test]
fn vision_model_is_measured_with_an_image() {
    let data = |path: &str| format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    let (model, image) = (data("vision/smolvlm-tiny"), data("media/rgb_37x53.png"));
    let only = ["--only", "image,image_prefill", "--runs", "1", "--json"];
    let run = lm(&[&["bench", &*model, "--image", &*image], &only[..]].concat(), "");
    let figures: Vec<_> = run.out.lines().map(parse).collect();
    assert_eq!(figures.len(), 2, "{}", run.err);
    assert_eq!((&figures[0]["metric"], &figures[0]["unit"]), (&json!("image"), &json!("ms")));
    // The image is 48 pixels high: two rows of two tiles and the overview, four rows each.
    assert_eq!(figures[0]["context"], 20);
    assert_eq!(figures[1]["unit"], "tokens/s");
    assert!(figures.iter().all(|figure| figure["value"].as_f64() > Some(0.0)), "{}", run.out);
    refused(&["bench", "--only", "image"], "--image FILE");
    let no_tower = lm(&["bench", "--image", &image, "--only", "image"], "");
    assert!(no_tower.err.contains("the model has no vision encoder"), "{}", no_tower.err);
}

#[test]
fn profile_shows_time_per_pass_part() {
    let profile = |more: &[&str]| {
        let lengths = ["bench", "--profile", "--prefill", "40", "--decode", "0", "--runs", "2"];
        let run = lm(&[&lengths[..], more].concat(), ""); // A debug build warns that its figures say nothing.
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.out
    };
    let lines: Vec<_> = profile(&["--json"]).lines().map(parse).collect();
    for (line, name, context, passes) in [(&lines[0], "prefill", 40, 2), (&lines[1], "decode", 0, 126)] {
        assert_eq!((&line["profile"], &line["context"]), (&json!(name), &json!(context)));
        assert!(line["passes"].as_u64() >= Some(passes), "{line}");
        let parts = line["parts"].as_object().expect("milliseconds by kind of work");
        let sum: f64 = parts.values().filter_map(Value::as_f64).sum();
        let all = line["milliseconds"].as_f64().expect("milliseconds of a pass");
        assert!((sum - all).abs() < 1e-6 * all, "{line}");
        assert!(parts["linear"].as_f64() > Some(0.0) && parts["attention"].as_f64() > Some(0.0), "{line}");
    }
    let table = profile(&[]);
    assert!(table.starts_with("         context  passes         ms"), "{table}");
    assert_eq!(table.lines().count(), 3, "{table}");
}

const TEXT: &str = "<|im_start|>user\nHow is the weather in Paris?<|im_end|>\n<|im_start|>assistant\n\
                    I am sorry, none of my tools can help with that.<|im_end|>\n";

#[test]
fn divergence_from_itself_is_that_of_quantisation() {
    let (folder, text) = (pocket_folder(), text_file(TEXT.repeat(5).as_bytes()));
    let (model, text) = (shown(folder.path()), shown(text.path()));
    let eval = |more: &[&str]| parse(&ok(&[&["eval", model, text, "--json"], more].concat(), ""));
    let against = |more: &[&str]| eval(&[&["--against", model, "--context", "64"], more].concat());
    let kl = |report: &Value| report["against"]["kl_divergence"].as_f64().expect("a number");
    let itself = against(&["--quantize", "q4", "--against-quantize", "q4", "--kv", "f32"]);
    assert_eq!((kl(&itself), &itself["against"]["same_top"]), (0.0, &json!(1.0)));
    let [stored, q8, q4] =
        [&[][..], &["--quantize", "q8"], &["--quantize", "q4"]].map(|more| kl(&against(more)));
    assert!(stored < 1e-6 && stored < q8 && q8 < 0.05 * q4 && q4 < 0.2, "{stored} {q8} {q4}");
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

/// Perplexities of transformers for the same text (testdata/models/accuracy.py): layers with windows, and
/// without.
#[test]
fn perplexities_equal_transformers() {
    let text = text_file(TEXT.as_bytes());
    for (model, expected) in [
        ("models/pocket/model", 12.5984),
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
fn unscorable_text_is_named() {
    let folder = pocket_folder();
    let model = shown(folder.path());
    let check = |text: &[u8], more: &[&str], expected: &str| {
        let file = text_file(text);
        let message = error(&[&["eval", model, shown(file.path())], more].concat(), "");
        assert!(message.contains(expected), "no {expected} in {message}");
    };
    check(b"", &[], "it has 0");
    check(b"\xff\xfe text", &[], "UTF-8");
    check(b"some text", &["--against", "nowhere"], "--against: there is no model");
    let nowhere = folder.path().join("nowhere.txt");
    assert!(error(&["eval", model, shown(&nowhere)], "").contains("nowhere.txt"));
    assert!(error(&["eval", model, model], "").contains(model), "a folder is not a text");
}

#[test]
fn missing_model_error_describes_valid_ones() {
    let run = lm(&["chat", "nowhere"], "");
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!("missing_model", run.err);
}

#[test]
fn broken_folder_error_names_the_file() {
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
    break_and_check("config.json", b"{\"model_type\": \"t5\"}", &["config.json", "t5", "qwen3"]);
    break_and_check("chat_template.jinja", b"{% for %}", &["template", "line 1"]);
    break_and_check("tokenizer.json", b"[", &["tokenizer"]);
    std::fs::remove_file(folder.path().join("tokenizer.json")).expect("is there");
    assert!(error(&["tokenize", path], "").contains("tokenizer.json"));
}

#[test]
fn missing_device_has_build_hint() {
    let run = lm(&["generate", "--device", "gpu", "--max-tokens", "1", "Hello"], "");
    // If the program is built with the feature, the device may exist.
    if run.code != Some(0) {
        let expected = if run.err.contains("adapter") { 1 } else { 2 };
        assert!(run.err.contains("feature") || run.err.contains("adapter"), "{}", run.err);
        assert_eq!(run.code, Some(expected), "{}", run.err);
    }
}

#[test]
fn usage_errors_exit_with_two() {
    for args in
        [["chat", "--quantize", "q5"], ["generate", "--raw", "--tools=demo"], ["bench", "--runs", "0"]]
    {
        assert_eq!(lm(&args, "").code, Some(2), "{args:?}");
    }
    assert_eq!(lm(&[], "").code, Some(2));
    let text = text_file(b"some text");
    let (text, folder) = (shown(text.path()), pocket_folder());
    let model = shown(folder.path());
    let too_long = "--context 5000: this model supports at most 2048";
    for command in [&["generate", "Hello"][..], &["chat"], &["bench"], &["batch"], &["eval", model, text]] {
        refused(&[command, &["--context", "5000"]].concat(), too_long);
    }
    refused(&["eval", model, text, "--context", "1"], "at least 2 tokens");
    refused(&["generate", "Hello", "--stop", ""], "--stop");
    refused(&["generate", "Hello", "--logit-bias", "17"], "as in 17=-2.5");
    refused(&["generate", "Hello", "--logit-bias", "17=nan"], "as in 17=-2.5");
    refused(&["chat", "--logit-bias", "2048=1"], "--logit-bias 2048: the model has token ids below 2048");
    let long = "-".repeat(65);
    refused(&["chat", "--dry-sequence-breaker", &long], "dry_sequence_breakers");
    refused(&["generate", "Hello", "--thinking"], "on, off");
    refused(&["generate", model, "-m", model, "--ids", text], "given twice");
    let call = ["--tools", "demo", "--tool-choice", "required", "--regex", "yes|no"];
    refused(&[&["generate", "Hello"], &call[..]].concat(), "constrain an answer");
    refused(&["bench", "--only", "prefill", "--prefill", "5000"], "nothing was measured");
}

#[test]
fn convert_names_the_missing_argument() {
    let folder = pocket_folder();
    let (model, gguf) = (shown(folder.path()), folder.path().join("m.gguf"));
    refused(&["convert"], "the output is missing: expected `lm convert MODEL OUTPUT`");
    for args in [&[model][..], &["--model", model]] {
        let line = format!("write `lm convert {model} ");
        refused(&[&["convert"], args].concat(), &line);
    }
    refused(&["convert", "pocket"], "the output is missing; write `lm convert pocket ");
    refused(
        &["convert", "Owner/Name"],
        "`Owner/Name` is read as the model, because there is no folder `Owner` to write to; there is no model `Owner/Name`",
    );
    refused(&["convert", model, "copy", "-m", model], "the model is given twice");
    refused(&["convert", shown(&gguf), "--quantize", "q8"], "only in q8_0, q4_0, f16, bf16, f32");
    refused(&["convert", model, "copy", "--quantize", "f16"], "only in q8, q4");
}

/// Every command that an error of `lm convert` suggests is run in a shell.
#[cfg(unix)]
#[test]
fn suggested_conversions_work() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_lm"));
    let run = |line: &str| {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(folder.path());
        let output =
            command.env("PATH", program.parent().expect("a folder")).output().expect("the shell starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for line in [
        "q8",
        "it\\'s.gguf",
        "'a copy' --quantize q4",
        "q4.gguf --quantize q4_0",
        "--model q4.gguf 'q4 0.gguf' --quantize q4_0",
    ] {
        assert_eq!(run(&format!("lm convert {line}")), (Some(0), String::new()), "{line}");
    }
    std::fs::create_dir(folder.path().join("nothing")).expect("can be made");
    for (line, suggestions) in [
        ("q8", 1),
        ("it\\'s.gguf", 3),
        ("'a copy'", 1),
        ("nothing", 1),
        ("--model it\\'s.gguf", 2),
        ("q4.gguf", 3),
        ("it\\'s.gguf other.gguf --quantize q8", 2),
        ("it\\'s.gguf other --quantize q4_0", 2),
        ("it\\'s.gguf other --quantize f16", 1),
    ] {
        let (code, message) = run(&format!("lm convert {line}"));
        assert_eq!(code, Some(2), "{line}: {message}");
        let commands: Vec<_> = message.split('`').filter(|part| part.starts_with("lm convert ")).collect();
        assert_eq!(commands.len(), suggestions, "{line}: {message}");
        for command in commands {
            assert_eq!(run(command), (Some(0), String::new()), "{command}: {message}");
        }
    }
    let (code, message) = run("lm convert it\\'s.gguf q8");
    assert_eq!(code, Some(1), "{message}");
    assert!(
        message.contains(
            "`q8` cannot be written: it exists already; remove it, or name another output, such as q8-3"
        ),
        "{message}"
    );
    for (output, why) in [
        ("no/such/model.gguf", "there is no folder `no/such`; create it, or name another output"),
        ("/dev/full", "it exists, and is neither a file nor a folder; name another output"),
    ] {
        let (code, message) = run(&format!("lm convert it\\'s.gguf {output}"));
        assert_eq!(code, Some(1), "{message}");
        assert!(message.contains(&format!("`{output}` cannot be written: {why}")), "{message}");
    }
}

/// The weights are damaged: an error that does not name them comes before they are read.
#[test]
fn files_are_checked_before_the_model_is_loaded() {
    let folder = pocket_folder();
    std::fs::write(folder.path().join("model.safetensors"), "damaged").expect("can be written");
    let model = shown(folder.path());
    let (bad, ids) = (text_file(b"{\"a\""), text_file(b"[1]"));
    let (bad, ids) = (shown(bad.path()), shown(ids.path()));
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/pocket/eval/documented.jsonl");
    for (args, expected) in [
        (&["generate", "-m", model, "Hello", "--schema", bad][..], "--schema"),
        (&["generate", "-m", model, "Hello", "--tools", bad], "tools file"),
        (&["generate", "-m", model, "--ids", "/nowhere/ids"], "/nowhere/ids"),
        (&["chat", model, "--resume", bad], "cannot be loaded"),
        (&["chat", model, "--tools", bad], "tools file"),
        (&["logits", model, "--ids", bad, "--out", "x.npy"], "line 1"),
        (&["logits", model, "--ids", ids, "--out", "/nowhere/x.npy"], "/nowhere/x.npy"),
        (&["score", "-m", model, bad], "line 1"),
        (&["score", "-m", model, ids], "line 1: expected a JSON object"),
        (&["score", "-m", model, recording, "--failures", "/nowhere/failures"], "/nowhere/failures"),
        (&["eval", model, ids, "--against", "/nowhere/model"], "--against: there is no model"),
    ] {
        let message = error(args, "");
        assert!(message.contains(expected) && !message.contains("model.safetensors"), "{args:?}: {message}");
    }
}

#[test]
fn default_window_fits_the_model() {
    let folder = pocket_folder();
    let config = folder.path().join("config.json");
    let text = std::fs::read_to_string(&config).expect("is there");
    let mut json = parse(&text);
    json["max_position_embeddings"] = json!(100);
    std::fs::write(&config, json.to_string()).expect("can be written");
    let text = text_file(TEXT.repeat(4).as_bytes());
    let run = lm(&["eval", shown(folder.path()), shown(text.path()), "--json"], "");
    assert_eq!((run.code, &parse(&run.out)["context"]), (Some(0), &json!(100)), "{}", run.err);
    assert!(run.err.contains("note: windows of 100 tokens"), "{}", run.err);
}

/// Their cache has fewer states than pages of tokens.
#[test]
fn recurrent_models_read_long_texts_in_pieces_or_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/lfm2-tiny");
    for file in ["model.safetensors", "tokenizer.json", "config.json"] {
        std::fs::copy(model.join(file), folder.path().join(file)).expect(file);
    }
    let config = folder.path().join("config.json");
    let mut json = parse(&std::fs::read_to_string(&config).expect("is there"));
    json["max_position_embeddings"] = json!(1024);
    std::fs::write(&config, json.to_string()).expect("can be written");
    let ids: Vec<String> = (0..600).map(|index| (index * 7 % 60 + 3).to_string()).collect();
    let ids = text_file(format!("[{}]", ids.join(", ")).as_bytes());
    let logits = |chunk: &[&str]| {
        let out = folder.path().join("logits.npy");
        let args = ["logits", "-m", shown(folder.path()), "--ids", shown(ids.path()), "--out", shown(&out)];
        let run = lm(&[&args[..], chunk].concat(), "");
        assert_eq!(run.code, Some(0), "{}", run.err);
        std::fs::read(out).expect("the logits")
    };
    let whole = logits(&[]);
    assert!(["7", "100"].iter().all(|chunk| logits(&["--chunk", chunk]) == whole));
}

#[test]
fn file_without_conversations_is_rejected() {
    for text in ["", "\n\n", "{\"skills\": [], \"tools\": [], \"messages\": []}\n"] {
        let file = text_file(text.as_bytes());
        assert!(error(&["score", shown(file.path())], "").ends_with("nothing to score"), "{text:?}");
    }
}

#[test]
fn embedded_model_notes_unused_pack_cache() {
    let run = lm(&["generate", "Hello", "-n", "2", "--quantize", "q4", "--pack-cache=/nowhere"], "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("note: --pack-cache: nothing is cached for the embedded model"), "{}", run.err);
}

#[test]
fn help_is_as_documented() {
    for command in [
        "batch",
        "bench",
        "chat",
        "completions",
        "conversations",
        "convert",
        "detokenize",
        "embed",
        "eval",
        "generate",
        "grammar",
        "imatrix",
        "inspect",
        "list",
        "logits",
        "mcp",
        "parse",
        "pull",
        "replay",
        "rerank",
        "rm",
        "score",
        "serve",
        "template",
        "tokenize",
    ] {
        let help = ok(&[command, "--help"], "");
        if let Some((_, examples)) = help.split_once("Examples:\n") {
            let is_whole = |line: &str| shlex::split(line).is_some();
            let examples: Vec<_> = examples.lines().take_while(|line| !line.is_empty()).collect();
            assert!(examples.iter().all(|line| is_whole(line)), "an example is wrapped: {examples:?}");
        }
        insta::assert_snapshot!(format!("help_{command}"), help);
    }
    insta::assert_snapshot!("help", ok(&["--help"], ""));
}

#[test]
fn completions_and_man_pages_are_generated() {
    assert!(ok(&["completions", "bash"], "").contains("--hide-thinking"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    ok(&["man", shown(folder.path())], "");
    let page = std::fs::read_to_string(folder.path().join("lm-chat.1")).expect("a page");
    assert!(page.contains("hide\\-thinking"), "{page}");
}
