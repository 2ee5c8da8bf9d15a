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
    let error = refused(&root().join("testdata/gguf/llama-tiny-q8_0.gguf"), "q4_0");
    assert!(error.contains("stored in q8_0"), "{error}");
    let error = refused(&checkpoint("qwen3-tiny"), "q8");
    assert!(error.contains("only in q8_0, q4_0, f16, bf16, f32"), "{error}");
    fs::write(&file, "here already").expect("can be written");
    let error = lm(&["convert", shown(&checkpoint("qwen3-tiny")), shown(&file)]).expect_err("is refused");
    assert!(error.contains("cannot be written"), "{error}");
    assert_eq!(fs::read(&file).expect("is there"), b"here already");
}
