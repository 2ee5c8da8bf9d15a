//! Sizes and files at the edges of formats against Pillow: `testdata/media/pillow`.

use std::path::Path;

use lm_media::{Filter, Picture, PictureSize};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Golden {
    resized: Vec<Resized>,
}

#[derive(Deserialize)]
struct Resized {
    source: [usize; 2],
    filter: String,
    size: [usize; 2],
    sha256: String,
}

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/media/pillow");
    std::fs::read(folder.join(name)).expect(name)
}

fn golden() -> Golden {
    serde_json::from_slice(&file("golden.json")).expect("golden.json")
}

fn digest(picture: &Picture) -> String {
    Sha256::digest(picture.rgb()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn size([width, height]: [usize; 2]) -> PictureSize {
    PictureSize::new(width, height)
}

/// The pattern of the generator.
fn pattern(size: PictureSize) -> Picture {
    let pixel = |x, y| [0, 1, 2].map(|c| (x * 37 + y * y * 11 + x * y * 7 + c * 59) as u8);
    let rgb = (0..size.height).flat_map(|y| (0..size.width).flat_map(move |x| pixel(x, y))).collect();
    Picture::from_rgb(size, rgb).expect("pixels")
}

#[test]
fn high_pictures_are_resized_to_the_bytes_of_pillow() {
    let cases = golden().resized;
    assert!(cases.len() > 50);
    for case in cases {
        let filter = match &*case.filter {
            "bilinear" => Filter::Bilinear,
            "bicubic" => Filter::Bicubic,
            "lanczos" => Filter::Lanczos,
            other => panic!("{other}"),
        };
        let resized = pattern(size(case.source)).resized(size(case.size), filter);
        assert_eq!(digest(&resized), case.sha256, "{} {:?} {:?}", case.filter, case.source, case.size);
        println!("stage: {} | resized bytes | 1 | 0", case.filter);
    }
}
