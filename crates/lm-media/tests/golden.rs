//! Decoding, resizing, patches and sizes against Pillow and transformers: `testdata/media`.

use std::path::Path;

use lm_media::families::{Gemma3, Gemma4, Lfm2Vl, QwenVl, SmolVlm};
use lm_media::{DecodeLimits, Filter, Image, ImageSize, Normalization, Patches, TileGrid, image_size};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Golden {
    decoded: Vec<Decoded>,
    resized: Vec<Resized>,
    families: Vec<FamilyCase>,
    /// An image's size, and the results of [`size_functions`] for it.
    sizes: Vec<[Option<[usize; 2]>; 5]>,
    /// For each of `sizes`, the results of SmolVLM's published and other settings, and of LFM2-VL's.
    grids: Vec<(SmolGrid, SmolGrid, LfmGrid, LfmGrid)>,
}

/// Rows, columns, tokens.
type SmolGrid = [usize; 3];
/// Rows, columns, width and height of the image as a whole, tokens.
type LfmGrid = [usize; 5];

#[derive(Deserialize)]
struct Decoded {
    #[serde(rename = "picture")]
    image: String,
    size: [usize; 2],
    sha256: String,
    /// Some bytes of a JPEG file, whose decoders may differ a little.
    bytes: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct Resized {
    filter: String,
    size: [usize; 2],
    sha256: String,
}

#[derive(Deserialize)]
struct FamilyCase {
    family: String,
    #[serde(rename = "picture")]
    image: String,
    /// Patches, and numbers of each.
    shape: [usize; 2],
    at: Vec<usize>,
    values: Vec<f32>,
}

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/media");
    std::fs::read(folder.join(name)).expect(name)
}

fn golden() -> Golden {
    serde_json::from_slice(&file("golden.json")).expect("golden.json")
}

fn image(name: &str) -> Image {
    Image::decode(&file(name), &DecodeLimits::default()).expect(name)
}

