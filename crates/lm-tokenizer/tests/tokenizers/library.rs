//! Comparison of the tokenizer with the library it is built on, for the pocket model's tokenizer and real
//! ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use lm_tokenizer::{SpecialTokens, TextSegment, TokenId, TokenKind, Tokenizer};
use proptest::prelude::*;
use serde_json::json;
use tokenizers::AddedToken;

use crate::data::{reference_ids, text, workspace};
use crate::shared;

/// A tokenizer and the library's own view of the same file.
struct Pair {
    name: String,
    ours: Tokenizer,
    library: tokenizers::Tokenizer,
    /// Texts of the added tokens.
    added: Vec<String>,
    /// True if it has tokens of [`Pair::with_rules`], which the library decodes in their normalised form.
    has_rules: bool,
}

impl Pair {
    fn read(path: &Path) -> Self {
        let json = fs::read(path).expect("the tokenizer can be read");
        Self::of(path.display().to_string(), &json)
    }

    fn of(name: String, json: &[u8]) -> Self {
        let ours = Tokenizer::from_json(json).unwrap_or_else(|error| panic!("{name}: {error}"));
        let library = tokenizers::Tokenizer::from_bytes(json).expect("the library reads it too");
        let added = library.get_added_tokens_decoder().into_values().map(|token| token.content).collect();
        Self { name, ours, library, added, has_rules: false }
    }

    /// The same tokenizer with an added token for every rule.
    fn with_rules(&self) -> Self {
        let rule = |text: &str| AddedToken::from(text, false).normalized(false);
        let mut library = self.library.clone();
        let tokens = [
            rule("<left>").lstrip(true),
            rule("<right>").rstrip(true),
            rule("<both>").lstrip(true).rstrip(true).normalized(true),
            rule("<word>").single_word(true),
            rule("end").single_word(true).normalized(true),
            rule("<Größe é>").normalized(true),
            AddedToken::from("<special>", true).lstrip(true).rstrip(true),
            rule(" <inner> blank"),
        ];
        library.add_tokens(tokens).expect("more tokens can be added");
        let json = library.to_string(false).expect("the library writes what it reads");
        Self { has_rules: true, ..Self::of(format!("{} with rules", self.name), json.as_bytes()) }
    }

    fn library_ids(&self, text: &str) -> Vec<TokenId> {
        self.library.encode_fast(text, false).expect("the library encodes any text").get_ids().to_vec()
    }
}

