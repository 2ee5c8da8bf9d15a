//! Safetensors files and their index.

use serde_json::{Value, json};

use crate::corpus::{Bad, Files, TENSORS, check};

const QUERY: &str = "model.layers.1.self_attn.q_proj.weight";
const KEYS: &str = "model.layers.1.self_attn.k_proj.weight";
const INDEX: &str = "model.safetensors.index.json";

/// Sets a field of the header entry of [`QUERY`].
fn query(files: &mut Files, field: &str, value: Value) {
    files.header(TENSORS, |header| header[QUERY][field] = value);
}

/// Changes the length of the header.
fn length(files: &mut Files, change: fn(u64) -> u64) {
    let length = files.bytes(TENSORS).first_chunk_mut::<8>().unwrap();
    *length = change(u64::from_le_bytes(*length)).to_le_bytes();
}

/// Truncates the file at the position that `at` computes from the end of the header and the length of the
/// file.
fn cut(files: &mut Files, at: fn(header: usize, all: usize) -> usize) {
    let bytes = files.bytes(TENSORS);
    let header = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    bytes.truncate(at(header, bytes.len()));
}

/// Moves both offsets of one tensor.
fn move_query(files: &mut Files, by: [i64; 2]) {
    files.header(TENSORS, |header| {
        let offsets = header[QUERY]["data_offsets"].as_array_mut().unwrap();
        for (offset, by) in offsets.iter_mut().zip(by) {
            *offset = json!(offset.as_i64().unwrap() + by);
        }
    });
}

