//! Embeddings of folders of sentence-transformers, compared with its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lm_model::FileBytes;
use lm_session::{
    EmbedInput, EmbedParams, Engine, EngineSettings, KvDtype, LoadOptions, ModelFolder, normalized,
};

/// Maximum absolute difference of an element: of vectors of length 1, and of others.
const TOLERANCE: (f32, f32) = (5e-6, 1e-4);

#[derive(serde::Deserialize)]
struct Case {
    text: String,
    prompt: Option<String>,
    prompt_name: Option<String>,
    vector: Vec<f32>,
    short: Vec<f32>,
    tokens: usize,
}

impl Case {
    fn input(&self, engine: &Engine) -> EmbedInput {
        let config = engine.embedding_config();
        let prompt = match (&self.prompt, &self.prompt_name) {
            (Some(text), _) => text,
            (None, Some(name)) => config.prompt(name).unwrap(),
            (None, None) => config.default_prompt(),
        };
        EmbedInput::of_text(engine, prompt, &self.text).unwrap()
    }
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/embeddings/sentence-transformers")
}

fn golden() -> BTreeMap<String, Vec<Case>> {
    serde_json::from_slice(&fs::read(testdata().join("golden.json")).unwrap()).unwrap()
}

/// Files of a folder and its subfolders.
fn files(folder: &Path, prefix: &str) -> Vec<(String, FileBytes)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let of_entry = |entry: fs::DirEntry| {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => files(&entry.path(), &format!("{name}/")),
            false => vec![(name, FileBytes::Owned(fs::read(entry.path()).unwrap().into()))],
        }
    };
    entries.flat_map(of_entry).collect()
}

fn engine(recipe: &str) -> Engine {
    let parts = ["model", recipe].map(|name| files(&testdata().join(name), ""));
    let folder = ModelFolder::in_memory(recipe, parts.concat()).unwrap();
    let options = LoadOptions { kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    let settings = EngineSettings { prefill_chunk: 16, ..EngineSettings::default() };
    Engine::load(&folder, &options, settings, &mut |_| {}).unwrap()
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn embeddings_equal_sentence_transformers() {
    let golden = golden();
    assert!(golden.len() >= 4, "{} recipes", golden.len());
    for (recipe, cases) in golden {
        let engine = engine(&recipe);
        let is_normalized = engine.embedding_config().is_normalized();
        let (mut far, mut short_far) = (0.0_f32, 0.0_f32);
        for case in &cases {
            let input = case.input(&engine);
            assert_eq!(input.ids.len(), case.tokens, "{recipe}: {}", case.text);
            let got = engine.embed_input(&input, &EmbedParams::default()).unwrap();
            assert_eq!(got.len(), engine.embedding_size());
            far = far.max(difference(&got, &case.vector));
            let short = normalized(got[..case.short.len()].to_vec());
            short_far = short_far.max(difference(&short, &case.short));
        }
        println!("{recipe}: {} texts, {far:.1e}, shortened {short_far:.1e}", cases.len());
        assert!(far <= if is_normalized { TOLERANCE.0 } else { TOLERANCE.1 }, "{recipe}: {far:e}");
        assert!(short_far <= TOLERANCE.1, "{recipe}: {short_far:e}");
    }
}

#[test]
fn batches_of_unequal_lengths_equal_single_texts() {
    for (recipe, cases) in golden() {
        let engine = engine(&recipe);
        let inputs: Vec<EmbedInput> = cases.iter().map(|case| case.input(&engine)).collect();
        let params = EmbedParams::default();
        let alone: Vec<_> = inputs.iter().map(|input| engine.embed_input(input, &params).unwrap()).collect();
        let together: Vec<_> = engine.embed_all(inputs, &params).map(Result::unwrap).collect();
        assert_eq!(together, alone, "{recipe}");
    }
}

#[test]
fn parameters_take_precedence_over_the_files() {
    let engine = engine("cls-short");
    let embed = |normalize| {
        let params = EmbedParams { normalize, ..EmbedParams::default() };
        engine.embed(&[1, 2, 3], &params).unwrap()
    };
    assert_eq!(embed(Some(true)), normalized(embed(None)));
    assert_eq!(embed(Some(false)), embed(None));
    assert!(difference(&embed(Some(true)), &embed(None)) > 0.1, "its files do not normalise");
}
