//! Invalid `tokenizer.json` files give errors or tokenizers, never a panic.

use std::fs;

use lm_tokenizer::{Error, SpecialTokens, TextSegment, TokenId, Tokenizer};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::data::workspace;

/// Seeds of the fuzz target `tokenizer_json`.
fn seeds() -> Vec<Value> {
    let files =
        fs::read_dir(workspace().join("fuzz/seeds/tokenizer_json")).expect("they are part of the repository");
    let mut paths: Vec<_> = files.map(|file| file.expect("can be listed").path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| serde_json::from_slice(&fs::read(path).expect("is there")).expect("is JSON"))
        .collect()
}

/// Collects JSON pointers to every part of a value.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    let mut visit = |key: &str, value| {
        places(value, &format!("{here}/{}", key.replace('~', "~0").replace('/', "~1")), found)
    };
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, value)| visit(key, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| visit(&index.to_string(), value))
        }
        _ => {}
    }
}

/// Replaces a value, or removes it.
fn mutate(file: &mut Value, place: &Index, change: &Change) {
    let mut found = Vec::new();
    places(file, "", &mut found);
    let place = place.get(&found).clone();
    match change {
        Change::Put(value) => *file.pointer_mut(&place).expect("it was found") = value.clone(),
        Change::Copy(from) => {
            let from = file.pointer(from.get::<String>(&found)).expect("it was found").clone();
            *file.pointer_mut(&place).expect("it was found") = from;
        }
        Change::Remove => {
            let Some((parent, key)) = place.rsplit_once('/') else { return };
            match file.pointer_mut(parent).expect("it was found") {
                Value::Object(entries) => drop(entries.remove(&key.replace("~1", "/").replace("~0", "~"))),
                Value::Array(items) => drop(items.remove(key.parse().expect("an index"))),
                _ => unreachable!("only these hold others"),
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Put(Value),
    Copy(Index),
    Remove,
}

fn change() -> impl Strategy<Value = Change> {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(4_294_967_295_u64),
        json!(1e300),
        json!(""),
        json!("▁"),
        json!("é"),
        json!("BPE"),
        json!("Unigram"),
        json!("WordPiece"),
        json!("WordLevel"),
        json!("NFKC"),
        json!("Lowercase"),
        json!([]),
        json!({}),
        json!([["a", -1.0]]),
        json!(["a b"]),
        json!({"Regex": "("}),
        json!({"Regex": "(a*)*b"}),
        json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}),
        json!({"type": "Fuse"}),
        json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        json!({"type": "Strip", "content": " ", "start": 4_294_967_295_u64, "stop": 0}),
    ];
    prop_oneof![
        prop::sample::select(values.to_vec()).prop_map(Change::Put),
        any::<Index>().prop_map(Change::Copy),
        Just(Change::Remove),
    ]
}

/// Does the same with a file as the fuzz target.
fn exercise(json: &[u8]) {
    let Ok(tokenizer) = Tokenizer::from_json(json) else { return };
    for text in ["", " lo l 123 <x>", "é▁<0x41>\n<|end|> 😀"] {
        let _ = tokenizer.encode(text);
        let _ = tokenizer.encode_segments(&[TextSegment::Content(text)]);
    }
    let ids: Vec<TokenId> = (0..tokenizer.vocab_size().min(64) as TokenId).collect();
    let mut stream = tokenizer.stream_decoder();
    let streamed: String = ids.iter().map(|&id| stream.push(id)).collect();
    assert_eq!(streamed + &stream.finish(), tokenizer.decode(&ids, SpecialTokens::Keep));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_never_panic(seed in any::<Index>(), changes in prop::collection::vec((any::<Index>(), change()), 1..4)) {
        let mut file = seed.get(&seeds()).clone();
        for (place, change) in &changes {
            mutate(&mut file, place, change);
        }
        exercise(file.to_string().as_bytes());
    }
}

#[test]
fn seeds_load_and_their_prefixes_do_not() {
    for seed in seeds() {
        let json = seed.to_string();
        assert!(Tokenizer::from_json(json.as_bytes()).is_ok(), "{json}");
        for end in (0..json.len()).step_by(7) {
            assert!(Tokenizer::from_json(&json.as_bytes()[..end]).is_err());
        }
    }
}

/// Vocabularies on which the library panics, or which it interprets differently.
#[test]
fn impossible_vocabularies_are_reported() {
    let model = |model: Value| {
        let mut file = seeds()[0].clone();
        file["model"]
            .as_object_mut()
            .expect("an object")
            .extend(model.as_object().expect("an object").clone());
        Tokenizer::from_json(file.to_string().as_bytes()).expect_err("is rejected")
    };
    let error = model(json!({"merges": [["llo", "llo"]]}));
    assert!(
        matches!(&error, Error::Format(lm_formats::Error::InvalidValue { key, .. }) if key == "model.merges"),
        "{error}"
    );
    let error = model(json!({"merges": [["l", "x"]]}));
    assert!(matches!(error, Error::Library(_)), "{error}");
    let error = model(json!({"vocab": {"a": 0, "l": 1, "o": 1, "lo": 3, "Ġ": 4, "llo": 5}}));
    assert!(
        matches!(&error, Error::Format(lm_formats::Error::InvalidValue { key, .. }) if key == "model.vocab"),
        "{error}"
    );
    let error = model(json!({"vocab": {"a": 0, "l": 1, "o": 2, "lo": 3, "Ġ": 4, "llo": 4_294_967_295_u64}}));
    assert!(matches!(error, Error::Unsupported { part: "the highest id", .. }), "{error}");
    let error = model(json!({"continuing_subword_prefix": "##"}));
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}