fn digest(image: &Image) -> String {
    Sha256::digest(image.rgb()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn size([width, height]: [usize; 2]) -> ImageSize {
    ImageSize::new(width, height)
}

#[test]
fn decoded_pixels_equal_pillow() {
    let decoded = golden().decoded;
    assert!(decoded.len() > 20);
    for case in decoded {
        let found = image(&case.image);
        assert_eq!(found.size(), size(case.size), "{}", case.image);
        let header = image_size(&file(&case.image), &DecodeLimits::default());
        assert_eq!(header.expect("a header"), found.size(), "{}", case.image);
        match case.bytes {
            None => {
                assert_eq!(digest(&found), case.sha256, "{}", case.image);
                println!("stage: files without loss | decoded bytes | 1 | 0");
            }
            Some(bytes) => {
                let width = found.size().width;
                let pixels = (0..found.size().height)
                    .step_by(7)
                    .flat_map(|y| (0..width).step_by(7).map(move |x| y * width + x));
                let own: Vec<u8> = pixels.flat_map(|pixel| found.rgb()[pixel * 3..][..3].to_vec()).collect();
                let largest = own.iter().zip(&bytes).map(|(own, other)| own.abs_diff(*other)).max();
                assert_eq!(own.len(), bytes.len());
                assert!(largest <= Some(2), "{}: {largest:?}", case.image);
                println!("stage: JPEG files | decoded bytes | 1 | {}", largest.unwrap_or_default());
            }
        }
    }
}

#[test]
fn resize_filters_equal_pillow() {
    let image = image("rgb_37x53.png");
    for case in golden().resized {
        let filter = match &*case.filter {
            "bilinear" => Filter::Bilinear,
            "bicubic" => Filter::Bicubic,
            "lanczos" => Filter::Lanczos,
            other => panic!("{other}"),
        };
        let resized = image.resized(size(case.size), filter);
        assert_eq!(digest(&resized), case.sha256, "{} {:?}", case.filter, case.size);
        println!("stage: {} | resized bytes | 1 | 0", case.filter);
    }
}

fn qwen3() -> QwenVl {
    let (min_pixels, max_pixels) = (65_536, 16_777_216);
    QwenVl { patch: 16, min_pixels, max_pixels, normalization: Normalization::HALF, ..QwenVl::default() }
}

/// Settings unlike the published ones: four of the 60 pixels of a tile remain unused.
fn small_smol() -> SmolVlm {
    SmolVlm { longest_edge: 200, tile: 60, patch: 14, scale: 2, ..SmolVlm::default() }
}

fn small_lfm() -> Lfm2Vl {
    let (image_tokens, tiles) = (3..=7, 2..=6);
    Lfm2Vl { patch: 4, downsample: 3, image_tokens, tile: 24, tiles, tolerance: 1.5, ..Lfm2Vl::default() }
}

/// The patches of each view of an image.
fn patches(family: &str, image: &Image) -> Vec<Patches> {
    let found = match family {
        "qwen2_vl" => QwenVl::default().patches(image).map(|one| vec![one]),
        "qwen3_vl" => qwen3().patches(image).map(|one| vec![one]),
        "gemma4_70" => Gemma4 { budget: 70, ..Gemma4::default() }.patches(image).map(|one| vec![one]),
        "gemma3_224" => Gemma3 { side: 224, ..Gemma3::default() }.patches(image).map(|one| vec![one]),
        "smol_tiles" => small_smol().patches(image),
        "smol_whole" => SmolVlm { splitting: false, ..small_smol() }.patches(image),
        "lfm_tiles" => small_lfm().patches(image),
        other => panic!("{other}"),
    };
    found.expect("patches")
}

/// Maximum difference of values: a byte of torchvision's bilinear filter may be one more or less than
/// Pillow's.
fn tolerance(family: &str) -> f32 {
    if family == "lfm_tiles" { 1.0 / 127.5 + 1e-6 } else { 1e-6 }
}

#[test]
fn patches_equal_transformers() {
    for case in golden().families {
        let found = patches(&case.family, &image(&case.image));
        let name = format!("{} {}", case.family, case.image);
        assert_eq!(found.iter().map(|view| view.rows * view.columns).sum::<usize>(), case.shape[0], "{name}");
        let values: Vec<f32> = found.into_iter().flat_map(|view| view.values).collect();
        assert_eq!(values.len(), case.shape[0] * case.shape[1], "{name}");
        let mut largest = 0.0_f32;
        for (at, expected) in case.at.iter().zip(&case.values) {
            let difference = (values[*at] - expected).abs();
            assert!(difference <= tolerance(&case.family), "{name} at {at}: {} {expected}", values[*at]);
            largest = largest.max(difference);
        }
        println!("stage: {} | patches | 1 | {largest:e}", case.family);
    }
}

#[test]
fn grids_and_tokens_equal_transformers() {
    let Golden { sizes, grids, .. } = golden();
    assert_eq!(grids.len(), sizes.len());
    let cases = 2 * sizes.len();
    for ([original, ..], (smol, other_smol, lfm, other_lfm)) in sizes.into_iter().zip(grids) {
        let original = size(original.expect("a size"));
        for (settings, [rows, columns, tokens]) in [(SmolVlm::default(), smol), (small_smol(), other_smol)] {
            let grid = settings.grid(original).expect("a grid");
            assert_eq!([grid.rows, grid.columns], [rows, columns], "{original}");
            assert_eq!(settings.tokens(original).expect("tokens"), tokens, "{original}");
        }
        for (settings, [rows, columns, width, height, tokens]) in
            [(Lfm2Vl::default(), lfm), (small_lfm(), other_lfm)]
        {
            let grid = settings.grid(original).expect("a grid");
            let single = if (rows, columns) == (1, 1) { [0; 2] } else { [rows, columns] };
            assert_eq!([grid.rows, grid.columns], single, "{original}");
            assert_eq!(grid.overview, Some(size([width, height])), "{original}");
            assert_eq!(settings.tokens(original).expect("tokens"), tokens, "{original}");
        }
    }
    ["smol", "lfm"].iter().for_each(|family| println!("stage: {family} | grids and tokens | {cases} | 0"));
}

#[test]
fn view_sizes_and_tokens_match_their_grid() {
    let image = image("rgb_37x53.png");
    let lfm = small_lfm();
    let grid = lfm.grid(image.size()).expect("a grid");
    assert!(grid.rows * grid.columns > 1);
    let views = lfm.patches(&image).expect("patches");
    let sizes = views.iter().map(|view| ImageSize::new(view.columns * lfm.patch, view.rows * lfm.patch));
    assert!(grid.views().eq(sizes));
    let without = Lfm2Vl { thumbnail: false, ..lfm.clone() };
    assert_eq!(without.patches(&image).expect("patches"), views[..grid.rows * grid.columns]);
    // One tile is a view of the image as large as a tile.
    let one = Lfm2Vl { tiles: 1..=4, ..lfm };
    let large = ImageSize::new(4000, 4001);
    assert!(matches!(one.grid(large), Ok(TileGrid { rows: 2, columns: 2, .. })));
    // The image fills half of nine tiles, and not more.
    let half = Lfm2Vl::default().grid(ImageSize::new(1024, 1152));
    assert!(matches!(half, Ok(TileGrid { rows: 2, columns: 2, .. })), "{half:?}");
    let least = ImageSize::new(32, 31);
    assert_eq!(one.grid(least).expect("a grid"), TileGrid::single(ImageSize::new(24, 24)));
}

#[test]
fn family_size_limits() {
    let thin = |width| QwenVl::default().resized_size(ImageSize::new(width, 1));
    assert_eq!(thin(200).expect("200 times the other side"), ImageSize::new(812, 28));
    assert!(thin(201).is_err());
    // Sides above 4,096 pixels are shortened for any configuration.
    let long = SmolVlm { longest_edge: 8192, ..SmolVlm::default() };
    let grid = long.grid(ImageSize::new(1000, 500)).expect("a grid");
    assert_eq!((grid.rows, grid.columns), (4, 8));
}

#[test]
fn sizes_and_errors_equal_transformers() {
    let sizes = golden().sizes;
    assert_eq!(sizes.len(), 2000);
    for [original, qwen2_size, qwen3_size, gemma_280, gemma_70] in sizes {
        let original = size(original.expect("a size"));
        let found = [QwenVl::default().resized_size(original), qwen3().resized_size(original)]
            .into_iter()
            .chain([280, 70].map(|budget| Gemma4 { budget, ..Gemma4::default() }.resized_size(original)));
        for (found, expected) in found.zip([qwen2_size, qwen3_size, gemma_280, gemma_70]) {
            assert_eq!(found.ok(), expected.map(size), "{original}");
        }
    }
    ["gemma4", "qwen"].iter().for_each(|family| println!("stage: {family} | sizes | 4000 | 0"));
}
