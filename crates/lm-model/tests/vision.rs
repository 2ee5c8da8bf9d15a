//! Pictures in prompts of the tiny vision checkpoints: ids, rows, logits and greedy tokens against transformers.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lm_media::{Picture, PictureSize};
use lm_model::{
    ALL_VISION_FAMILIES, AttentionKind, AttentionSpan, Device, EncodedMedia, Error, FileBytes, KvPool,
    LoadOptions, LoadPhase, LoadedModel, LogitRows, MediaLayout, MediaPiece, MediaPositions, MediaRows,
    MediaSlice, ModelFolder, PAGE_LEN, PictureOptions, Position, SequenceInput, TokenId, VisionEncoder,
    WeightFormat,
};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::Deserialize;
use serde_json::{Value, json};

use common::{for_each_device, forward, load};

/// Results of the reference for one folder of `testdata/vision`.
struct Golden {
    path: PathBuf,
    json: GoldenJson,
    tensors: HashMap<String, Vec<f32>>,
    pictures: Vec<Picture>,
}

#[derive(Deserialize)]
struct GoldenJson {
    /// Relative to the largest value of a tensor.
    tolerance: f32,
    /// With a placeholder for each picture.
    prompt: String,
    ids: Vec<TokenId>,
    greedy: Vec<TokenId>,
    /// M-RoPE positions of the ids: three lists.
    positions: Option<Vec<Vec<u32>>>,
}

