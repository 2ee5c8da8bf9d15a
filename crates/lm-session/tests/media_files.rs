//! Files of images and audio: rejected files, and models that read one kind or none.

use std::path::Path;
use std::sync::Arc;

use lm_model::testing::{FakeAudio, FakeVision};
use lm_session::testing::{FakeLm, audio_file, image_file, loaded, tokenizer};
use lm_session::{
    AudioLimits, DecodeLimits, Engine, EngineSettings, Error, ImageOptions, LoadedModel, MediaKind,
};

/// A model that reads only text.
fn text_model() -> LoadedModel {
    loaded(FakeLm::random(1, tokenizer().logits_width()))
}

fn vision_engine(settings: EngineSettings) -> Engine {
    Engine::new(LoadedModel { vision: Some(Arc::new(FakeVision::default())), ..text_model() }, settings)
        .unwrap()
}

fn audio_engine(settings: EngineSettings) -> Engine {
    Engine::new(LoadedModel { audio: Some(Arc::new(FakeAudio::default())), ..text_model() }, settings)
        .unwrap()
}

#[test]
fn non_image_files_are_errors() {
    let image_limits = DecodeLimits { max_pixels: 20, ..DecodeLimits::default() };
    let engine = vision_engine(EngineSettings { image_limits, ..EngineSettings::default() });
    let open = |bytes: &[u8]| engine.image(bytes, &ImageOptions::default()).unwrap_err();
    let file = image_file(3, 2, 1);
    assert!(matches!(open(&file[..file.len() - 5]), Error::Media(lm_media::Error::Invalid { .. })));
    for other in [&b"no image"[..], &audio_file(9, 1)] {
        assert!(matches!(open(other), Error::Media(lm_media::Error::UnknownFormat { .. })));
    }
    assert!(matches!(open(&image_file(7, 3, 1)), Error::Media(lm_media::Error::TooManyPixels { .. })));
}

#[test]
fn non_audio_files_are_errors() {
    let open = |audio_limits, bytes: &[u8]| {
        audio_engine(EngineSettings { audio_limits, ..EngineSettings::default() }).audio(bytes)
    };
    let limits = AudioLimits::default();
    let file = audio_file(16_000, 1);
    assert_eq!(open(limits, &file).unwrap().rows(), 5);
    let rejected = |limits, bytes: &[u8]| match open(limits, bytes).unwrap_err() {
        Error::Media(error) => error,
        error => panic!("{error}"),
    };
    assert!(matches!(rejected(limits, &file[..file.len() - 5]), lm_media::Error::Invalid { .. }));
    for other in [&b"no audio"[..], &image_file(3, 2, 1)] {
        assert!(matches!(rejected(limits, other), lm_media::Error::UnknownAudio { .. }));
    }
    // Ten hours of 4,000 samples per second according to the header.
    let mut hours = file.clone();
    hours[4..8].copy_from_slice(&(36 + 36_000 * 4_000 * 2_u32).to_le_bytes());
    hours[24..28].copy_from_slice(&4_000_u32.to_le_bytes());
    hours[40..44].copy_from_slice(&(36_000 * 4_000 * 2_u32).to_le_bytes());
    assert!(matches!(rejected(limits, &hours), lm_media::Error::TooLong { limit: 600 }));
    let short = AudioLimits { max_seconds: 0, ..limits };
    assert!(matches!(rejected(short, &file), lm_media::Error::TooLong { limit: 0 }));
    // The model takes 30 seconds of audio.
    assert_eq!(open(limits, &audio_file(480_000, 1)).unwrap().rows(), 5);
    assert!(matches!(rejected(limits, &audio_file(480_001, 1)), lm_media::Error::TooLong { limit: 30 }));
    let small = AudioLimits { max_bytes: 99, ..limits };
    assert!(matches!(rejected(small, &file), lm_media::Error::TooManyBytes { limit: 99, .. }));
}

#[test]
fn models_read_only_their_media_kinds() {
    let text_only = Engine::new(text_model(), EngineSettings::default()).unwrap();
    assert!(text_only.media_tokens().is_empty());
    for (engine, reads_images, reads_audio) in [
        (text_only, false, false),
        (vision_engine(EngineSettings::default()), true, false),
        (audio_engine(EngineSettings::default()), false, true),
    ] {
        let image = engine.image(image_file(3, 2, 1), &ImageOptions::default());
        assert!(if reads_images { image.is_ok() } else { matches!(image, Err(Error::NoVision)) });
        let audio = engine.audio(audio_file(9, 1));
        assert!(if reads_audio { audio.is_ok() } else { matches!(audio, Err(Error::NoAudio)) });
        assert_eq!(MediaKind::ALL.map(|kind| engine.reads(kind)), [reads_images, reads_audio]);
    }
}

#[test]
fn audio_of_all_formats_is_read() {
    let engine = audio_engine(EngineSettings::default());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sound");
    for (name, rows) in [
        ("one_sample.wav", 1),
        ("pcm16_16k.wav", 4),
        ("mono_16k.flac", 3),
        ("mono_16k.mp3", 2),
        ("mono_16k.ogg", 2),
    ] {
        let item = engine.audio(std::fs::read(folder.join(name)).unwrap()).unwrap();
        assert_eq!((item.kind(), item.rows()), (MediaKind::Audio, rows), "{name}");
    }
}
