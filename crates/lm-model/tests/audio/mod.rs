//! Audio in prompts of the tiny audio checkpoints: features, ids, rows, logits and greedy tokens against
//! transformers.

mod features;
mod golden;
mod settings;

use lm_media::{Audio, Error as MediaError};
use lm_model::{Device, Error, ImageOptions, KvDtype, LoadOptions, LoadedModel, ModelFolder, WeightFormat};

use crate::common::{first, for_each_device, is_thorough, load, load_with};
use crate::prompt::{MediaItem, Prompt};
use golden::{Golden, every};

fn check_prompts(golden: &Golden, loaded: &LoadedModel, audios: &[Audio]) {
    let (encoder, device) = (loaded.audio.as_deref().unwrap(), loaded.model.info().device);
    for (index, expected) in golden.json.prompts.iter().enumerate() {
        let name = format!("{} prompt {index}", golden.name());
        let images = golden.folder.images(&format!("prompts.{index}.pictures."));
        let images = images.iter().map(|image| {
            MediaItem::image(loaded.vision.as_deref().unwrap(), image, &ImageOptions::default())
        });
        let audios = expected.audios.iter().map(|&index| MediaItem::audio(encoder, &audios[index]));
        let media: Vec<MediaItem> = images.chain(audios).collect();
        let mut prompt = Prompt::new(&expected.text, loaded, &media);
        prompt.adapter = loaded.audio_adapter.clone();
        assert_eq!(prompt.ids, expected.ids, "{name}");
        golden.folder.print_stage("ids", 0.0);
        let greedy = first(&expected.greedy, device);
        let (whole, tokens) = prompt.greedy(&*loaded.model, greedy.len());
        let logits = whole.iter().step_by(expected.step).flatten().copied().collect::<Vec<_>>();
        golden.assert_close(&format!("prompts.{index}.logits"), &logits);
        assert_eq!(tokens, greedy, "{name}");
        golden.folder.print_stage("greedy tokens", 0.0);
        if is_thorough(device) {
            prompt.check_in_pieces(&*loaded.model, &whole, &name);
        }
    }
}

fn check(golden: &Golden, device: Device) {
    let options = LoadOptions { device, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
    let loaded = load_with(&golden.path, &options);
    let encoder = loaded.audio.as_deref().unwrap();
    let audios: Vec<Audio> = golden.json.audios.iter().map(|audio| audio.audio()).collect();
    for (index, (audio, expected)) in audios.iter().zip(&golden.json.audios).enumerate() {
        let rows = MediaItem::audio(encoder, audio).encoded.rows.clone();
        let values = every(expected.steps[1], rows.hidden_size, &rows.values);
        golden.assert_close(&format!("sounds.{index}.rows"), &values);
    }
    check_prompts(golden, &loaded, &audios);
}

#[test]
fn audio_prompts_equal_transformers() {
    for_each_device(|device| Golden::all().for_each(|golden| check(&golden, device)));
}

#[test]
fn row_counts_equal_transformers() {
    for golden in Golden::all() {
        let audio = load(&golden.path, Device::Cpu).audio.unwrap();
        assert!(golden.json.counts.len() > 250);
        for &[samples, tokens] in &golden.json.counts {
            match audio.layout(samples) {
                Ok(layout) => assert_eq!(layout.rows(), tokens, "{} {samples}", golden.name()),
                Err(Error::Media(MediaError::UnsuitableLength { .. })) => {
                    assert_eq!(tokens, 0, "{} {samples}", golden.name());
                }
                Err(other) => panic!("{} {samples}: {other}", golden.name()),
            }
        }
    }
}

#[test]
fn audio_without_rows_is_an_error() {
    for golden in Golden::all() {
        let encoder = load(&golden.path, Device::Cpu).audio.unwrap();
        let audio = Audio::from_samples(vec![0.5]).unwrap();
        for error in [encoder.layout(1).err(), encoder.encode(&audio).err()] {
            let error = error.unwrap();
            assert!(
                matches!(error, Error::Media(MediaError::UnsuitableLength { samples: 1, .. })),
                "{error}"
            );
        }
    }
}

/// The copy's rows of an audio clip are the same bits: the encoder is not quantised. Its adapter comes with
/// it.
#[test]
fn converted_folder_keeps_its_encoder() {
    for golden in Golden::all() {
        let out = tempfile::tempdir().unwrap();
        let copy = out.path().join("copy");
        let folder = ModelFolder::open(&golden.path).unwrap();
        folder.convert(&copy, WeightFormat::Q8, &mut |_| {}).unwrap();
        let audio = golden.json.audios[0].audio();
        let [expected, got] = [&golden.path, &copy].map(|path| {
            let loaded = load(path, Device::Cpu);
            (loaded.audio.unwrap().encode(&audio).unwrap().rows, loaded.audio_adapter.is_some())
        });
        assert!(got == expected, "{}", golden.name());
    }
}
