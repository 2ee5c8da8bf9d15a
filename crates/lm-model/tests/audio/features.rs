//! Features of the audio clips, with the settings of each folder.

use lm_media::families::{Gemma4Audio, GraniteSpeech};
use lm_media::{Audio, AudioFrames};
use serde_json::Value;

use crate::audio::golden::{Golden, every};

const TOLERANCE: f32 = 1e-5;

fn features(family: &str, settings: &Value, audio: &Audio) -> AudioFrames {
    let (size, number) =
        (|key: &str| settings[key].as_u64().unwrap() as usize, |value: &Value| value.as_f64().unwrap());
    let features = match family {
        "gemma4" => Gemma4Audio {
            mels: size("mels"),
            window: size("window"),
            hop: size("hop"),
            frequencies: number(&settings["frequencies"][0])..number(&settings["frequencies"][1]),
            floor: number(&settings["floor"]),
            ..Gemma4Audio::default()
        }
        .features(audio),
        "granite_speech" => {
            let (projector_window, downsample) = (size("window"), size("downsample"));
            GraniteSpeech { mels: size("mels"), projector_window, downsample }.features(audio)
        }
        other => panic!("{other}: no features"),
    };
    features.unwrap()
}

#[test]
fn features_equal_transformers() {
    for golden in Golden::all() {
        for (index, expected) in golden.json.audios.iter().enumerate() {
            let features = features(golden.family, &golden.json.preprocessing, &expected.audio());
            let values = every(expected.steps[0], features.bins, &features.values);
            golden.folder.assert_close(&format!("sounds.{index}.features"), &values, TOLERANCE);
        }
    }
}
