//! `tokenizer.json`: merges, ids, steps and expressions that are invalid, or expand a text too much.

use lm_model::{Error, Result};
use lm_tokenizer::{TextSegment, Tokenizer};
use serde_json::{Value, json};

use crate::corpus::{Bad, Files, check_with};

const FILE: &str = "tokenizer.json";
/// An ordinary text, long enough to grow.
const TEXT: &str = "hello world, the user aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";

/// Reads the tokenizer and uses it.
fn load(files: Files) -> Result<()> {
    let tokenizer = Tokenizer::from_json(&files.0[FILE])?;
    Ok(tokenizer.encode(TEXT).map(drop)?)
}

fn raw(files: &mut Files, text: impl Into<Vec<u8>>) {
    *files.bytes(FILE) = text.into();
}

fn set(files: &mut Files, key: &str, value: Value) {
    files.json(FILE, |json| json[key] = value);
}

fn model(files: &mut Files, key: &str, value: Value) {
    files.json(FILE, |json| json["model"][key] = value);
}

/// Adds tokens to the vocabulary.
fn vocab(files: &mut Files, more: &[(&str, u64)]) {
    files.json(FILE, |json| more.iter().for_each(|(token, id)| json["model"]["vocab"][*token] = json!(id)));
}

fn added(files: &mut Files, id: u64, content: &str) {
    files.json(FILE, |json| {
        let token = json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
        json["added_tokens"].as_array_mut().unwrap().push(token);
    });
}

/// A step inside `depth` sequences.
fn nested(list: &str, step: Value, depth: usize) -> Value {
    (0..depth).fold(step, |inner, _| json!({"type": "Sequence", list: [inner]}))
}

/// `steps` steps that each make two letters of one.
fn doubling(list: &str, steps: usize) -> Value {
    let step = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
    json!({"type": "Sequence", list: vec![step; steps]})
}

fn split(files: &mut Files, regex: &str) {
    let step = json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    set(files, "pre_tokenizer", step);
}

