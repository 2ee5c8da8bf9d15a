//! Commands with token ids as input and logits, ids and texts as output, as a script uses them to compare
//! `lm` with another implementation. The reference is the output of transformers for the tiny checkpoints.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::json_lines::{answers, failing};

/// Tolerance of a logit, as in `crates/lm-model/tests/goldens`.
const TOLERANCE: f32 = 2e-4;

struct Golden {
    model: String,
    prompts: Vec<Prompt>,
}

struct Prompt {
    ids: Vec<u32>,
    /// Rows with known logits.
    rows: Vec<usize>,
    logits: Vec<Vec<f32>>,
    greedy: Vec<u32>,
}

impl Golden {
    fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models").join(name);
        let json: Value = parse(&fs::read_to_string(folder.join("golden.json")).expect("is there"));
        let tensors = safetensors(&fs::read(folder.join("golden.safetensors")).expect("is there"));
        let numbers =
            |value: &Value| -> Vec<u32> { serde_json::from_value(value.clone()).expect("a list of numbers") };
        let prompt = |(index, prompt): (usize, &Value)| Prompt {
            ids: numbers(&prompt["ids"]),
            rows: numbers(&prompt["rows"]).into_iter().map(|row| row as usize).collect(),
            logits: tensors[&format!("prompts.{index}.logits")].clone(),
            greedy: numbers(&prompt["greedy"]),
        };
        let prompts = json["prompts"].as_array().expect("a list").iter().enumerate().map(prompt).collect();
        Self { model: folder.to_str().expect("a path of this repository is text").to_owned(), prompts }
    }

    /// The prompts as input of `--ids`, in both forms.
    fn lines(&self) -> String {
        let line = |(index, prompt): (usize, &Prompt)| match index % 2 {
            0 => format!("{}\n", json!(prompt.ids)),
            _ => format!("{}\r\n", json!({"ids": prompt.ids})),
        };
        self.prompts.iter().enumerate().map(line).chain(["\n\n".to_owned()]).collect()
    }
}

/// Reads the float matrices of a safetensors file.
fn safetensors(bytes: &[u8]) -> BTreeMap<String, Vec<Vec<f32>>> {
    let (length, rest) = bytes.split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("8 bytes")) as usize;
    let header: BTreeMap<String, Value> = serde_json::from_slice(&rest[..length]).expect("a header");
    let matrix = |info: &Value| {
        let at = |index: usize| info["data_offsets"][index].as_u64().expect("an offset") as usize;
        let width = info["shape"][1].as_u64().expect("two dimensions") as usize;
        floats(&rest[length..][at(0)..at(1)]).chunks(width).map(<[f32]>::to_vec).collect()
    };
    header.iter().map(|(name, info)| (name.clone(), matrix(info))).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().expect("4 bytes"))).collect()
}

/// Reads the rows of a NumPy file; the header is parsed by substrings.
fn npy(path: &Path) -> Vec<Vec<f32>> {
    let bytes = fs::read(path).expect("was written");
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).expect("is text");
    assert!(header.contains("'descr': '<f4'") && header.contains("'fortran_order': False"), "{header}");
    let shape =
        header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).expect("a shape").0;
    let shape: Vec<usize> = shape.split(", ").map(|size| size.parse().expect("a size")).collect();
    let rows: Vec<_> = floats(&bytes[end..]).chunks(shape[1]).map(<[f32]>::to_vec).collect();
    assert_eq!(rows.len(), shape[0]);
    rows
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("is JSON")
}

/// Runs `lm`; returns its standard output, or the first line of its error output.
fn lm(args: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_lm")).args(args).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(0) => Ok(text(&output.stdout)),
        Some(1) => Err(text(&output.stderr).lines().next().unwrap_or_default().to_owned()),
        code => panic!("{args:?} ended with {code:?}: {}", text(&output.stderr)),
    }
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), text).expect("can be written");
        self.shown(name)
    }

    fn shown(&self, name: &str) -> String {
        self.path(name).to_str().expect("a temporary path is text").to_owned()
    }
}

fn close(ours: &[f32], theirs: &[f32]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() <= TOLERANCE)
}

#[test]
fn logits_equal_transformers_at_documented_places() {
    for name in ["llama-tiny", "qwen3-tiny-window"] {
        let (golden, files) = (Golden::read(name), Files::new());
        let (ids, out) = (files.write("ids.jsonl", golden.lines()), files.shown("out.npy"));
        let logits = |more: &[&str]| {
            lm(&[&["logits", &golden.model, "--ids", &ids, "--dtype", "f32", "--out", &out], more].concat())
                .expect("the logits are written");
            npy(&files.path("out.npy"))
        };
        let all = logits(&["--positions", "all"]);
        assert_eq!(all.len(), golden.prompts.iter().map(|prompt| prompt.ids.len()).sum::<usize>());
        let mut start = 0;
        for prompt in &golden.prompts {
            for (row, expected) in prompt.rows.iter().zip(&prompt.logits) {
                assert!(close(&all[start + row], expected), "{name}: row {row} of {:?}", prompt.ids);
            }
            start += prompt.ids.len();
        }
        let ends = golden.prompts.iter().scan(0, |end, prompt| {
            *end += prompt.ids.len();
            Some(all[*end - 1].clone())
        });
        assert_eq!(logits(&[]), ends.collect::<Vec<_>>(), "the last rows");
        assert_eq!(logits(&["--positions", "all", "--chunk", "3"]), all, "in pieces");
    }
}

