//! Greedy tokens of the tiny checkpoints of `testdata/models` equal those of transformers, in an engine that
//! batches them, splits their prompts and has too few pages for all.

use crate::support;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::last_logits;
use lm_model::ALL_ARCHITECTURES;
use lm_session::{
    Device, Engine, EngineSettings, GenerateParams, KvDtype, LoadOptions, ModelFolder, SessionConfig,
    Speculation, TokenId,
};
use serde_json::Value;

/// A prompt and its greedy continuation.
struct Golden {
    prompt: Vec<TokenId>,
    greedy: Vec<TokenId>,
}

fn goldens(folder: &Path) -> Vec<Golden> {
    let golden: Value = serde_json::from_slice(&fs::read(folder.join("golden.json")).unwrap()).unwrap();
    let ids =
        |value: &Value| value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as TokenId).collect();
    let prompts = golden["prompts"].as_array().unwrap();
    prompts.iter().map(|entry| Golden { prompt: ids(&entry["ids"]), greedy: ids(&entry["greedy"]) }).collect()
}

/// Creates an engine for contexts of 128 tokens, or of the longest golden, or of all the model's positions.
fn engine(folder: &Path, device: Device, speculation: Speculation) -> Engine {
    let lengths = goldens(folder).into_iter().map(|golden| golden.prompt.len() + golden.greedy.len());
    let model = ModelFolder::open(folder).unwrap();
    let positions = model.config().unwrap().max_position_embeddings;
    let context = lengths.max().unwrap_or_default().max(128).min(positions);
    let options = LoadOptions { device, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    // Four pages hold one full context; the prompts and their continuations need eleven.
    let settings = EngineSettings {
        max_context: Some(context),
        kv_cache_tokens: Some(context),
        prefill_chunk: 11,
        speculation,
        ..EngineSettings::default()
    };
    Engine::load(&model, &options, settings, &mut |_| {}).unwrap()
}

fn check(folder: &Path, device: Device, speculation: Speculation) {
    let goldens = goldens(folder);
    let engine = engine(folder, device, speculation);
    std::thread::scope(|scope| {
        for (index, golden) in goldens.iter().enumerate() {
            let engine = &engine;
            scope.spawn(move || {
                let config =
                    SessionConfig { max_output_tokens: Some(golden.greedy.len()), ..Default::default() };
                let mut session = engine.session(config).unwrap();
                session.prefill(&golden.prompt).unwrap();
                let got = support::ids(session.generate(GenerateParams::default())).unwrap();
                let ends = engine.tokenizer().end_ids();
                let end = golden.greedy.iter().position(|id| ends.contains(id));
                let expected = &golden.greedy[..end.map_or(golden.greedy.len(), |end| end + 1)];
                assert_eq!(got, expected, "prompt {index} of {} on {device}", folder.display());
            });
        }
    });
    let stats = engine.cache_stats().unwrap();
    assert_eq!(stats.free_pages, stats.total_pages);
}

/// Checkpoints of every architecture, except those with dynamic RoPE: their logits depend on the current
/// length of the sequence, and so on how the prompt was split.
fn folders() -> Vec<PathBuf> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let goldens = ALL_ARCHITECTURES.iter().flat_map(|architecture| architecture.goldens);
    goldens.filter(|name| !name.ends_with("-dynamic")).map(|name| models.join(name)).collect()
}

#[test]
fn greedy_tokens_equal_transformers() {
    for folder in folders() {
        check(&folder, Device::Cpu, Speculation::OFF);
        check(&folder, Device::Cpu, Speculation { max_draft: 6, min_match: 1, break_even: Some(0.0) });
    }
}

#[test]
fn shared_prefix_gives_the_same_bits() {
    for folder in folders() {
        for kv_dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
            let options = LoadOptions { kv_dtype, ..LoadOptions::default() };
            let load = || ModelFolder::open(&folder).unwrap().load(&options, &mut |_| {}).unwrap();
            let ids = |range: std::ops::Range<u32>| range.map(|i| i * 7 % 90).collect::<Vec<TokenId>>();
            let (system, ask) = (ids(0..70), ids(0..100));
            let (found, fresh) = (last_logits(load(), &[&system, &ask]), last_logits(load(), &[&ask]));
            assert_eq!((found.0, fresh.0), (64, 0));
            assert_eq!(found.1, fresh.1, "{} with a cache in {kv_dtype}", folder.display());
        }
    }
}
