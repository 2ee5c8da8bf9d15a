//! WAV files with unusual headers against libsndfile: `testdata/sound/headers`.

use lm_media::{Audio, AudioLimits, Error, audio_length};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    /// Bytes in digits of base 16.
    file: String,
    samples: Vec<i16>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../../testdata/sound/headers/golden.json")).expect("golden.json")
}

fn from_digits(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn wav_samples_equal_libsndfile() {
    for Case { name, file, samples } in cases() {
        let (bytes, limits) = (from_digits(&file), AudioLimits::default());
        let found = Audio::decode(&bytes, &limits);
        if samples.is_empty() {
            assert!(matches!(found, Err(Error::Invalid { .. })), "{name}: {found:?}");
            continue;
        }
        let expected: Vec<f32> = samples.iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
        assert_eq!(found.expect(&name).samples(), expected, "{name}");
        assert_eq!(audio_length(&bytes, &limits).expect(&name), Some(expected.len()), "{name}");
        println!("stage: headers of WAV | samples | 1 | 0");
    }
}

#[test]
fn truncated_rf64_file_is_an_error() {
    let case = cases().into_iter().find(|case| case.name == "RF64").expect("a case");
    let bytes = from_digits(&case.file);
    for end in (12..bytes.len()).step_by(3) {
        let found = Audio::decode(&bytes[..end], &AudioLimits::default());
        assert!(matches!(found, Err(Error::Invalid { .. })), "{end}: {found:?}");
    }
    // The long length of more than 600 seconds, and of more than 32 bits.
    for length in [1 << 30, u64::MAX] {
        let mut bytes = bytes.clone();
        bytes[28..36].copy_from_slice(&length.to_le_bytes());
        let found = Audio::decode(&bytes, &AudioLimits::default());
        assert!(matches!(found, Err(Error::TooLong { limit: 600 })), "{length}: {found:?}");
    }
}

/// A chunk of the largest length, at which its end passes 32 bits.
#[test]
fn chunks_longer_than_the_file_end_the_search() {
    let usual = from_digits(&cases()[0].file);
    for length in [u32::MAX, u32::MAX - 1, u32::MAX - 8, u32::MAX - 19] {
        let chunk = [&b"LIST"[..], &length.to_le_bytes()].concat();
        let bytes = [&usual[..12], &chunk, &usual[12..]].concat();
        let found = Audio::decode(&bytes, &AudioLimits::default());
        assert!(matches!(found, Err(Error::Invalid { .. })), "{length}: {found:?}");
    }
}

#[test]
fn odd_chunk_before_a_stream_is_padded() {
    let Case { file, samples, .. } = cases().swap_remove(0);
    let mut usual = from_digits(&file);
    usual[40..44].copy_from_slice(&0x7fff_f000_u32.to_le_bytes());
    let bytes = [&usual[..12], b"note\x03\0\0\0abc\0", &usual[12..]].concat();
    let found = Audio::decode(&bytes, &AudioLimits::default()).expect("an audio clip");
    let expected: Vec<f32> = samples.iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
    assert_eq!(found.samples(), expected);
}