#[rustfmt::skip]
const FILE: &[Bad] = &[
    Bad { what: "no byte", spoil: |f| cut(f, |_, _| 0), error: "TensorFile", says: &["0 bytes"] },
    Bad { what: "cut in the header's length", spoil: |f| cut(f, |_, _| 7), error: "TensorFile", says: &["7 bytes"] },
    Bad { what: "cut behind the header's length", spoil: |f| cut(f, |_, _| 8), error: "TensorFile", says: &["0 follow"] },
    Bad { what: "cut in the header", spoil: |f| cut(f, |header, _| header / 2), error: "TensorFile", says: &["follow"] },
    Bad { what: "cut behind the header", spoil: |f| cut(f, |header, _| header), error: "TensorFile", says: &["the file has 0 bytes"] },
    Bad { what: "cut in a tensor", spoil: |f| cut(f, |header, all| (header + all) / 2), error: "TensorFile", says: &["the file has"] },
    Bad { what: "one byte less", spoil: |f| cut(f, |_, all| all - 1), error: "TensorFile", says: &["the file has"] },
    Bad { what: "one byte more", spoil: |f| f.bytes(TENSORS).push(0), error: "TensorFile", says: &["follow the header"] },
    Bad { what: "a header of 0 bytes", spoil: |f| length(f, |_| 0), error: "TensorFile", says: &["header"] },
    Bad { what: "a header that is one byte shorter", spoil: |f| length(f, |n| n - 1), error: "TensorFile", says: &["header"] },
    Bad { what: "a header that is one byte longer", spoil: |f| length(f, |n| n + 1), error: "TensorFile", says: &["header"] },
    Bad { what: "a header longer than the file", spoil: |f| length(f, |_| 1 << 40), error: "TensorFile", says: &["1099511627776"] },
    Bad { what: "a header longer than all files", spoil: |f| length(f, |_| u64::MAX), error: "TensorFile", says: &["18446744073709551615"] },
    Bad { what: "a header longer than is read", spoil: |f| f.header_text(TENSORS, &" ".repeat(33 << 20), &[]), error: "TensorFile", says: &["at most"] },
    Bad { what: "a header that is a list", spoil: |f| f.header_text(TENSORS, "[]", &[]), error: "TensorFile", says: &["header"] },
    Bad { what: "a header of brackets", spoil: |f| f.header_text(TENSORS, &"[".repeat(1 << 20), &[]), error: "TensorFile", says: &["header"] },
    Bad { what: "a header of objects in objects", spoil: |f| f.header_text(TENSORS, &r#"{"a":"#.repeat(1 << 18), &[]), error: "TensorFile", says: &["header"] },
    Bad { what: "a name twice", spoil: |f| f.header_text(TENSORS, r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, &[0]), error: "TensorFile", says: &["a is described twice"] },
    Bad { what: "metadata that is not an object", spoil: |f| f.header(TENSORS, |h| h["__metadata__"] = json!([1])), error: "TensorFile", says: &["header"] },
    Bad { what: "a tensor that is not an object", spoil: |f| f.header(TENSORS, |h| h[QUERY] = json!(1)), error: "TensorFile", says: &[QUERY] },
    Bad { what: "an unknown type", spoil: |f| query(f, "dtype", json!("F99")), error: "TensorFile", says: &[QUERY, "F99"] },
    Bad { what: "a type of other size", spoil: |f| query(f, "dtype", json!("F64")), error: "TensorFile", says: &[QUERY] },
    Bad { what: "a type that is not a float", spoil: |f| query(f, "dtype", json!("I16")), error: "TensorDtype", says: &[TENSORS, QUERY, "I16", "BF16"] },
    Bad { what: "a negative size", spoil: |f| query(f, "shape", json!([-1, 64])), error: "TensorFile", says: &[QUERY, "-1"] },
    Bad { what: "a size that overflows", spoil: |f| query(f, "shape", json!([1_u64 << 40, 1_u64 << 40])), error: "TensorFile", says: &[QUERY, "[1099511627776, 1099511627776]"] },
    Bad { what: "bytes that overflow", spoil: |f| query(f, "shape", json!([u64::MAX])), error: "TensorFile", says: &[QUERY, "18446744073709551615"] },
    Bad { what: "a shape of other size", spoil: |f| query(f, "shape", json!([128, 63])), error: "TensorFile", says: &[QUERY] },
    Bad { what: "a shape of other form", spoil: |f| query(f, "shape", json!([64, 128])), error: "TensorShape", says: &[QUERY, "[64, 128]", "[128, 64]"] },
    Bad { what: "a shape of a million dimensions", spoil: |f| query(f, "shape", json!(vec![1; 1 << 20])), error: "TensorFile", says: &[QUERY, "1048576 dimensions"] },
    Bad { what: "a tensor that ends before it begins", spoil: |f| move_query(f, [0, -(1 << 14) - 1]), error: "TensorFile", says: &[QUERY, "has the offsets"] },
    Bad { what: "tensors that overlap by a row", spoil: |f| move_query(f, [-128, -128]), error: "TensorFile", says: &["shares bytes", "expected"] },
    Bad { what: "a gap before a tensor", spoil: |f| move_query(f, [128, 128]), error: "TensorFile", says: &["leaves a gap"] },
    Bad { what: "a tensor in another's place", spoil: |f| f.header(TENSORS, |h| h[QUERY]["data_offsets"] = h[KEYS]["data_offsets"].clone()), error: "TensorFile", says: &["shares bytes"] },
    Bad { what: "a tensor that ends before it begins", spoil: |f| query(f, "data_offsets", json!([64, 0])), error: "TensorFile", says: &[QUERY] },
    Bad { what: "a tensor beyond the file", spoil: |f| query(f, "data_offsets", json!([1_u64 << 40, (1_u64 << 40) + 16384])), error: "TensorFile", says: &["tensor"] },
    Bad { what: "a tensor at the end of numbers", spoil: |f| query(f, "data_offsets", json!([u64::MAX - 16384, u64::MAX])), error: "TensorFile", says: &["tensor"] },
    Bad { what: "a tensor of no rows and many columns", spoil: empty_query, error: "TensorShape", says: &[QUERY, "[0, 4611686018427387904]"] },
    Bad { what: "a tensor that no layer has", spoil: |f| rename(f, "model.layers.9.self_attn.q_proj.weight"), error: "MissingTensor", says: &[QUERY] },
    Bad { what: "a tensor without a name", spoil: |f| rename(f, ""), error: "MissingTensor", says: &[QUERY] },
];

/// The same bytes under another name.
fn rename(files: &mut Files, name: &str) {
    files.header(TENSORS, |header| {
        let entries = header.as_object_mut().unwrap();
        let query = entries.remove(QUERY).unwrap();
        entries.insert(name.to_owned(), query);
    });
}

/// Leaves [`QUERY`] without bytes; another tensor takes them over.
fn empty_query(files: &mut Files) {
    files.header(TENSORS, |header| {
        let query = header[QUERY].clone();
        let start = query["data_offsets"][0].clone();
        header["other"] = query;
        header[QUERY]["shape"] = json!([0, 1_u64 << 62]);
        header[QUERY]["data_offsets"] = json!([start, start]);
    });
}

#[test]
fn invalid_files_are_rejected() {
    check(&Files::of("models/qwen3-tiny"), FILE);
}

/// Moves the model's tensors to a file that an index names.
fn sharded() -> Files {
    let mut files = Files::of("models/qwen3-tiny");
    let bytes = files.0.remove(TENSORS).unwrap();
    files.0.insert("a.safetensors".into(), bytes);
    files.header("a.safetensors", |_| {});
    let names = header_names(&files);
    let map: Value = names
        .into_iter()
        .map(|name| (name, json!("a.safetensors")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    files.json(INDEX, |index| *index = json!({"metadata": {"total_size": 0}, "weight_map": map}));
    files
}

fn header_names(files: &Files) -> Vec<String> {
    let mut names = Vec::new();
    let mut copy = files.clone();
    copy.header("a.safetensors", |header| names.extend(header.as_object().unwrap().keys().cloned()));
    names.retain(|name| name != "__metadata__");
    names
}

/// Claims in the index that [`QUERY`] is in another file.
fn place(files: &mut Files, path: &str) {
    files.json(INDEX, |index| index["weight_map"][QUERY] = json!(path));
}

#[rustfmt::skip]
const SHARDS: &[Bad] = &[
    Bad { what: "a file above the folder", spoil: |f| place(f, "../a.safetensors"), error: "ShardPath", says: &[INDEX, QUERY, "../a.safetensors"] },
    Bad { what: "an absolute path", spoil: |f| place(f, "/etc/passwd"), error: "ShardPath", says: &[INDEX, QUERY, "/etc/passwd"] },
    Bad { what: "a path of another system", spoil: |f| place(f, "C:\\a.safetensors"), error: "ShardPath", says: &[INDEX, QUERY] },
    Bad { what: "a file in a folder", spoil: |f| place(f, "a/b.safetensors"), error: "ShardPath", says: &[INDEX, QUERY] },
    Bad { what: "the folder itself", spoil: |f| place(f, "."), error: "ShardPath", says: &[INDEX, QUERY] },
    Bad { what: "no name", spoil: |f| place(f, ""), error: "ShardPath", says: &[INDEX, QUERY] },
    Bad { what: "a name with a NUL", spoil: |f| place(f, "a\0.safetensors"), error: "ShardPath", says: &[INDEX, QUERY] },
    Bad { what: "a file that is not there", spoil: |f| place(f, "b.safetensors"), error: "MissingFile", says: &["b.safetensors"] },
    Bad { what: "a file that is something else", spoil: |f| place(f, "config.json"), error: "TensorFile", says: &["config.json"] },
    Bad { what: "the index itself", spoil: |f| place(f, INDEX), error: "TensorFile", says: &[INDEX] },
    Bad { what: "a tensor that the file has not", spoil: |f| f.json(INDEX, |i| i["weight_map"]["x"] = json!("a.safetensors")), error: "MissingTensor", says: &["a.safetensors", "x"] },
    Bad { what: "a tensor of another file", spoil: foreign, error: "MissingTensor", says: &["b.safetensors", QUERY] },
    Bad { what: "the same tensors in two files", spoil: twice, error: "DuplicateTensor", says: &["a.safetensors", "b.safetensors"] },
    Bad { what: "no tensors", spoil: |f| f.json(INDEX, |i| i["weight_map"] = json!({})), error: "MissingTensor", says: &["embed_tokens"] },
    Bad { what: "no map", spoil: |f| f.json(INDEX, |i| *i = json!({})), error: "Json", says: &[INDEX, "weight_map"] },
    Bad { what: "a map that is a list", spoil: |f| f.json(INDEX, |i| i["weight_map"] = json!([QUERY])), error: "Json", says: &[INDEX] },
    Bad { what: "a path that is a number", spoil: |f| f.json(INDEX, |i| i["weight_map"][QUERY] = json!(1)), error: "Json", says: &[INDEX] },
    Bad { what: "brackets without end", spoil: |f| *f.bytes(INDEX) = vec![b'['; 1 << 20], error: "Json", says: &[INDEX] },
    Bad { what: "an index that is cut", spoil: |f| { let b = f.bytes(INDEX); b.truncate(b.len() / 2) }, error: "Json", says: &[INDEX] },
];

fn foreign(files: &mut Files) {
    files.header_text("b.safetensors", r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, &[0]);
    place(files, "b.safetensors");
}

fn twice(files: &mut Files) {
    let bytes = files.bytes("a.safetensors").clone();
    files.0.insert("b.safetensors".into(), bytes);
    place(files, "b.safetensors");
}

#[test]
fn invalid_indexes_are_rejected() {
    check(&sharded(), SHARDS);
}
