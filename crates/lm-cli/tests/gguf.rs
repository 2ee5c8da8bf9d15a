//! Round trip of `lm convert` to GGUF: the folder and the file give the same text with the same quantisation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `lm`; returns its standard output, or its standard error if it fails.
fn lm(args: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_lm")).args(args).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn ok(args: &[&str]) -> String {
    lm(args).unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn checkpoint(name: &str) -> PathBuf {
    root().join("testdata/models").join(name)
}

/// (Llama 3 is not among these: GGUF stores its RoPE frequencies as 32-bit divisors.)
#[test]
fn gguf_file_equals_folder_with_same_quantisation() {
    let out = tempfile::tempdir().expect("a temporary folder");
    for name in [
        "granite-tiny-bias",
        "mistral-tiny-full",
        "olmo2-tiny-gqa",
        "phi3-tiny",
        "qwen3-moe-tiny",
        "qwen3-tiny",
        "smollm3-tiny",
    ] {
        let folder = checkpoint(name);
        let mut texts = Vec::new();
        for (format, flag) in [("q8_0", "--quantize"), ("q4_0", "--quantize"), ("f16", "--dtype")] {
            let file = out.path().join(format!("{name}-{format}.gguf"));
            ok(&["convert", shown(&folder), shown(&file), "--quantize", format]);
            let run = ["--raw", "--temperature", "0", "--max-tokens", "40", "on the line"];
            let from_file = ok(&[&["generate", "-m", shown(&file)][..], &run].concat());
            let from_folder = ok(&[&["generate", "-m", shown(&folder), flag, format][..], &run].concat());
            assert_eq!(from_file, from_folder, "{name} {format}");
            texts.push(from_file);
        }
        assert!(texts.iter().all(|text| text.len() > 40), "{name}: {texts:?}");
    }
}

#[test]
fn split_files_are_merged_and_floats_quantised() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let parts = root().join("testdata/gguf/qwen3-tiny-bf16-00001-of-00003.gguf");
    let [from_parts, from_folder] = ["parts.gguf", "folder.gguf"].map(|name| out.path().join(name));
    for (model, file) in [(parts, &from_parts), (checkpoint("qwen3-tiny"), &from_folder)] {
        ok(&["convert", shown(&model), shown(file), "--quantize", "q4_0"]);
    }
    let run = ["--raw", "--temperature", "0", "--max-tokens", "40", "on the line"];
    let [one, other] =
        [from_parts, from_folder].map(|file| ok(&[&["generate", "-m", shown(&file)][..], &run].concat()));
    assert_eq!(one, other);
}

#[test]
fn chat_model_keeps_tokenizer_template_and_end_tokens() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let folder = root().join("models/pocket/model");
    let file = out.path().join("pocket-q8_0.gguf");
    // Q8_0 is the default format of a GGUF file.
    let wrote = ok(&["convert", shown(&folder), shown(&file)]);
    assert!(wrote.starts_with(&format!("wrote {} (q8_0, ", file.display())), "{wrote}");
    let run = ["--temperature", "0", "--max-tokens", "60", "--tools", "demo", "How is the weather in Paris?"];
    let from_file = ok(&[&["generate", "-m", shown(&file)][..], &run].concat());
    let from_folder = ok(&[&["generate", "-m", shown(&folder), "--quantize", "q8_0"][..], &run].concat());
    assert_eq!(from_file, from_folder);
    assert!(from_file.contains("get_weather"), "{from_file}");
    // Its pre-tokenizer has no name in GGUF, so the file contains the whole tokenizer.json.
    let text = "Zürich\u{301} 12345  \"x\": [1,\n\tß]";
    let ids = |model: &Path| ok(&["tokenize", shown(model), "--text", text]);
    assert_eq!(ids(&file), ids(&folder));
}