impl Golden {
    fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vision").join(name);
        let json = serde_json::from_slice(&std::fs::read(path.join("golden.json")).unwrap()).unwrap();
        let bytes = std::fs::read(path.join("golden.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (mut tensors, mut pictures) = (HashMap::new(), Vec::new());
        for (name, view) in file.iter() {
            if !name.ends_with(".rgb") {
                let floats = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
                tensors.insert(name.to_owned(), floats.collect());
            }
        }
        while let Ok(rgb) = file.tensor(&format!("pictures.{}.rgb", pictures.len())) {
            let size = PictureSize::new(rgb.shape()[1], rgb.shape()[0]);
            pictures.push(Picture::from_rgb(size, rgb.data().to_vec()).unwrap());
        }
        Self { path, json, tensors, pictures }
    }

    fn all() -> impl Iterator<Item = Self> {
        ALL_VISION_FAMILIES.iter().flat_map(|family| family.goldens).map(|name| Self::read(name))
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// Asserts that values are those of a tensor, within the tolerance; prints the largest relative difference.
    fn assert_close(&self, tensor: &str, values: &[f32]) {
        let expected = &self.tensors[tensor];
        assert_eq!(values.len(), expected.len(), "{} {tensor}", self.name());
        let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let differences = values.iter().zip(expected).map(|(a, b)| (a - b).abs());
        let difference = differences.fold(0.0, |most: f32, d| if d <= most { most } else { d }) / largest;
        println!("{} {tensor}: {difference:.1e}", self.name());
        assert!(difference <= self.json.tolerance, "{} {tensor} is off by {difference:e}", self.name());
    }
}

/// Adjacent rows of a picture: rows of the prompt, the picture, its rows, and their attention.
type Run = (Range<usize>, Arc<EncodedMedia>, Range<usize>, AttentionKind);

/// A prompt with its pictures, as a model takes it.
struct Prompt {
    ids: Vec<TokenId>,
    positions: Vec<Position>,
    /// Position of the next token.
    next: u32,
    runs: Vec<Run>,
}

impl Prompt {
    fn new(golden: &Golden, model: &LoadedModel) -> Self {
        let vision = model.vision.as_deref().unwrap();
        let options = PictureOptions::default();
        let layouts: Vec<_> =
            golden.pictures.iter().map(|picture| vision.layout(picture.size(), &options).unwrap()).collect();
        let text = expanded(&golden.json.prompt, vision, &layouts);
        let ids = model.tokenizer.encode(&text).unwrap();
        let mut prompt = Self { ids, positions: Vec::new(), next: 0, runs: Vec::new() };
        let token = model.tokenizer.token_id(vision.token()).unwrap();
        for (picture, layout) in golden.pictures.iter().zip(&layouts) {
            let media = Arc::new(vision.encode(picture, &options).unwrap());
            assert_eq!(media.rows.rows(), layout.rows(), "{}", golden.name());
            let mut row = 0;
            for rows in layout.pieces.iter().filter_map(|piece| match piece {
                MediaPiece::Rows(rows) => Some(rows),
                MediaPiece::Text(_) => None,
            }) {
                prompt.put(&media, row, rows, token);
                row += rows.count;
            }
        }
        while prompt.positions.len() < prompt.ids.len() {
            prompt.put_text();
        }
        prompt
    }

    /// Gives the next `rows.count` ids `token` to rows of a picture from `row` on.
    fn put(&mut self, media: &Arc<EncodedMedia>, row: usize, rows: &MediaRows, token: TokenId) {
        while self.ids[self.positions.len()] != token {
            self.put_text();
        }
        let first = self.positions.len();
        let of_call = first..first + rows.count;
        assert!(self.ids[of_call.clone()].iter().all(|&id| id == token));
        let p = self.next;
        match rows.positions {
            MediaPositions::Sequential => {
                self.positions.extend((0..rows.count as u32).map(|i| Position::from(p + i)));
                self.next += rows.count as u32;
            }
            MediaPositions::Grid { rows: height, columns } => {
                let grid = (0..height as u32).flat_map(|y| (0..columns as u32).map(move |x| (y, x)));
                let at = |(y, x)| Position { temporal: p, height: p + y, width: p + x };
                self.positions.extend(grid.map(at));
                self.next += height.max(columns) as u32;
            }
        }
        self.runs.push((of_call, media.clone(), row..row + rows.count, rows.attention));
    }

    fn put_text(&mut self) {
        self.positions.push(self.next.into());
        self.next += 1;
    }

    /// The rows `part` as input for a call, over pages `0..`.
    fn input(&self, part: Range<usize>) -> SequenceInput {
        let pages: Vec<u32> = (0..part.end.div_ceil(PAGE_LEN) as u32).collect();
        let mut input = SequenceInput::ids(&self.ids[part.clone()], part.start, pages);
        input.positions = self.positions[part.clone()].to_vec();
        input.final_len = self.ids.len();
        for (rows, media, range, kind) in &self.runs {
            if rows.start >= part.start && rows.end <= part.end {
                let row = rows.start - part.start;
                let (media, range) = (media.clone(), range.clone());
                input.spans.push(AttentionSpan { rows: row..row + range.len(), kind: *kind });
                input.media.push(MediaSlice { row, media, range });
            }
        }
        input.logits = LogitRows::All;
        input
    }
}

/// The prompt with the texts and tokens of each picture in place of its placeholder.
fn expanded(prompt: &str, vision: &dyn VisionEncoder, layouts: &[MediaLayout]) -> String {
    let mut texts = prompt.split(vision.placeholder());
    let mut all = texts.next().unwrap().to_owned();
    for (text, layout) in texts.zip(layouts) {
        for piece in &layout.pieces {
            match piece {
                MediaPiece::Text(text) => all.push_str(text),
                MediaPiece::Rows(rows) => all.push_str(&vision.token().repeat(rows.count)),
            }
        }
        all.push_str(text);
    }
    all
}

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

/// A folder's files in memory, with a value in a JSON file replaced.
fn with_setting(folder: &str, file: &str, pointer: &str, value: Value) -> ModelFolder {
    let path = Golden::read(folder).path;
    let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
    let read =
        files.filter(|entry| !entry.file_name().to_string_lossy().starts_with("golden")).map(|entry| {
            let (name, mut bytes) =
                (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap());
            if name == file {
                let mut json: Value = serde_json::from_slice(&bytes).unwrap();
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                json.pointer_mut(parent).unwrap()[key] = value.clone();
                bytes = json.to_string().into_bytes();
            }
            (name, FileBytes::Owned(bytes.into()))
        });
    ModelFolder::in_memory(folder, read.collect()).unwrap()
}

fn loaded(folder: &ModelFolder) -> Result<LoadedModel, Error> {
    folder.load(&LoadOptions::default(), &mut |_| {})
}

#[test]
fn settings_that_make_no_tower_are_errors() {
    let cases = [
        ("gemma3-tiny", "config.json", "/vision_config/patch_size", json!(0), "1 to 256"),
        ("gemma3-tiny", "config.json", "/vision_config/hidden_size", json!(1_u64 << 40), "1 to 131072"),
        ("gemma3-tiny", "config.json", "/vision_config/num_hidden_layers", json!(1 << 30), "1 to 1024"),
        (
            "gemma3-tiny",
            "config.json",
            "/vision_config/num_hidden_layers",
            json!(3),
            "no tensor vision_tower",
        ),
        ("gemma3-tiny", "config.json", "/vision_config/num_attention_heads", json!(5), "a divisor of"),
        (
            "gemma3-tiny",
            "config.json",
            "/vision_config/image_size",
            json!(43),
            "a multiple of patch_size = 7",
        ),
        ("gemma3-tiny", "config.json", "/vision_config/image_size", json!(1 << 20), "1 to 4096"),
        (
            "gemma3-tiny",
            "config.json",
            "/vision_config/intermediate_size",
            json!(41),
            "[40, 24], expected [41, 24]",
        ),
        ("gemma3-tiny", "config.json", "/vision_config/layer_norm_eps", json!(-1.0), "between 0 and 1"),
        ("gemma3-tiny", "config.json", "/vision_config/hidden_act", json!("swishy"), "gelu_pytorch_tanh"),
        ("gemma3-tiny", "config.json", "/vision_config/num_channels", json!(1), "supported: 3"),
        ("gemma3-tiny", "config.json", "/vision_config", json!(3), "an object"),
        ("gemma3-tiny", "config.json", "/mm_tokens_per_image", json!(5), "the square of a divisor of 6"),
        ("gemma3-tiny", "config.json", "/mm_tokens_per_image", json!(0), "the square of a divisor of 6"),
        ("gemma3-tiny", "preprocessor_config.json", "/do_pan_and_scan", json!(true), "supported: false"),
        (
            "gemma3-tiny",
            "preprocessor_config.json",
            "/size",
            json!({"height": 9, "width": 9}),
            "\"height\":42",
        ),
        ("gemma3-tiny", "preprocessor_config.json", "/resample", json!(3), "`resample` is 3, supported: 2"),
        ("gemma4-tiny", "config.json", "/vision_config/head_dim", json!(6), "a multiple of 4"),
        ("gemma4-tiny", "config.json", "/vision_config/num_key_value_heads", json!(3), "a divisor of"),
        ("gemma4-tiny", "config.json", "/vision_config/rope_parameters/rope_type", json!("default"), "axial"),
        ("gemma4-tiny", "config.json", "/vision_config/rope_parameters/rope_theta", json!(0.0), "from 1 on"),
        (
            "gemma4-tiny",
            "config.json",
            "/vision_config/position_embedding_size",
            json!(79),
            "expected [158, 24]",
        ),
        (
            "gemma4-tiny",
            "processor_config.json",
            "/image_processor/max_soft_tokens",
            json!(71),
            "one of [70,",
        ),
        ("smolvlm-tiny", "config.json", "/scale_factor", json!(0), "1 to 64"),
        ("smolvlm-tiny", "preprocessor_config.json", "/rescale_factor", json!(0.5), "supported: 0.0039"),
        ("smolvlm-tiny", "preprocessor_config.json", "/image_mean", json!([0.5]), "preprocessor_config.json"),
        ("smolvlm-tiny", "config.json", "/vision_config/image_size", json!(3), "at least patch_size = 4"),
        ("qwen2-vl-tiny", "config.json", "/vision_config/num_heads", json!(5), "a divisor of a fourth"),
        ("qwen2-vl-tiny", "config.json", "/vision_config/depth", json!(0), "1 to 1024"),
        ("qwen2-vl-tiny", "config.json", "/vision_config/mlp_ratio", json!(1e300), "1 to 131072"),
        ("qwen2-vl-tiny", "config.json", "/rope_scaling/mrope_section", json!([1, 1, 1]), "add up to 4"),
        ("qwen2_5-vl-tiny", "config.json", "/vision_config/window_size", json!(7), "a token of 8 pixels"),
        ("qwen2_5-vl-tiny", "config.json", "/vision_config/out_hidden_size", json!(31), "hidden_size = 32"),
        ("qwen2_5-vl-tiny", "config.json", "/vision_config/in_channels", json!(1), "supported: 3"),
        ("qwen3-vl-tiny", "config.json", "/vision_config/num_position_embeddings", json!(0), "1 to 1024"),
        (
            "qwen3-vl-tiny",
            "config.json",
            "/vision_config/num_position_embeddings",
            json!(49),
            "expected [49, 16]",
        ),
        (
            "qwen3-vl-tiny",
            "config.json",
            "/vision_config/deepstack_visual_indexes",
            json!([0, 3]),
            "less than depth = 3",
        ),
        ("qwen3-vl-tiny", "config.json", "/vision_config/spatial_merge_size", json!(0), "1 to 16"),
        ("qwen3-vl-tiny", "preprocessor_config.json", "/patch_size", json!(5), "supported: 4"),
        ("qwen3-vl-tiny", "preprocessor_config.json", "/resample", json!(2), "supported: 3"),
        ("lfm2-vl-tiny", "config.json", "/vision_config/num_patches", json!(24), "a square"),
        ("lfm2-vl-tiny", "config.json", "/downsample_factor", json!(0), "1 to 64"),
        (
            "lfm2-vl-tiny",
            "processor_config.json",
            "/image_processor/encoder_patch_size",
            json!(5),
            "supported: 4",
        ),
    ];
    for (folder, file, pointer, value, expected) in cases {
        let error = loaded(&with_setting(folder, file, pointer, value.clone())).err();
        let error = error.unwrap_or_else(|| panic!("{folder} {pointer}: {value} loads"));
        assert!(error.to_string().contains(expected), "{folder} {pointer}: {value}: {error}");
    }
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
fn a_clipped_projection_with_an_empty_range_is_an_error() {
    let path = Golden::read("gemma4-tiny-bf16").path;
    let name = "model.vision_tower.encoder.layers.0.mlp.up_proj.output_max";
    let mut files: Vec<(String, FileBytes)> = ["config.json", "processor_config.json", "tokenizer.json"]
        .map(|file| (file.to_owned(), FileBytes::Owned(std::fs::read(path.join(file)).unwrap().into())))
        .into();
    let stored = std::fs::read(path.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&stored).unwrap();
    for value in [f32::NAN, -100.0] {
        let bytes = half::bf16::from_f32(value).to_le_bytes();
        let changed = TensorView::new(Dtype::BF16, Vec::new(), &bytes).unwrap();
        let views = tensors
            .iter()
            .map(|(tensor, view)| (tensor, if tensor == name { changed.clone() } else { view }));
        let weights = safetensors::serialize(views, None).unwrap();
        files.retain(|(file, _)| file != "model.safetensors");
        files.push(("model.safetensors".to_owned(), FileBytes::Owned(weights.into())));
        let error = loaded(&ModelFolder::in_memory("clipped", files.clone()).unwrap()).err().unwrap();
        assert!(matches!(&error, Error::TensorValue { tensor, .. } if tensor == name), "{error}");
    }
}

/// Settings of the preprocessing are checked when a picture comes.
#[test]
fn preprocessing_that_cannot_be_is_an_error_of_the_picture() {
    let longest = "/max_image_size/longest_edge";
    for value in [0, 5, 1_usize << 40] {
        let folder = with_setting("smolvlm-tiny", "preprocessor_config.json", longest, json!(value));
        let vision = loaded(&folder).unwrap().vision.unwrap();
        let size = PictureSize::new(30, 20);
        assert!(matches!(vision.layout(size, &PictureOptions::default()), Err(Error::Media(_))), "{value}");
        let picture = Picture::from_rgb(size, vec![7; 30 * 20 * 3]).unwrap();
        assert!(
            matches!(vision.encode(&picture, &PictureOptions::default()), Err(Error::Media(_))),
            "{value}"
        );
    }
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

#[test]
fn a_vision_part_of_an_unknown_family_or_without_tensors_leaves_a_text_model() {
    let unknown = with_setting("smolvlm-tiny", "config.json", "/model_type", json!("seeing"));
    assert!(loaded(&unknown).unwrap().vision.is_none());
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/gemma3-tiny-vision");
    assert!(loaded(&ModelFolder::open(tiny).unwrap()).unwrap().vision.is_none());
}

#[test]
fn a_quantised_decoder_keeps_the_tower_in_floats_and_the_footprint_counts_it() {
    for golden in Golden::all() {
        let folder = ModelFolder::open(&golden.path).unwrap();
        let footprint = folder.footprint().unwrap();
        let rows = |format| {
            let options = LoadOptions { quantization: format, ..LoadOptions::default() };
            let loaded = folder.load(&options, &mut |_| {}).unwrap();
            let (said, is) = (footprint.weight_bytes(format), loaded.model.info().weight_bytes);
            assert!(said.abs_diff(is) <= is / 50, "{} {format:?}: {said}, it is {is}", golden.name());
            let encoder = loaded.vision.unwrap();
            encoder.encode(&golden.pictures[0], &PictureOptions::default()).unwrap().rows
        };
        assert_eq!(rows(None), rows(Some(WeightFormat::Q8)), "{}", golden.name());
    }
}

#[test]
fn the_pack_cache_of_a_vision_model_keeps_its_tower() {
    let cache = tempfile::tempdir().unwrap();
    let options = LoadOptions {
        quantization: Some(WeightFormat::Q8),
        pack_cache: Some(cache.path().to_owned()),
        ..LoadOptions::default()
    };
    for _ in 0..2 {
        let folder = ModelFolder::open(Golden::read("smolvlm-tiny").path).unwrap();
        assert!(folder.load(&options, &mut |_| {}).unwrap().vision.is_some());
    }
}

#[test]
fn progress_counts_the_tower() {
    let folder = ModelFolder::open(Golden::read("gemma3-tiny").path).unwrap();
    let mut reports = Vec::new();
    folder.load(&LoadOptions::default(), &mut |report| reports.push(report)).unwrap();
    let weights: Vec<_> = reports.iter().filter(|report| report.phase == LoadPhase::Weights).collect();
    assert!(weights.is_sorted_by_key(|report| report.done_bytes));
    assert!(weights.iter().all(|report| report.total_bytes == weights[0].total_bytes));
    let last = weights.last().unwrap();
    assert_eq!(last.done_bytes, last.total_bytes);
}
