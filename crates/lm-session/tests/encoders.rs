//! Encoders and cross-encoders, compared with sentence-transformers.

use std::fs;
use std::path::{Path, PathBuf};

use lm_session::{
    CancelHandle, EmbedInput, EmbedParams, Engine, EngineSettings, Error, GenerateParams, KvDtype,
    LoadOptions, ModelFolder, ModelOutput, Pooling, SessionConfig, TextPair, TokenId, WeightFormat,
    normalized,
};

/// Maximum absolute difference of an element of a vector, of a logit or a score.
const TOLERANCE: f32 = 1e-4;
/// Minimum cosine similarity of embeddings with 8-bit and 4-bit weights to those with floats.
const QUANTISED: [(WeightFormat, f32); 2] = [(WeightFormat::Q8, 0.995), (WeightFormat::Q4, 0.7)];

#[derive(serde::Deserialize)]
struct Text {
    text: String,
    prompt_name: Option<String>,
    ids: Vec<TokenId>,
    vector: Vec<f32>,
}

#[derive(serde::Deserialize)]
struct Pair {
    pair: [String; 2],
    ids: Vec<TokenId>,
    scores: Vec<f32>,
    logits: Vec<f32>,
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/encoders")
}

/// A marker of BERT's vocabularies that one of the texts contains.
const MARKER: &str = "[SEP]";

/// Folders whose results have this form.
fn goldens<T: serde::de::DeserializeOwned>() -> Vec<(String, Vec<T>)> {
    let folders = fs::read_dir(testdata()).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.join("golden.json").exists()).collect();
    folders.sort();
    let read = |path: PathBuf| {
        let golden = fs::read(path.join("golden.json")).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Some((name, serde_json::from_slice(&golden).ok()?))
    };
    folders.into_iter().filter_map(read).collect()
}

fn load(path: &Path, quantization: Option<WeightFormat>) -> Engine {
    let folder = ModelFolder::open(path).unwrap();
    let options = LoadOptions { quantization, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    let settings = EngineSettings { prefill_chunk: 16, ..EngineSettings::default() };
    Engine::load(&folder, &options, settings, &mut |_| {}).unwrap()
}

fn engine(name: &str) -> Engine {
    load(&testdata().join(name), None)
}

/// Returns true if the text contains a marker of the model, which the reference reads as the marker, and this
/// engine as text.
fn is_marked(engine: &Engine, text: &str) -> bool {
    text.contains(MARKER) && engine.tokenizer().token_id(MARKER).is_some()
}

fn input(engine: &Engine, text: &Text) -> EmbedInput {
    let config = engine.embedding_config();
    let prompt =
        text.prompt_name.as_ref().map_or(config.default_prompt(), |name| config.prompt(name).unwrap());
    EmbedInput::of_text(engine, prompt, &text.text).unwrap()
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    // `max` would ignore a NaN.
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |most, d| if d <= most { most } else { d })
}

#[test]
fn embeddings_equal_sentence_transformers() {
    let goldens = goldens::<Text>();
    assert!(goldens.len() >= 6, "{} folders", goldens.len());
    for (name, texts) in goldens {
        let engine = engine(&name);
        assert_eq!(engine.model_info().output, ModelOutput::HiddenStates, "{name}");
        let mut far = 0.0_f32;
        for text in texts.iter().filter(|text| !is_marked(&engine, &text.text)) {
            let input = input(&engine, text);
            assert_eq!(input.ids, text.ids, "{name}: {}", text.text);
            let got = engine.embed_input(&input, &EmbedParams::default()).unwrap();
            far = far.max(difference(&got, &text.vector));
        }
        println!("encoder: {name}, {} texts, {far:.1e}", texts.len());
        assert!(far <= TOLERANCE, "{name}: {far:e}");
    }
}

/// Files of llama.cpp's converter: their ids and pooling are the folders', their vectors have length 1.
#[test]
fn gguf_files_equal_their_folders() {
    let goldens = goldens::<Text>();
    let files = fs::read_dir(testdata().join("gguf")).unwrap().map(|entry| entry.unwrap().path());
    let mut names = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let engine = load(&file, None);
        let (_, texts) = goldens.iter().find(|(folder, _)| *folder == name).unwrap();
        // Files hold neither the prompts nor the maximum length.
        let most = texts.iter().map(|text| text.ids.len()).max().unwrap();
        let mut far = 0.0_f32;
        let fitting = texts.iter().filter(|text| text.prompt_name.is_none() && text.ids.len() < most);
        for text in fitting.filter(|text| !is_marked(&engine, &text.text)) {
            let input = EmbedInput::of_text(&engine, "", &text.text).unwrap();
            assert_eq!(input.ids, text.ids, "{name}: {}", text.text);
            let got = engine.embed_input(&input, &EmbedParams::default()).unwrap();
            far = far.max(difference(&got, &normalized(text.vector.clone())));
        }
        println!("encoder: {name}.gguf, {far:.1e}");
        assert!(far <= 2.0 * TOLERANCE, "{name}: {far:e}");
        names.push(name);
    }
    assert!(names.len() >= 6, "{names:?}");
}

