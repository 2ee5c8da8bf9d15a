//! Embeddings, compared with the pooled last hidden state of transformers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lm_session::{EmbedParams, Engine, EngineSettings, KvDtype, LoadOptions, ModelFolder, Pooling, TokenId};

/// Maximum absolute difference of an element; the vectors have length 1 and 48 to 96 elements.
const TOLERANCE: f32 = 5e-6;

#[derive(serde::Deserialize)]
struct Prompt {
    ids: Vec<TokenId>,
    mean: Vec<f32>,
    last: Vec<f32>,
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn engine(name: &str) -> Engine {
    let folder = ModelFolder::open(testdata("models").join(name)).unwrap();
    let options = LoadOptions { kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    let settings = EngineSettings { prefill_chunk: 16, ..EngineSettings::default() };
    Engine::load(&folder, &options, settings, &mut |_| {}).unwrap()
}

#[test]
fn embeddings_equal_transformers() {
    let golden = std::fs::read(testdata("embeddings/golden.json")).unwrap();
    let golden: BTreeMap<String, Vec<Prompt>> = serde_json::from_slice(&golden).unwrap();
    assert!(golden.len() >= 3, "{} checkpoints", golden.len());
    for (name, prompts) in golden {
        let engine = engine(&name);
        for Prompt { ids, mean, last } in prompts {
            for (pooling, expected) in [(Pooling::Mean, mean), (Pooling::Last, last)] {
                let got = engine
                    .embed(&ids, &EmbedParams { pooling: Some(pooling), ..EmbedParams::default() })
                    .unwrap();
                assert_eq!((got.len(), expected.len()), (engine.model_info().hidden_size, got.len()));
                let far = got.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                println!("{name}, {} tokens, {pooling:?}: {far:.1e}", ids.len());
                assert!(far <= TOLERANCE, "{name}, {} tokens, {pooling:?}: {far:e}", ids.len());
            }
        }
    }
}