#[test]
fn greedy_ids_equal_transformers() {
    let (golden, files) = (Golden::read("llama-tiny"), Files::new());
    let ids = files.write("ids.jsonl", golden.lines());
    let exact = ["--temperature", "0", "--max-tokens", "32", "--dtype", "f32", "--kv", "f32"];
    let out =
        lm(&[&["generate", &golden.model, "--ids", &ids], &exact[..]].concat()).expect("ids are written");
    let config =
        fs::read_to_string(Path::new(&golden.model).join("generation_config.json")).expect("is there");
    let ends: Vec<u32> =
        serde_json::from_value(parse(&config)["eos_token_id"].clone()).expect("a list of ids");
    for (line, prompt) in out.lines().zip(&golden.prompts) {
        let until_end = prompt.greedy.iter().position(|id| ends.contains(id));
        let expected = until_end.map_or(&prompt.greedy[..], |at| &prompt.greedy[..=at]);
        assert_eq!(parse(line), json!(expected));
    }
    assert_eq!(out.lines().count(), golden.prompts.len());
}

#[test]
fn invalid_prompt_does_not_stop_the_next() {
    let (golden, files) = (Golden::read("llama-tiny"), Files::new());
    let ids = files.write("ids.jsonl", "[1, -2]\n{\n[]\n\n[99999]\n[1, 2]\n");
    let args = ["--model", &golden.model, "--ids", &ids, "--max-tokens", "1"];
    let answers = failing("generate", &args, b"", "5 of 6 lines failed");
    let kinds: Vec<_> = answers.iter().map(|answer| answer["error"]["kind"].as_str()).collect();
    let (bad, generation) = (Some("bad_line"), Some("generation"));
    assert_eq!(kinds, [bad, bad, generation, bad, generation, None]);
    assert_eq!(answers[4]["error"]["message"], "token id 99999, the model has ids below 320");
    assert_eq!(answers[5].as_array().map(Vec::len), Some(1));
}

#[test]
fn failed_logits_leave_no_file() {
    let (golden, files) = (Golden::read("llama-tiny"), Files::new());
    let out = files.shown("out.npy");
    let long = json!(vec![1; 1 << 16]).to_string();
    for (lines, expected) in [
        ("[1]\n[1, \"2\"]\n", "line 2: item 1 of the list is \"2\""),
        ("[1]\n{}\n", "line 2: expected a list"),
        ("[1]\n[]\n", "line 2: the prompt is empty"),
        ("\n", "it holds no prompt"),
        ("[1]\n\n[2]\n", "line 2: the line is blank"),
        ("[1]\n[99999]\n", "line 2: token id 99999"),
        (&long, "line 1: the prompt has 65536 tokens"),
    ] {
        let ids = files.write("ids.jsonl", lines);
        let error = lm(&["logits", &golden.model, "--ids", &ids, "--out", &out]).expect_err("is refused");
        assert!(error.contains(expected), "no {expected} in {error}");
    }
    assert_eq!(fs::read_dir(files.folder.path()).expect("a folder").count(), 1, "only the ids");
    let nowhere = files.shown("nowhere");
    let error = lm(&["logits", &golden.model, "--ids", &nowhere, "--out", &out]).expect_err("is refused");
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn texts_and_ids_round_trip() {
    let texts = ["Hello, wörld", "", "<|im_start|>\n\t😀 </s>"];
    let lines: String = texts.iter().map(|text| format!("{}\n", json!(text))).collect();
    let ids = answers("tokenize", &[], &lines);
    assert!(ids.iter().all(|answer| answer["ids"].is_array()), "{ids:?}");
    let lines: String = ids.iter().map(|answer| format!("{answer}\n")).collect();
    let back = answers("detokenize", &[], &lines);
    assert_eq!(back, texts.map(|text| json!({"text": text})));
    let lists: String = ids.iter().map(|answer| format!("{}\n", answer["ids"])).collect();
    assert_eq!(answers("detokenize", &[], &lists), back, "a list is enough");
    let skipped = answers("detokenize", &["--skip-special"], &lists);
    assert_eq!(skipped[2], json!({"text": "\n\t😀 </s>"}));
}

#[test]
fn content_does_not_form_special_tokens() {
    let special = |answer: &Value| {
        let tokens = answer["tokens"].as_array().expect("a list");
        assert_eq!(tokens.len(), answer["ids"].as_array().expect("a list").len());
        tokens.iter().filter(|token| token["kind"] == "special").count()
    };
    let lines =
        "\"a<|im_end|>\"\n{\"text\": \"a<|im_end|>\"}\n{\"text\": \"a<|im_end|>\", \"content\": true}\n";
    let found: Vec<_> = answers("tokenize", &["--tokens"], lines).iter().map(special).collect();
    assert_eq!(found, [1, 1, 0]);
    let found: Vec<_> = answers("tokenize", &["--tokens", "--content"], lines).iter().map(special).collect();
    assert_eq!(found, [0, 0, 0]);
}

#[test]
fn invalid_text_and_id_are_named() {
    let kind = |answer: &Value| answer["error"]["kind"].clone();
    let lines = b"7\n{\"text\": 7}\n{\"text\": \"a\", \"contents\": true}\n[\n\"a\"\n";
    let bad = failing("tokenize", &[], lines, "4 of 5 lines failed");
    let kinds: Vec<_> = bad.iter().map(kind).collect();
    assert_eq!(kinds[..4], ["bad_line"; 4].map(|kind| json!(kind)));
    assert!(bad[4]["ids"].is_array());
    let bad = failing("detokenize", &[], b"\"a\"\n[1, null]\n[4000000000]\n[1]\n", "3 of 4 lines failed");
    let kinds: Vec<_> = bad.iter().map(kind).collect();
    assert_eq!(kinds, [json!("bad_line"), json!("bad_line"), json!("unknown_id"), Value::Null]);
}
