//! Pictures in prompts of the tiny vision checkpoints: ids, rows, logits and greedy tokens against transformers.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../common/mod.rs"]
mod common;
mod golden;
mod prompt;
mod settings;

use std::sync::Arc;

use lm_model::{
    Device, EncodedMedia, Error, KvPool, LoadedModel, PAGE_LEN, PictureOptions, Position, SequenceInput,
    TokenId,
};

use common::{for_each_device, forward, load};
use golden::Golden;
use prompt::Prompt;

/// A cache for a prompt of a golden and its greedy tokens.
fn cache(golden: &Golden, model: &LoadedModel) -> KvPool {
    let len = golden.json.ids.len() + golden.json.greedy.len();
    model.model.new_cache(len.div_ceil(PAGE_LEN)).unwrap()
}

fn check(golden: &Golden, device: Device) {
    let loaded = load(&golden.path, device);
    let model = &*loaded.model;
    let prompt = Prompt::new(golden, &loaded);
    assert_eq!(prompt.ids, golden.json.ids, "{}", golden.name());
    if let Some(positions) = &golden.json.positions {
        let of = |axis: fn(&Position) -> u32| prompt.positions.iter().map(axis).collect::<Vec<_>>();
        assert_eq!(
            [of(|p| p.temporal), of(|p| p.height), of(|p| p.width)],
            positions[..],
            "{}",
            golden.name()
        );
    }
    let mut media: Vec<&Arc<EncodedMedia>> = prompt.runs.iter().map(|(_, media, ..)| media).collect();
    media.dedup_by(|a, b| Arc::ptr_eq(a, b));
    for (index, media) in media.iter().enumerate() {
        golden.assert_close(&format!("pictures.{index}.rows"), &media.rows.values);
        for (layer, deep) in media.deep.iter().enumerate() {
            golden.assert_close(&format!("pictures.{index}.deep.{layer}"), &deep.values);
        }
    }
    let mut pool = cache(golden, &loaded);
    let whole = forward(model, &mut pool, vec![prompt.input(0..prompt.ids.len())]).remove(0);
    golden.assert_close("logits", &whole.concat());
    let mut tokens = vec![best(whole.last().unwrap())];
    while tokens.len() < golden.json.greedy.len() {
        let cached = prompt.ids.len() + tokens.len() - 1;
        let pages: Vec<u32> = (0..(cached + 1).div_ceil(PAGE_LEN) as u32).collect();
        let mut input = SequenceInput::ids([*tokens.last().unwrap()], cached, pages);
        input.positions = vec![(prompt.next + tokens.len() as u32 - 1).into()];
        tokens.push(best(&forward(model, &mut pool, vec![input]).remove(0)[0]));
    }
    assert_eq!(tokens, golden.json.greedy, "{}", golden.name());
    check_in_pieces(golden, &loaded, &prompt, &whole);
}

/// A prompt cut before and after each run of rows has the logits of the whole.
fn check_in_pieces(golden: &Golden, loaded: &LoadedModel, prompt: &Prompt, whole: &[Vec<f32>]) {
    let mut pool = cache(golden, loaded);
    let borders = prompt.runs.iter().flat_map(|(rows, ..)| [rows.start, rows.end]);
    let (mut logits, mut first) = (Vec::new(), 0);
    for border in borders.chain([prompt.ids.len()]).filter(|&border| border > 0) {
        if border > first {
            logits.extend(forward(&*loaded.model, &mut pool, vec![prompt.input(first..border)]).remove(0));
            first = border;
        }
    }
    common::assert_same(&*loaded.model, &logits, whole, &golden.name());
}

fn best(logits: &[f32]) -> TokenId {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.unwrap().0 as TokenId
}

#[test]
fn prompts_with_pictures_equal_those_of_transformers() {
    for_each_device(|device| Golden::all().for_each(|golden| check(&golden, device)));
}

#[test]
fn a_budget_of_tokens_limits_the_rows_of_qwens_pictures() {
    let golden = Golden::read("qwen2_5-vl-tiny");
    let vision = load(&golden.path, Device::Cpu).vision.unwrap();
    let picture = &golden.pictures[0];
    let rows = |token_budget| {
        let options = PictureOptions { token_budget };
        let rows = vision.encode(picture, &options).unwrap().rows.rows();
        assert_eq!(rows, vision.layout(picture.size(), &options).unwrap().rows());
        rows
    };
    assert_eq!((rows(None), rows(Some(1000)), rows(Some(9))), (24, 24, 6));
    assert!(vision.layout(picture.size(), &PictureOptions { token_budget: Some(0) }).is_err());
}

#[test]
fn the_budget_of_gemma_4_is_a_choice() {
    let golden = Golden::read("gemma4-tiny");
    let vision = load(&golden.path, Device::Cpu).vision.unwrap();
    let rows = |budget| {
        let options = PictureOptions { token_budget: budget };
        let layout = vision.layout(golden.pictures[0].size(), &options)?;
        let media = vision.encode(&golden.pictures[0], &options)?;
        assert_eq!(media.rows.rows(), layout.rows());
        Ok::<_, Error>(layout.rows())
    };
    assert_eq!(rows(None).unwrap(), rows(Some(70)).unwrap());
    assert!((71..=140).contains(&rows(Some(140)).unwrap()));
    let error = rows(Some(71)).unwrap_err().to_string();
    assert!(error.contains("expected one of [70, 140, 280, 560, 1120]"), "{error}");
}
