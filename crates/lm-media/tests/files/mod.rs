//! Files of `testdata`.

use std::path::Path;

/// One of each format, in `testdata/media`, and a GIF frame beyond its screen.
pub const IMAGES: [&str; 6] = [
    "rgb_37x53.png",
    "smooth_64x48.jpg",
    "lossless_23x19.webp",
    "animated_15x12.gif",
    "frame_beyond_9x8.gif",
    "rgb_18x14.bmp",
];

/// A file of `testdata/media`.
pub fn media(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/media");
    std::fs::read(folder.join(name)).expect(name)
}