static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    let mut paths = vec![workspace().join("models/pocket/model/tokenizer.json")];
    if let Some(folder) = shared::path("tokenizers") {
        let files = fs::read_dir(folder).expect("a folder");
        paths.extend(
            files
                .map(|file| file.expect("the folder can be listed").path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "json")),
        );
    }
    let pairs: Vec<Pair> = paths.iter().map(|path| Pair::read(path)).collect();
    let with_rules: Vec<Pair> = pairs.iter().map(Pair::with_rules).collect();
    pairs.into_iter().chain(with_rules).collect()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plain_text_ids_equal_the_library(text in text()) {
        for pair in &*PAIRS {
            prop_assert_eq!(pair.ours.encode(&text).unwrap(), pair.library_ids(&text), "{}: {:?}", pair.name, text);
        }
    }

    /// However a text is split into template and content, its ids are those of the whole, unless an added
    /// token touches content.
    #[test]
    fn segments_merge_across_their_boundaries(
        pieces in prop::collection::vec((text(), any::<bool>(), any::<prop::sample::Index>()), 1..5),
    ) {
        for pair in &*PAIRS {
            let owned: Vec<(String, bool)> = pieces
                .iter()
                .map(|(text, template, index)| match template {
                    true => (format!("{text}{}", index.get(&pair.added)), true),
                    false => (text.clone(), false),
                })
                .collect();
            let joined: String = owned.iter().map(|(text, _)| text.as_str()).collect();
            let contents: Vec<&str> = owned.iter().filter(|(_, template)| !template).map(|(text, _)| text.as_str()).collect();
            if touches(&owned, &pair.added) {
                continue;
            }
            let segments: Vec<_> = owned
                .iter()
                .map(|(text, template)| if *template { TextSegment::Template(text) } else { TextSegment::Content(text) })
                .collect();
            let ids = pair.ours.encode_segments(&segments).unwrap();
            prop_assert_eq!(ids, pair.library_ids(&joined), "{}: {:?} with content {:?}", pair.name, joined, contents);
        }
    }

    /// Content never produces an added token, whatever it spells and wherever it is split; and its text is
    /// preserved.
    #[test]
    fn content_never_encodes_to_an_added_token(
        before in text(), inside in text(), cut in any::<prop::sample::Index>(), which in any::<prop::sample::Index>(),
    ) {
        for pair in &*PAIRS {
            let spelled = format!("{inside}{}{inside}", which.get(&pair.added));
            let cuts: Vec<usize> = (0..=spelled.len()).filter(|at| spelled.is_char_boundary(*at)).collect();
            let (left, right) = spelled.split_at(*cut.get(&cuts));
            let segments = [TextSegment::Content(&before), TextSegment::Content(left), TextSegment::Content(right)];
            let ids = pair.ours.encode_segments(&segments).unwrap();
            prop_assert!(ids.iter().all(|&id| pair.ours.token_kind(id) == TokenKind::Text), "{}: {:?}", pair.name, ids);
            let around = format!("{before}{inside}");
            if pair.library.decode(&pair.library_ids(&around), false).unwrap() != around {
                // Some vocabularies lack bytes, and SentencePiece's mark is a space to its decoder.
                continue;
            }
            let decoded = pair.ours.decode(&ids, SpecialTokens::Keep);
            prop_assert_eq!(decoded, format!("{before}{spelled}"), "{}", pair.name);
        }
    }

    #[test]
    fn decoding_and_streaming_equal_the_library(text in text(), which in any::<prop::sample::Index>()) {
        for pair in PAIRS.iter().filter(|pair| !pair.has_rules) {
            let ids = pair.ours.encode(&format!("{text}{} {text}", which.get(&pair.added))).unwrap();
            for (special, skip) in [(SpecialTokens::Keep, false), (SpecialTokens::Skip, true)] {
                let expected = pair.library.decode(&ids, skip).unwrap();
                prop_assert_eq!(pair.ours.decode(&ids, special), expected, "{}: {:?}", pair.name, ids);
            }
            prop_assert_eq!(streamed(&pair.ours, &ids), pair.ours.decode(&ids, SpecialTokens::Keep));
        }
    }

    /// For any ids, incomplete characters included, the streamed text is valid at each step and adds up to
    /// the decoded whole.
    #[test]
    fn streamed_ids_equal_their_decoded_text(picks in prop::collection::vec(any::<prop::sample::Index>(), 0..30)) {
        for pair in &*PAIRS {
            let ids: Vec<TokenId> = picks.iter().map(|pick| pick.index(pair.ours.vocab_size()) as TokenId).collect();
            prop_assert_eq!(streamed(&pair.ours, &ids), pair.ours.decode(&ids, SpecialTokens::Keep), "{}: {:?}", pair.name, ids);
        }
    }
}

/// Returns true if an added token of the joined text touches content; found by plain search, without the code
/// under test.
fn touches(segments: &[(String, bool)], added: &[String]) -> bool {
    let joined: String = segments.iter().map(|(text, _)| text.as_str()).collect();
    let mut is_content = Vec::with_capacity(joined.len());
    for (text, template) in segments {
        is_content.resize(is_content.len() + text.len(), !template);
    }
    added.iter().filter(|token| !token.is_empty()).any(|token| {
        joined.match_indices(token.as_str()).any(|(at, _)| {
            // A normalised token takes the space before it where a space is a part of the next word.
            let start = if joined[..at].ends_with(' ') { at - 1 } else { at };
            is_content[start..at + token.len()].contains(&true)
        })
    })
}

fn streamed(tokenizer: &Tokenizer, ids: &[TokenId]) -> String {
    let mut decoder = tokenizer.stream_decoder();
    let mut stream = || ids.iter().map(|&id| decoder.push(id)).collect::<String>() + &decoder.finish();
    let text = stream();
    assert_eq!(stream(), text, "a finished decoder is a new one");
    text
}

/// The 47 texts with ids from the tokenizers' authors' own code (no special tokens parsed).
#[test]
fn reference_texts_give_reference_ids() {
    for (json, reference) in [
        ("qwen2-tokenizer.json", "qwen2"),
        ("llama-bpe-tokenizer.json", "llama-bpe"),
        ("phi-3-tokenizer.json", "phi-3"),
    ] {
        let (Some(cases), Some(path)) =
            (reference_ids(reference), shared::path(format!("tokenizers/{json}")))
        else {
            continue;
        };
        let tokenizer = Pair::read(&path).ours;
        for (text, expected) in cases {
            let ids = tokenizer.encode_segments(&[TextSegment::Content(&text)]).unwrap();
            assert_eq!(ids, expected, "{json}: {text:?}");
        }
    }
}

