//! Images in engines with a draft model, and in engines whose model is unloaded.

use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::{endless, prompt, random_model};
use lm_media::{Image, ImageSize};
use lm_model::testing::FakeVision;
use lm_model::{EncodedMedia, ImageOptions, MediaLayout, VisionEncoder};
use lm_session::testing::{FakeLm, image_file, loaded, tokenizer};
use lm_session::{
    DraftModel, Engine, EngineActivity, EngineSettings, GenerateParams, LoadOptions, LoadedModel, Media,
    ModelFolder, Prompt, PromptPiece, SamplerParams, Session, SessionEvent, Speculation, TokenId, Usage,
};

/// A prompt with an image between texts, and the image.
fn with_image(
    engine: &Engine,
    [width, height]: [u32; 2],
    seed: u8,
    len: usize,
) -> (Vec<TokenId>, Arc<Media>) {
    let file = image_file(width, height, seed);
    let image = engine.image(file, &ImageOptions::default()).unwrap();
    let mut ids = prompt(seed.into(), len);
    for piece in image.pieces() {
        match piece {
            PromptPiece::Text(text) => ids.extend(engine.tokenizer().encode(text).unwrap()),
            PromptPiece::Rows(rows) => ids.extend(rows),
        }
    }
    ids.extend(prompt(seed as u32 + 7, len));
    (ids, image)
}

fn reply(
    session: &mut Session,
    (ids, image): &(Vec<TokenId>, Arc<Media>),
    sampler: Option<SamplerParams>,
) -> (Vec<TokenId>, Usage) {
    let params = GenerateParams { sampler, max_output_tokens: Some(30), ..GenerateParams::default() };
    let (mut tokens, mut usage) = (Vec::new(), Usage::default());
    for event in session.submit(Prompt { ids, media: from_ref(image) }, params).unwrap() {
        match event.unwrap() {
            SessionEvent::Token { id, .. } => tokens.push(id),
            SessionEvent::Finished(finished) => usage = finished.usage,
            _ => {}
        }
    }
    (tokens, usage)
}

/// Requests with images run without the draft model, which reads none: a twin of the model, and one of
/// another seed.
#[test]
fn draft_model_keeps_image_replies() {
    let always = Speculation { max_draft: 5, min_match: usize::MAX, break_even: Some(0.0) };
    let engine = |draft: Option<u64>| {
        let model = |seed| loaded(FakeLm::random(seed, tokenizer().logits_width()));
        let settings = EngineSettings {
            draft_model: draft.map(|seed| DraftModel::new(model(seed))),
            speculation: always,
            ..EngineSettings::default()
        };
        let vision = Some(Arc::new(FakeVision::default()) as Arc<_>);
        Engine::new(LoadedModel { vision, ..loaded(random_model()) }, settings).unwrap()
    };
    let sampled = SamplerParams { temperature: 0.8, seed: Some(3), ..SamplerParams::default() };
    let replies = |draft| {
        let engine = engine(draft);
        let mut all = Vec::new();
        for seed in 1..4 {
            let media = with_image(&engine, [3, 2], seed, 11 * seed as usize);
            // In a session of its own, and again in one that has another image's rows.
            let mut session = endless(&engine);
            for sampler in [None, Some(sampled.clone())] {
                all.push(reply(&mut session, &media, sampler));
            }
        }
        all
    };
    let plain = replies(None);
    for draft in [11, 5] {
        let drafted = replies(Some(draft));
        for ((expected, _), (found, usage)) in plain.iter().zip(&drafted) {
            assert_eq!(expected, found, "draft model {draft}");
            assert_eq!(usage.drafted_tokens, 0, "draft model {draft}");
        }
    }
}

/// Activity after all earlier commands.
fn activity(engine: &Engine) -> EngineActivity {
    engine.cache_stats().unwrap(); // The worker publishes its activity before it takes another command.
    engine.activity()
}

#[test]
fn reloaded_model_reads_its_images_again() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vision/qwen2-vl-tiny");
    let folder = ModelFolder::open(path).unwrap();
    let settings = EngineSettings { kv_cache_tokens: Some(512), ..EngineSettings::default() };
    let engine = Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).unwrap();
    let media = [1, 2].map(|seed| with_image(&engine, [24, 16], seed, 9));
    let mut session = endless(&engine);
    let expected = media.each_ref().map(|media| reply(&mut session, media, None).0);
    assert_ne!(expected[0], expected[1]);
    assert_eq!(activity(&engine).encoded_media, 2);
    assert!(activity(&engine).media_cache_bytes > 0);
    assert!(engine.unload().unwrap());
    assert_eq!(activity(&engine).media_cache_bytes, 0, "encodings are released with the model");
    // The held ones, and one that is made while nothing is loaded.
    assert_eq!(reply(&mut session, &media[0], None).0, expected[0]);
    assert_eq!(activity(&engine).encoded_media, 3);
    assert!(engine.unload().unwrap());
    let again = with_image(&engine, [24, 16], 2, 9);
    assert_eq!(reply(&mut endless(&engine), &again, None).0, expected[1]);
    assert_eq!(activity(&engine).encoded_media, 4);
}

/// An encoder that waits for an image of another engine while it lays one out.
struct Nested(Arc<Engine>);

impl VisionEncoder for Nested {
    fn placeholder(&self) -> &str {
        "<tool_response>"
    }

    fn token(&self) -> &str {
        "<tool_response>"
    }

    fn layout(&self, size: ImageSize, options: &ImageOptions) -> lm_model::Result<MediaLayout> {
        let (engine, (done, decoded)) = (self.0.clone(), channel());
        std::thread::spawn(move || done.send(with_image(&engine, [3, 2], 9, 1).1.rows()));
        decoded.recv_timeout(Duration::from_secs(30)).expect("another image is decoded meanwhile");
        FakeVision::default().layout(size, options)
    }

    fn encode(&self, image: &Image, options: &ImageOptions) -> lm_model::Result<EncodedMedia> {
        FakeVision::default().encode(image, options)
    }
}

/// The lock of decoding is not held while a model is loaded, nor while it lays an image out.
#[test]
fn files_decode_while_another_engine_lays_out() {
    let engine = |vision: Arc<dyn VisionEncoder>| {
        let model = LoadedModel { vision: Some(vision), ..loaded(random_model()) };
        Engine::new(model, EngineSettings::default()).unwrap()
    };
    let other = Arc::new(engine(Arc::new(FakeVision::default())));
    let (_, image) = with_image(&engine(Arc::new(Nested(other))), [3, 2], 1, 1);
    assert!(image.rows() > 0);
}