#[test]
fn batches_of_unequal_lengths_equal_single_texts() {
    for (name, texts) in goldens::<Text>() {
        let engine = engine(&name);
        let inputs: Vec<EmbedInput> =
            texts.iter().cycle().take(23).map(|text| input(&engine, text)).collect();
        let params = EmbedParams::default();
        let alone: Vec<_> = inputs.iter().map(|input| engine.embed_input(input, &params).unwrap()).collect();
        let together: Vec<_> = engine.embed_all(inputs, &params).map(Result::unwrap).collect();
        assert_eq!(together, alone, "{name}");
    }
}

#[test]
fn quantised_encoders_give_similar_vectors() {
    for (name, texts) in goldens::<Text>() {
        for (format, least) in QUANTISED {
            let engine = load(&testdata().join(&name), Some(format));
            let mut smallest = 1.0_f32;
            for text in texts.iter().filter(|text| !is_marked(&engine, &text.text)) {
                let got = engine.embed_input(&input(&engine, text), &EmbedParams::default()).unwrap();
                let (got, expected) = (normalized(got), normalized(text.vector.clone()));
                let cosine: f32 = got.iter().zip(&expected).map(|(a, b)| a * b).sum();
                smallest = smallest.min(cosine);
            }
            println!("encoder: {name} in {format}, cosine {smallest:.4}");
            assert!(smallest >= least, "{name} in {format}: {smallest}");
        }
    }
}

#[test]
fn markers_in_texts_are_text() {
    let engine = engine("bert-cls");
    let separator = engine.tokenizer().token_id(MARKER).unwrap();
    let count = |ids: &[lm_session::TokenId]| ids.iter().filter(|&&id| id == separator).count();
    let input = EmbedInput::of_text(&engine, "", "two [SEP] lines").unwrap();
    assert_eq!(count(&input.ids), 1, "the one at the end: {:?}", input.ids);
    let pair = engine.encode_pair(["a [SEP]", "[SEP] b"]).unwrap();
    assert_eq!(count(&pair.ids), 2, "one after each text: {:?}", pair.ids);
}

#[test]
fn scores_equal_cross_encoders() {
    let goldens = goldens::<Pair>();
    assert!(goldens.len() >= 4, "{} folders", goldens.len());
    for (name, pairs) in goldens {
        let engine = engine(&name);
        let is_plain = |golden: &&Pair| golden.pair.iter().all(|text| !is_marked(&engine, text));
        let pairs: Vec<&Pair> = pairs.iter().filter(is_plain).collect();
        let activation = engine.cross_encoder_config().activation;
        let encoded: Vec<TextPair> = pairs
            .iter()
            .map(|Pair { pair: [first, second], .. }| engine.encode_pair([first, second]).unwrap())
            .collect();
        for (pair, &golden) in encoded.iter().zip(&pairs) {
            assert_eq!(pair.ids, golden.ids, "{name}: {:?}", golden.pair);
        }
        let cancel = CancelHandle::new();
        let all: Vec<Vec<f32>> =
            engine.classify_all(encoded.clone(), None, &cancel).unwrap().map(Result::unwrap).collect();
        let mut far = 0.0_f32;
        for ((pair, logits), &golden) in encoded.iter().zip(&all).zip(&pairs) {
            let scores: Vec<f32> = logits.iter().map(|&logit| activation.apply(logit) as f32).collect();
            far = far.max(difference(logits, &golden.logits)).max(difference(&scores, &golden.scores));
            let alone = engine.classify_all([pair.clone()], None, &cancel).unwrap().next().unwrap().unwrap();
            assert_eq!(&alone, logits, "{name}: alone and in a batch");
        }
        println!("cross-encoder: {name}, {} pairs, {far:.1e}", pairs.len());
        assert!(far <= TOLERANCE, "{name}: {far:e}");
    }
}

#[test]
fn tokens_are_refused() {
    for (name, use_of_it) in [("bert-mean", "lm embed"), ("bert-cross", "lm rerank")] {
        let engine = engine(name);
        let mut session = engine.session(SessionConfig::default()).unwrap();
        let errors = [
            session.prefill(&[1, 2, 3]).map(drop).unwrap_err(),
            session.score(&[1, 2, 3], 0, &CancelHandle::new()).map(drop).unwrap_err(),
            engine.next_logits([vec![1, 2]], &[3], None, &CancelHandle::new()).next().unwrap().unwrap_err(),
            session.generate(GenerateParams::default()).into_text().map(drop).unwrap_err(),
        ];
        for error in &errors[..3] {
            assert!(matches!(error, Error::NoGeneration { .. }), "{error}");
            assert!(error.to_string().contains(use_of_it), "{error}");
        }
    }
    let error = engine("bert-mean").classify_all([], None, &CancelHandle::new()).map(drop).unwrap_err();
    assert!(matches!(error, Error::NoClassifier { .. }), "{error}");
}

#[test]
fn longer_texts_than_the_positions_are_an_error() {
    let engine = engine("bert-mean");
    let embed = |len| {
        engine.embed(&vec![7; len], &EmbedParams { pooling: Some(Pooling::Cls), ..EmbedParams::default() })
    };
    assert!(embed(64).is_ok());
    assert!(matches!(embed(65), Err(Error::PromptTooLong { prompt_tokens: 65, context_tokens: 64 })));
}
