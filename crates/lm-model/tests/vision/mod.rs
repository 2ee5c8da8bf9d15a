//! Images in prompts of the tiny vision checkpoints: ids, rows, logits and greedy tokens against
//! transformers.

mod golden;
mod mmproj;
mod settings;

use lm_media::ImageSize;
use lm_model::{Device, Error, ImageOptions, LoadOptions, ModelFolder, Position, WeightFormat};

use crate::common::{first, for_each_device, is_thorough, load};
use crate::prompt::{MediaItem, Prompt};
use golden::Golden;

fn check(golden: &Golden, device: Device) {
    let loaded = load(&golden.path, device);
    let vision = loaded.vision.as_deref().unwrap();
    let item = |image| MediaItem::image(vision, image, &golden.options);
    let media: Vec<MediaItem> = golden.images.iter().map(item).collect();
    let prompt = Prompt::new(&golden.json.prompt, &loaded, &media);
    assert_eq!(prompt.ids, golden.json.ids, "{}", golden.name());
    golden.folder.print_stage("ids", 0.0);
    if let Some(positions) = &golden.json.positions {
        let of = |axis: fn(&Position) -> u32| prompt.positions.iter().map(axis).collect::<Vec<_>>();
        assert_eq!(
            [of(|p| p.temporal), of(|p| p.height), of(|p| p.width)],
            positions[..],
            "{}",
            golden.name()
        );
        golden.folder.print_stage("positions", 0.0);
    }
    for (index, MediaItem { encoded, .. }) in media.iter().enumerate() {
        golden.assert_close(&format!("pictures.{index}.rows"), &encoded.rows.values);
        for (layer, deep) in encoded.deep.iter().enumerate() {
            golden.assert_close(&format!("pictures.{index}.deep.{layer}"), &deep.values);
        }
    }
    let expected = first(&golden.json.greedy, device);
    let (whole, tokens) = prompt.greedy(&*loaded.model, expected.len());
    golden.assert_close("logits", &whole.concat());
    assert_eq!(tokens, expected, "{}", golden.name());
    golden.folder.print_stage("greedy tokens", 0.0);
    if is_thorough(device) {
        prompt.check_in_pieces(&*loaded.model, &whole, &golden.name());
    }
}

#[test]
fn image_prompts_equal_transformers() {
    for_each_device(|device| Golden::all().for_each(|golden| check(&golden, device)));
}

#[test]
fn encoder_runs_on_its_own_device() {
    let golden = Golden::read("gemma4-tiny");
    let folder = ModelFolder::open(&golden.path).unwrap();
    let load =
        |vision| folder.load(&LoadOptions { vision: Some(vision), ..LoadOptions::default() }, &mut |_| {});
    for_each_device(|device| {
        let loaded = load(device).unwrap();
        assert_eq!(loaded.model.info().device, Device::Cpu);
        let rows = loaded.vision.unwrap().encode(&golden.images[0], &golden.options).unwrap();
        golden.assert_close("pictures.0.rows", &rows.rows.values);
    });
    if !Device::available().contains(&Device::Gpu) {
        assert!(load(Device::Gpu).is_err(), "the device of the encoder alone is not in this build");
    }
}

#[test]
fn token_budget_limits_qwen_image_rows() {
    let golden = Golden::read("qwen2_5-vl-tiny");
    let vision = load(&golden.path, Device::Cpu).vision.unwrap();
    let image = &golden.images[0];
    let rows = |token_budget| {
        let options = ImageOptions { token_budget };
        let rows = vision.encode(image, &options).unwrap().rows.rows();
        assert_eq!(rows, vision.layout(image.size(), &options).unwrap().rows());
        rows
    };
    assert_eq!((rows(None), rows(Some(1000)), rows(Some(9))), (24, 24, 6));
    assert!(vision.layout(image.size(), &ImageOptions { token_budget: Some(0) }).is_err());
}

#[test]
fn gemma_4_token_budget_is_one_of_a_list() {
    let golden = Golden::read("gemma4-tiny");
    let vision = load(&golden.path, Device::Cpu).vision.unwrap();
    let rows = |budget| {
        let options = ImageOptions { token_budget: budget };
        let layout = vision.layout(golden.images[0].size(), &options)?;
        let media = vision.encode(&golden.images[0], &options)?;
        assert_eq!(media.rows.rows(), layout.rows());
        Ok::<_, Error>(layout.rows())
    };
    assert_eq!(rows(None).unwrap(), rows(Some(70)).unwrap());
    assert!((71..=140).contains(&rows(Some(140)).unwrap()));
    let error = rows(Some(71)).unwrap_err().to_string();
    assert!(error.contains("expected one of [70, 140, 280, 560, 1120]"), "{error}");
    let options = ImageOptions { token_budget: Some(280) };
    let error = vision.layout(ImageSize::new(4000, 10), &options).unwrap_err().to_string();
    assert!(error.contains("560 × 2 patches, and the model 80 positions"), "{error}");
}

/// The copy's rows of an image are the same bits: the encoder is not quantised.
#[test]
fn converted_folder_keeps_its_encoder() {
    for golden in Golden::all() {
        let out = tempfile::tempdir().unwrap();
        let copy = out.path().join("copy");
        let folder = ModelFolder::open(&golden.path).unwrap();
        folder.convert(&copy, WeightFormat::Q8, &mut |_| {}).unwrap();
        assert!(ModelFolder::open(&copy).unwrap().reads_images().unwrap(), "{}", golden.name());
        let [expected, got] = [&golden.path, &copy].map(|path| {
            let vision = load(path, Device::Cpu).vision.unwrap();
            vision.encode(&golden.images[0], &golden.options).unwrap()
        });
        assert_eq!(got.rows, expected.rows, "{}", golden.name());
        assert_eq!(got.deep, expected.deep, "{}", golden.name());
    }
}
