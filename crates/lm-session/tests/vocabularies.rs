//! Constraints over real vocabularies, byte-level and SentencePiece, read from the shared folder
//! (`LM_SHARED`, by default `../shared` beside the checkout). Without the folder, the tests are skipped with
//! a printed line.

use crate::shared;
use std::sync::{Arc, LazyLock};

use lm_session::testing::{FakeLm, loaded};
use lm_session::{
    Acceptance, ConstraintSpec, Engine, EngineSettings, GenerateParams, GrammarCompiler, LoadedModel,
    SamplerParams, SessionConfig, SessionEvent, SpecialTokens, TokenId, TokenKind, TokenMask, Tokenizer,
};

/// Number of ids of a model beyond its vocabulary.
const PADDING: usize = 70;

/// Vocabularies, each with the added tokens used as the opening and the closing marker of a call in these
/// tests.
const VOCABULARIES: [(&str, [&str; 2]); 4] = [
    ("llama-bpe", ["<|start_header_id|>", "<|eom_id|>"]),
    ("phi-3", ["<|assistant|>", "<|end|>"]),
    ("qwen2", ["<|im_start|>", "<|im_end|>"]),
    ("smollm2", ["<|im_start|>", "<|im_end|>"]),
];

static COMPILERS: LazyLock<Vec<(&str, [&str; 2], GrammarCompiler)>> = LazyLock::new(|| {
    let Some(folder) = shared::path("tokenizers") else { return Vec::new() };
    let read = |(name, markers): (&'static str, _)| {
        let json = std::fs::read(folder.join(format!("{name}-tokenizer.json"))).unwrap();
        let tokenizer = Tokenizer::from_json(&json).unwrap();
        let width = tokenizer.vocab_size() + PADDING;
        (name, markers, GrammarCompiler::new(&Arc::new(tokenizer.with_logits_width(width))).unwrap())
    };
    VOCABULARIES.into_iter().map(read).collect()
});

/// A call between markers; the second marker is not a token of any vocabulary.
fn call(markers: [&str; 2]) -> ConstraintSpec {
    let arguments = serde_json::json!({
        "type": "object",
        "properties": {"place of origin": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}, "minItems": 2}},
        "required": ["place of origin", "days"], "additionalProperties": false,
    });
    let text = format!(
        "start: marker_0 \"call the tool\\n\" marker_1 %json {arguments} \" done, é and all\" marker_2",
    );
    let markers = [markers[0], "[no token]", markers[1]].map(String::from).into();
    ConstraintSpec::Lark { text, markers }
}

#[test]
fn added_token_needs_its_marker() {
    for (name, markers, compiler) in COMPILERS.iter() {
        let tokenizer = compiler.tokenizer();
        let mut free = compiler.compile(&ConstraintSpec::Regex("(?s:.*)".to_owned())).unwrap().start();
        let mut mask = TokenMask::new(tokenizer.logits_width());
        free.mask(&mut mask).unwrap();
        let added = |id: &TokenId| tokenizer.token_kind(*id) != TokenKind::Text;
        assert_eq!(mask.ids().find(added), None, "{name}");
        assert!(mask.ids().all(|id| !tokenizer.token_bytes(id).is_empty()), "{name}: an id without text");
        assert!(
            mask.count() * 10 > tokenizer.vocab_size() * 9,
            "{name}: {} tokens of free text",
            mask.count()
        );

        let marked = compiler.compile(&call(*markers)).unwrap();
        let mut start = TokenMask::new(tokenizer.logits_width());
        marked.start().mask(&mut start).unwrap();
        assert_eq!(start.ids().collect::<Vec<_>>(), [tokenizer.token_id(markers[0]).unwrap()], "{name}");
    }
}

#[test]
fn forced_text_has_the_tokens_of_the_tokenizer() {
    for (name, markers, compiler) in COMPILERS.iter() {
        let tokenizer = compiler.tokenizer();
        let mut constraint = compiler.compile(&call(*markers)).unwrap().start();
        let forced = constraint.forced().unwrap();
        let expected = format!("{}call the tool\n[no token]{{", markers[0]);
        let text = tokenizer.decode(&forced, SpecialTokens::Keep);
        assert!(expected.starts_with(&text) && text.len() + 12 > expected.len(), "{name}: {text:?}");
        // As in the whole text, up to a last token that would continue into text that is not forced.
        let whole = tokenizer.encode(&expected).unwrap();
        let same = forced.iter().zip(&whole).take_while(|(a, b)| a == b).count();
        assert!(same + 2 >= forced.len() || *name == "phi-3", "{name}: {forced:?}, expected {whole:?}");
    }
}

#[test]
fn random_calls_end_within_budget_for_every_vocabulary() {
    for (name, markers, compiler) in COMPILERS.iter() {
        let tokenizer = compiler.tokenizer();
        let width = tokenizer.logits_width();
        let engine = Engine::new(
            LoadedModel { tokenizer: tokenizer.clone(), ..loaded(FakeLm::noise(5, width)) },
            EngineSettings::default(),
        )
        .unwrap();
        let compiled = compiler.compile(&call(*markers)).unwrap();
        for seed in 0..6 {
            let mut session = engine.session(SessionConfig::default()).unwrap();
            session.prefill(&[1, 2, 3]).unwrap();
            let params = GenerateParams {
                sampler: Some(SamplerParams {
                    temperature: 1.0,
                    seed: Some(seed),
                    ..SamplerParams::default()
                }),
                constraint: Some(compiled.start()),
                max_output_tokens: Some(60),
                ..GenerateParams::default()
            };
            let mut ids = Vec::new();
            for event in session.generate(params) {
                if let SessionEvent::Token { id, .. } = event.unwrap() {
                    ids.push(id);
                }
            }
            let text = engine.tokenizer().decode(&ids, SpecialTokens::Keep);
            assert_eq!(compiled.check(&text).unwrap(), Acceptance::Accepted, "{name} {seed}: {text:?}");
        }
    }
}