#[rustfmt::skip]
const TABLE: &[Bad] = &[
    Bad { what: "no byte", spoil: |f| raw(f, ""), error: "Json", says: &[FILE] },
    Bad { what: "a list", spoil: |f| raw(f, "[]"), error: "Json", says: &[FILE] },
    Bad { what: "no model", spoil: |f| raw(f, "{}"), error: "Unsupported", says: &["decoder"] },
    Bad { what: "cut in the middle", spoil: |f| { let b = f.bytes(FILE); b.truncate(b.len() / 2) }, error: "Json", says: &[FILE] },
    Bad { what: "brackets without end", spoil: |f| raw(f, "[".repeat(1 << 20)), error: "Json", says: &[FILE] },
    Bad { what: "a model of no kind", spoil: |f| model(f, "type", json!("Oracle")), error: "Library", says: &[] },
    Bad { what: "a vocabulary that is a number", spoil: |f| model(f, "vocab", json!(1)), error: "Json", says: &[FILE, "vocabulary"] },
    Bad { what: "an id beyond numbers", spoil: |f| vocab(f, &[("zz", u64::MAX)]), error: "Library", says: &[] },
    Bad { what: "an id that memory is not made for", spoil: |f| vocab(f, &[("zz", 4_294_967_295)]), error: "Unsupported", says: &["the highest id", "4294967295"] },
    Bad { what: "an id twice", spoil: |f| vocab(f, &[("zz", 0)]), error: "InvalidValue", says: &["model.vocab", "an id of its own"] },
    Bad { what: "merges that are a number", spoil: |f| model(f, "merges", json!(7)), error: "Json", says: &[FILE] },
    Bad { what: "a merge of three", spoil: |f| model(f, "merges", json!([["a", "b", "c"]])), error: "Json", says: &[FILE] },
    Bad { what: "a merge of an unknown token", spoil: |f| model(f, "merges", json!([["hell", "no"]])), error: "Library", says: &["no"] },
    Bad { what: "a merge that makes no token", spoil: |f| model(f, "merges", json!([["h", "h"]])), error: "Library", says: &["hh"] },
    Bad { what: "a merge longer than any token", spoil: |f| model(f, "merges", json!([["hello", "<|endoftext|>"]])), error: "InvalidValue", says: &["model.merges"] },
    Bad { what: "a merge with itself that makes itself", spoil: |f| { vocab(f, &[("", 500)]); model(f, "merges", json!([["", ""]])) }, error: "InvalidValue", says: &["model.merges"] },
    Bad { what: "merges in a circle", spoil: |f| { vocab(f, &[("", 500)]); model(f, "merges", json!([["a", ""], ["", "a"]])) }, error: "InvalidValue", says: &["model.merges"] },
    Bad { what: "a merge without a blank", spoil: |f| model(f, "merges", json!(["ab"])), error: "Library", says: &[] },
    Bad { what: "merges that are omitted at random", spoil: |f| model(f, "dropout", json!(0.5)), error: "Unsupported", says: &["model.dropout", "0.5"] },
    Bad { what: "a prefix of subwords", spoil: |f| model(f, "continuing_subword_prefix", json!("##")), error: "Unsupported", says: &["continuing_subword_prefix"] },
    Bad { what: "a decoder of no kind", spoil: |f| set(f, "decoder", json!({"type": "Oracle"})), error: "Unsupported", says: &["decoder", "Oracle"] },
    Bad { what: "a decoder in a hundred sequences", spoil: |f| set(f, "decoder", nested("decoders", json!({"type": "ByteLevel"}), 100)), error: "Json", says: &[FILE] },
    Bad { what: "a decoder that doubles forever", spoil: |f| set(f, "decoder", doubling("decoders", 60)), error: "Unsupported", says: &["decoder"] },
    Bad { what: "a normalizer of no kind", spoil: |f| set(f, "normalizer", json!({"type": "Oracle"})), error: "Library", says: &[] },
    Bad { what: "a normalizer in a hundred sequences", spoil: |f| set(f, "normalizer", nested("normalizers", json!({"type": "NFC"}), 100)), error: "Json", says: &[FILE] },
    Bad { what: "no normalizer in fifty sequences", spoil: |f| set(f, "normalizer", nested("normalizers", json!({"type": "Oracle"}), 50)), error: "Unsupported", says: &["normalizer"] },
    Bad { what: "a normalizer that doubles forever", spoil: |f| set(f, "normalizer", doubling("normalizers", 60)), error: "Unsupported", says: &["normalizer"] },
    Bad { what: "a normalizer that is cut", spoil: |f| set(f, "normalizer", json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"})), error: "Library", says: &[] },
    Bad { what: "no pre-tokenizer in fifty sequences", spoil: |f| set(f, "pre_tokenizer", nested("pretokenizers", json!({"type": "Oracle"}), 50)), error: "Unsupported", says: &["pre_tokenizer"] },
    Bad { what: "an expression that does not end", spoil: |f| split(f, "(a"), error: "Library", says: &[] },
    Bad { what: "an expression of brackets", spoil: |f| split(f, &"(".repeat(100_000)), error: "Library", says: &[] },
    Bad { what: "an expression that tries all ways", spoil: |f| split(f, "(a|aa|a?)+[^a!]"), error: "Library", says: &["gave up"] },
    Bad { what: "an expression that repeats repeats", spoil: |f| split(f, "(?:(?:(?:a{99999}){99999}){99999}){99999}"), error: "Library", says: &[] },
];

#[test]
fn invalid_tokenizers_are_rejected() {
    let good = Files([(FILE.to_owned(), lm_model::testing::tokenizer_json().into_bytes())].into());
    load(good.clone()).expect("the file that the others are made of is good");
    check_with(&good, TABLE, load);
}

fn unigram() -> Files {
    let path = crate::corpus::testdata("../fuzz/seeds/tokenizer_json/unigram.json");
    Files([(FILE.to_owned(), std::fs::read(path).unwrap())].into())
}

fn pieces(files: &mut Files, pieces: Value) {
    model(files, "vocab", pieces);
}

#[rustfmt::skip]
const UNIGRAM: &[Bad] = &[
    Bad { what: "no pieces", spoil: |f| pieces(f, json!([])), error: "Library", says: &[] },
    Bad { what: "pieces without scores", spoil: |f| pieces(f, json!(["a", "b"])), error: "Library", says: &[] },
    Bad { what: "scores that are texts", spoil: |f| pieces(f, json!([["a", "-1"]])), error: "Library", says: &[] },
    Bad { what: "an unknown piece beyond all", spoil: |f| model(f, "unk_id", json!(1_000_000)), error: "Library", says: &[] },
    Bad { what: "an unknown piece below 0", spoil: |f| model(f, "unk_id", json!(-1)), error: "Library", says: &[] },
    Bad { what: "a score beyond numbers", spoil: |f| { let text = String::from_utf8(f.0[FILE].clone()).unwrap(); raw(f, text.replacen("-1.0", "-1e999", 1).replacen("-2.0", "-1e999", 1)) }, error: "Json", says: &[FILE] },
    Bad { what: "a piece of a megabyte", spoil: |f| pieces(f, json!([["<unk>", 0.0], ["a".repeat(1 << 20), -1.0]])), error: "InvalidValue", says: &["model.vocab", "1048576 bytes"] },
];

#[test]
fn invalid_pieces_are_rejected() {
    load(unigram()).expect("the file that the others are made of is good");
    check_with(&unigram(), UNIGRAM, load);
    for odd in [json!([["<unk>", 0.0], ["", -1.0]]), json!([["<unk>", 0.0], ["a", -1e308], ["h", 1e308]])] {
        let mut files = unigram();
        pieces(&mut files, odd);
        load(files).expect("odd and harmless");
    }
}

/// A vocabulary that gives one id to two tokens makes the library compute wrong offsets where the text has
/// multi-byte characters.
#[test]
fn tokens_off_character_boundaries_are_an_error() {
    let path = crate::corpus::testdata("../fuzz/seeds/tokenizer_json/one_id_twice.json");
    let tokenizer = Tokenizer::from_json(&std::fs::read(path).unwrap()).unwrap();
    let content = [TextSegment::Content(" Hello, wörld\n\t 12345")];
    let error = tokenizer.encode_segments(&content).unwrap_err();
    crate::corpus::expect("one id twice", error.into(), "Library", &["does not lie on characters"]);
}

/// Irregular but harmless files are valid tokenizers.
#[test]
fn harmless_differences_are_accepted() {
    let good = Files([(FILE.to_owned(), lm_model::testing::tokenizer_json().into_bytes())].into());
    let harmless: [fn(&mut Files); 5] = [
        // The library assigns it the next id.
        |files| added(files, 4_294_967_295, "<far>"),
        |files| model(files, "merges", json!([["h", "e"], ["h", "e"]])),
        |files| {
            set(
                files,
                "truncation",
                json!({"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}),
            )
        },
        |files| vocab(files, &[("", 500)]),
        |files| {
            set(
                files,
                "pre_tokenizer",
                nested(
                    "pretokenizers",
                    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}),
                    4,
                ),
            )
        },
    ];
    for (index, change) in harmless.into_iter().enumerate() {
        let mut files = good.clone();
        change(&mut files);
        load(files).unwrap_or_else(|error: Error| panic!("{index}: {}", crate::corpus::chain(&error)));
    }
}
