//! `lm imatrix` against sums that transformers computed, and `lm convert --imatrix`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{error, lm, ok, parse, pocket_folder, refused, shown};
use lm_model::{ImportanceMatrix, LayerSums};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// Runs `lm imatrix`, whose texts here are so short that it prints a note.
fn recorded(args: &[&str]) -> String {
    let run = lm(args, "");
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.err);
    let other = |line: &&str| !line.starts_with("memory: ") && !line.starts_with("note: a text of ");
    assert_eq!(run.err.lines().find(other), None, "{args:?}");
    run.out
}

fn assert_close(name: &str, got: &LayerSums, expected: &LayerSums) {
    assert_eq!((got.cols, &got.counts), (expected.cols, &expected.counts), "{name}");
    for (got, expected) in got.squares.iter().zip(&expected.squares) {
        assert!((got - expected).abs() <= 1e-3 * expected + 1e-4, "{name}: {got}, expected {expected}");
    }
}

#[test]
fn sums_equal_transformers() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let text = testdata("imatrix/text.txt");
    for name in ["llama-tiny", "llama-tiny-bias", "phi3-tiny", "qwen3-moe-tiny"] {
        let (model, file) = (testdata("models").join(name), out.path().join(format!("{name}.gguf")));
        let run =
            ["imatrix", shown(&model), shown(&text), "-o", shown(&file), "--context", "32", "--kv", "f32"];
        let wrote = recorded(&run);
        let [got, expected] = [file, testdata("imatrix").join(format!("{name}.gguf"))]
            .map(|file| ImportanceMatrix::open(file).expect("an importance matrix"));
        assert!(
            wrote.contains(&format!("({} linear layers, 165 tokens)", expected.layers().len())),
            "{wrote}"
        );
        for calibration in [got.calibration(), expected.calibration()] {
            assert_eq!((calibration.chunk_count, calibration.chunk_size), (6, 32), "{name}");
        }
        assert_eq!(got.layers().len(), expected.layers().len(), "{name}");
        for ((name, got), (expected_name, expected)) in got.layers().zip(expected.layers()) {
            assert_eq!(name, expected_name);
            assert_close(name, got, expected);
        }
    }
}

#[test]
fn every_matrix_of_every_architecture_has_importance() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let text = testdata("imatrix/text.txt");
    for architecture in lm_model::ALL_ARCHITECTURES {
        // Encoders have no goldens of logits.
        let Some(name) = architecture.goldens.first() else { continue };
        let (model, file) = (testdata("models").join(name), out.path().join(format!("{name}.gguf")));
        // As text: Python writes infinity in a form of its own.
        let config = fs::read_to_string(model.join("config.json")).expect("a config");
        if config.contains("\"quantization_config\": {") {
            continue; // No float matrices are left to quantise.
        }
        recorded(&["imatrix", shown(&model), shown(&text), "-o", shown(&file), "--context", "32"]);
        let copy = out.path().join(name);
        let run =
            lm(&["convert", shown(&model), shown(&copy), "--quantize", "q4", "--imatrix", shown(&file)], "");
        assert_eq!(run.code, Some(0), "{name}: {}", run.err);
        assert!(!run.err.contains("without importance"), "{name}: {}", run.err);
        ok(&["eval", shown(&copy), shown(&text), "--context", "32"], "");
    }
}

#[test]
fn importance_lowers_the_divergence_on_its_text() {
    let folder = pocket_folder();
    let text = folder.path().join("text.txt");
    let conversations = testdata("../models/pocket/eval/documented.jsonl");
    fs::write(&text, fs::read(&conversations).expect("conversations")).expect("a text");
    let (importance, plain, weighted) =
        (folder.path().join("imatrix.gguf"), folder.path().join("plain"), folder.path().join("weighted"));
    let args = ["imatrix", "-f", shown(&text), "-o", shown(&importance), "--chunks", "8", "--context", "256"];
    assert!(ok(&args, "").contains("2048 tokens"), "the embedded model, eight windows");
    let recorded = ImportanceMatrix::open(&importance).expect("an importance matrix");
    assert_eq!(recorded.calibration().chunk_count, 8);
    ok(&["convert", "-m", shown(folder.path()), shown(&plain), "--quantize", "q4"], "");
    let run = [
        "convert",
        "-m",
        shown(folder.path()),
        shown(&weighted),
        "--quantize",
        "q4",
        "--imatrix",
        shown(&importance),
    ];
    assert_eq!(lm(&run, "").err, "", "every matrix has an importance, the tied table that of the head");
    let size = |path: &Path| fs::metadata(path.join("model.safetensors")).expect("weights").len();
    assert_eq!(size(&plain), size(&weighted));
    let divergence = |path: &Path| {
        let run = ["eval", shown(path), shown(&text), "--against", shown(folder.path()), "--json"];
        parse(&ok(&run, ""))["against"]["kl_divergence"].as_f64().expect("a number")
    };
    let (plain, weighted) = (divergence(&plain), divergence(&weighted));
    assert!(weighted < plain, "{weighted} with importance, {plain} without");
}

