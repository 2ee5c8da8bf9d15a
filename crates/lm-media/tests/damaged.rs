//! Damaged files are an image, an audio clip or an error, and no code of this crate panics.

mod files;

use std::panic;
use std::path::MAIN_SEPARATOR_STR;
use std::sync::{LazyLock, Mutex, Once, PoisonError};

use files::{IMAGES, media};
use lm_media::{Audio, AudioLimits, DecodeLimits, Image, audio_length, image_size};
use proptest::prelude::*;
use proptest::sample::Index;

const AUDIO: [&str; 8] = [
    "pcm16_16k.wav",
    "stereo_44k.wav",
    "ulaw_8k.wav",
    "stereo_48k.flac",
    "mono_16k.flac",
    "stereo_44k.ogg",
    "stereo_44k.mp3",
    "mono_16k.mp3",
];

/// Small files at the edges of formats, and larger ones with pixels.
static IMAGE_FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let golden: serde_json::Value = serde_json::from_slice(&media("pillow/golden.json")).expect("JSON");
    let from_digits = |digits: &str| -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    };
    let edges = golden["decoded"].as_array().expect("files").iter();
    let edges = edges.map(|case| from_digits(case["file"].as_str().expect("digits")));
    edges.chain(IMAGES.iter().map(|name| media(name))).collect()
});

static AUDIO_FILES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| AUDIO.iter().map(|name| media(&format!("../sound/{name}"))).collect());

/// Changes bytes of a file and, in half of the cases, truncates it.
fn damaged(file: &[u8], edits: &[(Index, u8)], cut: Index) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for (at, byte) in edits {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    bytes.truncate(bytes.len().min(cut.index(2 * bytes.len())));
    bytes
}

static OWN_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs a case and returns a panic of this crate's own code, which decoding reports as an error of the file,
/// like panics of libraries.
fn own_panic(case: impl FnOnce()) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let place =
                info.location().map(|at| at.file().replace(MAIN_SEPARATOR_STR, "/")).unwrap_or_default();
            if place.contains("lm-media/src/") {
                *OWN_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.to_string());
            } else if place.contains("lm-media/tests/") {
                before(info);
            }
        }));
    });
    case();
    OWN_PANIC.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A file of a list, with up to seven damaged bytes, truncated.
fn damaged_files(files: &'static LazyLock<Vec<Vec<u8>>>) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<Index>(), any::<u8>()), 1..8);
    (any::<Index>(), edits, any::<Index>())
        .prop_map(move |(file, edits, cut)| damaged(&files[file.index(files.len())], &edits, cut))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The size in a header is that of the image.
    #[test]
    fn images(bytes in damaged_files(&IMAGE_FILES)) {
        let limits = DecodeLimits { max_pixels: 1_000_000, ..DecodeLimits::default() };
        let panic = own_panic(|| {
            if let (Ok(size), Ok(image)) = (image_size(&bytes, &limits), Image::decode(&bytes, &limits)) {
                assert_eq!(size, image.size());
            }
        });
        prop_assert_eq!(panic, None);
    }

    /// The length in a header is that of the audio.
    #[test]
    fn audios(bytes in damaged_files(&AUDIO_FILES)) {
        let limits = AudioLimits { max_seconds: 20, ..AudioLimits::default() };
        let panic = own_panic(|| {
            if let (Ok(Some(length)), Ok(audio)) = (audio_length(&bytes, &limits), Audio::decode(&bytes, &limits)) {
                assert_eq!(length, audio.samples().len());
            }
        });
        prop_assert_eq!(panic, None);
    }
}