/// Bytes of single tokens, which decoding whole texts cannot check.
#[test]
fn tokens_keep_exact_bytes() {
    for pair in &*PAIRS {
        for (id, token) in pair.library.get_added_tokens_decoder() {
            assert_eq!(pair.ours.token_bytes(id), token.content.as_bytes(), "{}", pair.name);
            let kind = if token.special { TokenKind::Special } else { TokenKind::Added };
            assert_eq!(pair.ours.token_kind(id), kind);
            assert_eq!(pair.ours.token_id(&token.content), Some(id));
        }
        assert_eq!(pair.ours.token_bytes(TokenId::MAX), b"");
        let byte_level = pair.ours.token_id("▁the").is_none();
        let spellings: BTreeMap<&str, &[u8]> = match byte_level {
            true => [("Ġ", &b" "[..]), ("Ċ", b"\n"), ("Ã", b"\xC3"), ("a", b"a")].into(),
            false => [("▁the", &b" the"[..]), ("<0x0A>", b"\n"), ("<0xC3>", b"\xC3"), ("a", b"a")].into(),
        };
        for (spelling, bytes) in spellings {
            let id = pair.ours.token_id(spelling).unwrap_or_else(|| panic!("{} has {spelling}", pair.name));
            assert_eq!(pair.ours.token_bytes(id), bytes, "{}: {spelling}", pair.name);
        }
    }
}

#[test]
fn character_is_streamed_with_its_last_byte() {
    let tokenizer = lm_tokenizer::testing::tokenizer();
    let ids = tokenizer.encode("a😀<tool_call>").unwrap();
    let mut decoder = tokenizer.stream_decoder();
    let texts: Vec<String> = ids.iter().map(|&id| decoder.push(id)).collect();
    assert_eq!(texts, ["a", "", "", "", "😀", "<tool_call>"]);
    assert_eq!(decoder.finish(), "");
    assert_eq!(decoder.push(ids[1]), "");
    assert_eq!(decoder.finish(), "\u{FFFD}");
    assert_eq!(decoder.push(tokenizer.end_ids()[0]), "");
    assert_eq!(decoder.push(ids[0]), "a");
}

/// A Unigram model chooses the most likely pieces, and a special token of its vocabulary is more likely than
/// the letters it is spelled with.
#[test]
fn special_tokens_in_the_vocabulary_are_not_forged() {
    let pieces = ["<unk>", "</s>", "<", "/", "s", ">", "▁"]
        .map(|piece| json!([piece, if piece.len() > 1 { 0.0 } else { -9.0 }]));
    let end = json!({"id": 1, "content": "</s>", "special": true, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false});
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [end],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": false},
    });
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    let ids = |segment| tokenizer.encode_segments(&[segment]).unwrap();
    assert_eq!(ids(TextSegment::Template("s</s>s")), [4, 1, 4]);
    assert_eq!(ids(TextSegment::Content("s</s></s>s")), [4, 2, 3, 4, 5, 2, 3, 4, 5, 4]);
}

/// Old files have `add_prefix_space` or neither of the settings, and the library's default then prepends a
/// space.
#[test]
fn metaspace_decoder_drops_the_prepended_space() {
    let decoders = [json!({}), json!({"add_prefix_space": true})];
    let schemes = ["always", "first", "never"].map(|scheme| json!({"prepend_scheme": scheme}));
    for settings in decoders.into_iter().chain(schemes) {
        let mut decoder = settings;
        decoder["type"] = json!("Metaspace");
        decoder["replacement"] = json!("▁");
        let file = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": decoder,
            "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁a", -1.0], ["▁", -9.0]], "byte_fallback": false},
        });
        let pair = Pair::of(decoder.to_string(), file.to_string().as_bytes());
        let ids = [1, 1];
        let expected = pair.library.decode(&ids, false).expect("it decodes");
        assert_eq!(pair.ours.decode(&ids, SpecialTokens::Keep), expected, "{}", pair.name);
        assert_eq!(streamed(&pair.ours, &ids), expected, "{}", pair.name);
    }
}