#[test]
fn unusable_input_is_rejected() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let (llama, phi) = (testdata("models/llama-tiny"), testdata("models/phi3-tiny"));
    let [of_llama, of_phi] =
        ["llama-tiny", "phi3-tiny"].map(|name| testdata("imatrix").join(format!("{name}.gguf")));
    let copy = out.path().join("copy");
    let convert = |imatrix: &Path| {
        error(&["convert", shown(&llama), shown(&copy), "--quantize", "q4", "--imatrix", shown(imatrix)], "")
    };
    assert!(
        convert(&of_phi)
            .contains("tensor blk.0.ffn_down.weight.in_sum2 has shape [1, 96], expected [1, 128]")
    );
    assert!(convert(&testdata("imatrix/text.txt")).contains("is not a GGUF file that can be used"));
    assert!(
        convert(&testdata("gguf/llama-tiny-q8_0.gguf"))
            .contains("`general.type` is model, supported: imatrix")
    );
    assert!(convert(&out.path().join("nowhere.gguf")).contains("nowhere.gguf"));
    assert!(!copy.exists());
    refused(&["convert", shown(&llama), shown(&copy), "--imatrix", shown(&of_llama)], "add `--quantize q4`");
    let gguf = out.path().join("copy.gguf");
    refused(
        &["convert", shown(&llama), shown(&gguf), "--imatrix", shown(&of_llama)],
        "not to q8_0; name a folder",
    );
    let text = testdata("imatrix/text.txt");
    let again = ["imatrix", shown(&phi), shown(&text), "-o", shown(&of_phi)];
    assert!(error(&again, "").contains("it exists already"));
    let empty = out.path().join("empty.txt");
    fs::write(&empty, "").expect("a file");
    let written = out.path().join("imatrix.gguf");
    assert!(
        error(&["imatrix", shown(&phi), shown(&empty), "-o", shown(&written), "--context", "32"], "")
            .contains("it has no tokens")
    );
    refused(&["imatrix"], "the text is missing");
    for output in ["nowhere/imatrix.gguf", "imatrix/"] {
        let output = out.path().join(output);
        let run = ["imatrix", shown(&phi), shown(&text), "-o", shown(&output), "--context", "32"];
        assert!(error(&run, "").contains("there is no such folder"), "before the model runs");
    }
    assert!(error(&["imatrix", shown(&phi), shown(&phi)], "").contains("it is a folder; expected a text"));
}

#[test]
fn importance_matrix_is_not_a_model() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::copy(testdata("gguf/llama-tiny-q8_0.gguf"), folder.path().join("model.gguf")).expect("a model");
    fs::copy(testdata("imatrix/llama-tiny.gguf"), folder.path().join("imatrix.gguf")).expect("a matrix");
    ok(&["inspect", shown(folder.path())], "");
}

#[test]
fn tied_head_without_importance_is_noted() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let all = ImportanceMatrix::open(testdata("imatrix/llama-tiny-bias.gguf")).expect("an importance matrix");
    let bytes = all.to_gguf().expect("a file");
    // As llama-imatrix writes it by default: the head is omitted. A name of the same length keeps the file's
    // layout.
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("token_embd.weight"), "the model is tied");
    let renamed = replaced(&bytes, b"token_embd.weight", b"other_embd.weight");
    let file = out.path().join("imatrix.gguf");
    fs::write(&file, renamed).expect("a file");
    let (model, copy) = (testdata("models/llama-tiny-bias"), out.path().join("copy"));
    let run =
        lm(&["convert", shown(&model), shown(&copy), "--quantize", "q4", "--imatrix", shown(&file)], "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("1 of the matrices: model.embed_tokens.weight"), "{}", run.err);
}

/// Bytes in which `new` replaces each `old` of the same length.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let found: Vec<_> =
        bytes.windows(old.len()).enumerate().filter(|(_, part)| *part == old).map(|(at, _)| at).collect();
    found.into_iter().for_each(|at| bytes[at..at + old.len()].copy_from_slice(new));
    bytes
}

#[test]
fn other_gguf_files_are_not_models() {
    let files = [
        ("imatrix/llama-tiny.gguf", "`general.type` is imatrix, supported: model", "`lm convert --imatrix`"),
        ("vision/mmproj/qwen3-vl-tiny/mmproj-qwen3-vl-tiny.gguf", "is mmproj, supported: model", "--mmproj"),
    ];
    for (file, message, hint) in files {
        let run = lm(&["inspect", shown(&testdata(file))], "");
        assert_eq!(run.code, Some(1), "{file}: {}", run.err);
        assert!(run.err.contains(message) && run.err.contains(hint), "{file}: {}", run.err);
    }
}