/// A chat model as a GGUF file, and what comes of it in other formats.
#[test]
fn quantised_file_is_converted() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| out.path().join(name);
    let [file, same, float, folder] = ["pocket.gguf", "same.gguf", "float.gguf", "folder"].map(path);
    ok(&["convert", shown(&file), "--quantize", "q4_0"]);
    let wrote = ok(&["convert", shown(&file), shown(&same)]);
    assert!(wrote.contains(" (q4_0 as stored, "), "{wrote}");
    let wrote = ok(&["convert", shown(&file), shown(&float), "--quantize", "f32"]);
    assert!(wrote.contains(" (f32, "), "{wrote}");
    let wrote = ok(&["convert", shown(&file), shown(&folder)]);
    assert!(wrote.contains(" (q8, "), "{wrote}");
    let call =
        ["--temperature", "0", "--max-tokens", "60", "--tools", "demo", "How is the weather in Paris?"];
    let text =
        |model: &Path, options: &[&str]| ok(&[&["generate", "-m", shown(model)], options, &call].concat());
    assert_eq!(text(&file, &[]), text(&same, &[]));
    assert_eq!(text(&file, &["--dtype", "f32"]), text(&float, &[]));
    assert_eq!(text(&file, &["--quantize", "q8"]), text(&folder, &[]));
    // Few bits are quantised again.
    let [again, eval] = ["again", "text"].map(path);
    let warned = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lm")).args(args).output().expect("the program starts");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {err}");
        err.contains("warning: the weights have 4.5 bits each already (q4_0)")
    };
    fs::write(&eval, "The weather in Paris is sunny.").expect("can be written");
    let load = [shown(&file), "--quantize", "q4"];
    assert!(warned(&["convert", shown(&file), shown(&again), "--quantize", "q4"]));
    assert!(warned(&[&["generate", "-m"][..], &load, &["--max-tokens", "1", "Hi"]].concat()));
    assert!(warned(&["eval", shown(&file), shown(&eval), "--quantize", "q4"]));
    let against = ["eval", shown(&file), shown(&eval), "--quantize", "q4", "--against", shown(&file)];
    assert!(!warned(&against), "it is measured");
    assert!(!warned(
        &[&["generate", "-m"][..], &load[..1], &["--quantize", "q8", "--max-tokens", "1", "Hi"]].concat()
    ));
    // A folder of quants is converted from its original only.
    let error = lm(&["convert", shown(&folder), shown(&path("no.gguf"))]).expect_err("is refused");
    assert!(
        error.contains("stored in q8") && error.contains("`lm convert ORIGINAL OUTPUT --quantize q8_0`"),
        "{error}"
    );
}

#[test]
fn types_of_mixed_files_are_named() {
    let mixed = root().join("testdata/gguf/mixed.gguf");
    let out = tempfile::tempdir().expect("a temporary folder");
    let text = out.path().join("text");
    fs::write(&text, "on the line").expect("can be written");
    let evaluated = ok(&["eval", shown(&mixed), shown(&text)]);
    let first = evaluated.lines().next().expect("a line").to_owned();
    let benched = ok(&["bench", shown(&mixed), "--only", "prefill", "--prefill", "8", "--runs", "1"]);
    for line in [&first, benched.lines().next().expect("a line")] {
        assert!(["q4_k", "q5_0", "iq4_xs", "mxfp4"].iter().all(|ty| line.contains(ty)), "{line}");
    }
    let shown_name = ok(&["inspect", shown(&mixed)]);
    assert!(shown_name.contains("\n  name          "), "{shown_name}");
}

/// Encoders are in files of their own, or in folders.
#[test]
fn missing_encoders_are_noted() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let noted = |model: &str, output: &str| {
        let (model, output) = (root().join("testdata").join(model), out.path().join(output));
        let args = ["convert", shown(&model), shown(&output)];
        let output = Command::new(env!("CARGO_BIN_EXE_lm")).args(args).output().expect("the program starts");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {err}");
        err
    };
    let images = noted("vision/qwen2-vl-tiny", "images.gguf");
    assert!(images.contains("images need the vision encoder") && !images.contains("audio"), "{images}");
    let audio = noted("audio/granite-speech-tiny", "audio.gguf");
    assert!(audio.contains("without the audio encoder") && !audio.contains("images"), "{audio}");
}

#[test]
fn unsupported_gguf_content_is_rejected_by_name() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let file = out.path().join("m.gguf");
    let refused = |folder: &Path, format: &str| {
        let error =
            lm(&["convert", shown(folder), shown(&file), "--quantize", format]).expect_err("is refused");
        assert_eq!(
            out.path()
                .read_dir()
                .expect("is there")
                .filter(|entry| {
                    entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains("m.gguf"))
                })
                .count(),
            0,
            "nothing is left behind"
        );
        error
    };
    let error = refused(&checkpoint("mistral-tiny"), "q8_0");
    assert!(error.contains("layer 0, window"), "{error}");
    let error = refused(&checkpoint("llama-tiny-dynamic"), "f16");
    assert!(error.contains("context_len is 120"), "{error}");
    assert!(error.contains("--quantize q8` writes a folder)"), "{error}");
    let error = refused(&checkpoint("llama-tiny-relu2"), "q4_0");
    assert!(error.contains("--quantize q4` writes a folder)"), "{error}");
    let error = refused(&checkpoint("qwen3-tiny"), "q8");
    assert!(error.contains("only in q8_0, q4_0, f16, bf16, f32"), "{error}");
    fs::write(&file, "here already").expect("can be written");
    let error = lm(&["convert", shown(&checkpoint("qwen3-tiny")), shown(&file)]).expect_err("is refused");
    assert!(error.contains("cannot be written"), "{error}");
    assert_eq!(fs::read(&file).expect("is there"), b"here already");
}
