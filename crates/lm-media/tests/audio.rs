//! Decoding, resampling and spectrograms against libsndfile, torchaudio and transformers: `testdata/sound`.

use std::path::Path;

use lm_media::families::{Gemma4Audio, GraniteSpeech, LongAudio, Whisper};
use lm_media::{Audio, AudioFrames, AudioLimits, Error, audio_length};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Golden {
    decoded: Vec<Decoded>,
    features: Vec<Features>,
    /// Samples, tokens of Gemma 4 and of Granite Speech.
    counts: Vec<[usize; 3]>,
}

#[derive(Deserialize)]
struct Decoded {
    file: String,
    rate: usize,
    samples: usize,
    sha256: String,
    #[serde(flatten)]
    picked: Picked,
}

#[derive(Deserialize)]
struct Features {
    family: String,
    /// Name and number of samples.
    #[serde(rename = "sound")]
    audio: (String, usize),
    /// Frames and numbers of each.
    shape: [usize; 2],
    #[serde(flatten)]
    picked: Picked,
}

#[derive(Deserialize)]
struct Picked {
    at: Vec<usize>,
    values: Vec<f32>,
}

impl Picked {
    fn largest_difference(&self, values: &[f32]) -> f32 {
        let pairs = self.at.iter().zip(&self.values);
        pairs.map(|(at, expected)| (values[*at] - expected).abs()).fold(0.0, f32::max)
    }
}

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sound");
    std::fs::read(folder.join(name)).expect(name)
}

fn golden() -> Golden {
    serde_json::from_slice(&file("golden.json")).expect("golden.json")
}

fn decode(bytes: &[u8]) -> Result<Audio, Error> {
    Audio::decode(bytes, &AudioLimits::default())
}

fn digest(audio: &Audio) -> String {
    let bytes: Vec<u8> = audio.samples().iter().flat_map(|sample| sample.to_le_bytes()).collect();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Maximum difference of a sample: zero for uncompressed samples that are not resampled.
fn tolerance(case: &Decoded) -> f32 {
    match case.file.rsplit('.').next() {
        Some("mp3" | "ogg") => 2e-6,
        _ if case.rate != 16_000 => 1e-7,
        _ => 0.0,
    }
}

#[test]
fn samples_equal_libsndfile_and_torchaudio() {
    let decoded = golden().decoded;
    assert!(decoded.len() > 20);
    for case in decoded {
        let name = &case.file;
        let audio = decode(&file(name)).expect(name);
        assert_eq!(audio.samples().len(), case.samples, "{name}");
        let (difference, tolerance) = (case.picked.largest_difference(audio.samples()), tolerance(&case));
        let kind = name.rsplit('.').next().unwrap_or_default();
        println!("stage: {kind} files at {} Hz | samples | 1 | {difference:e}", case.rate);
        assert!(difference <= tolerance, "{name}: {difference}");
        assert!(tolerance > 0.0 || digest(&audio) == case.sha256, "{name}");
        let length = audio_length(&file(name), &AudioLimits::default()).expect("a length");
        let exact = name.ends_with("wav") || name.ends_with("flac");
        assert_eq!(length, exact.then_some(case.samples), "{name}");
    }
}

/// The audio of a case: that of a file over and over, or silence.
fn audio((name, samples): &(String, usize)) -> Audio {
    let tone = decode(&file("pcm16_16k.wav")).expect("an audio clip");
    let values = match &**name {
        "tone" => tone.samples().iter().copied().cycle().take(*samples).collect(),
        _ => vec![0.0; *samples],
    };
    Audio::from_samples(values).expect("an audio clip")
}

fn joined(chunks: Vec<AudioFrames>) -> AudioFrames {
    let bins = chunks[0].bins;
    assert!(chunks.iter().all(|chunk| chunk.frames() == 3000 && chunk.bins == bins));
    AudioFrames { bins, values: chunks.into_iter().flat_map(|chunk| chunk.values).collect() }
}

fn features(family: &str, audio: &Audio) -> Result<AudioFrames, Error> {
    let other = Gemma4Audio {
        mels: 40,
        window: 512,
        hop: 200,
        frequencies: 125.0..7600.0,
        floor: 1e-2,
        ..Gemma4Audio::default()
    };
    match family {
        "gemma4" => Gemma4Audio::default().features(audio),
        "gemma4_other" => other.features(audio),
        "whisper_80" => Whisper::default().chunks(audio).map(joined),
        "whisper_128" => Whisper { mels: 128, ..Whisper::default() }.chunks(audio).map(joined),
        "voxtral" => Whisper { mels: 128, long: LongAudio::Chunks }.chunks(audio).map(joined),
        "granite" => GraniteSpeech::default().features(audio),
        other => panic!("{other}"),
    }
}

#[test]
fn spectrograms_equal_transformers() {
    let cases = golden().features;
    assert!(cases.len() > 20);
    for case in cases {
        let found = features(&case.family, &audio(&case.audio)).expect("features");
        let name = format!("{} {:?}", case.family, case.audio);
        assert_eq!([found.frames(), found.bins], case.shape, "{name}");
        let difference = case.picked.largest_difference(&found.values);
        println!("stage: {} | spectrogram | 1 | {difference:e}", case.family);
        assert!(difference <= 1e-5, "{name}: {difference}");
    }
}

#[test]
fn token_counts_equal_transformers() {
    let counts = golden().counts;
    assert!(counts.len() > 500);
    let gemma = Gemma4Audio::default();
    for [samples, gemma_tokens, granite_tokens] in counts {
        match gemma.tokens(samples) {
            Ok(tokens) => assert_eq!(tokens, gemma_tokens, "{samples}"),
            Err(Error::UnsuitableLength { .. }) => assert_eq!(gemma_tokens, 0, "{samples}"),
            Err(other) => panic!("{samples}: {other}"),
        }
        assert_eq!(GraniteSpeech::default().tokens(samples).expect("tokens"), granite_tokens, "{samples}");
        println!("stage: gemma4, granite | tokens | 2 | 0");
    }
}

#[test]
fn truncated_and_partial_files_are_errors() {
    for name in ["pcm16_16k.wav", "float_16k.wav", "mono_16k.flac", "stereo_48k.flac"] {
        let bytes = file(name);
        for length in [4, 20, bytes.len() / 2, bytes.len() - 3] {
            let found = decode(&bytes[..length]);
            assert!(matches!(found, Err(Error::Invalid { .. })), "{name} {length}: {found:?}");
        }
    }
    // A compressed stream may end anywhere; an MP3 file of half a frame has no audio.
    for name in ["mono_16k.mp3", "stereo_44k.ogg"] {
        let bytes = file(name);
        let whole = decode(&bytes).expect(name).samples().len();
        assert!(decode(&bytes[..40]).is_err(), "{name}");
        if let Ok(audio) = decode(&bytes[..bytes.len() * 3 / 4]) {
            assert!(audio.samples().len() < whole, "{name}");
        }
    }
}

#[test]
fn unknown_files_are_named_by_signature() {
    let error = decode(b"no audio").expect_err("no audio").to_string();
    assert!(
        error.starts_with("the bytes are not audio data: expected WAV, MP3, FLAC or Ogg Vorbis"),
        "{error}"
    );
    let opus = [&b"OggS\0\x02"[..], &[0; 20], b"\x01\x13OpusHead\x01"].concat();
    let error = decode(&opus).expect_err("no Vorbis").to_string();
    assert_eq!(error, "the bytes are an Opus file; expected WAV, MP3, FLAC or Ogg Vorbis");
    assert!(matches!(decode(b""), Err(Error::UnknownAudio { start }) if start.is_empty()));
    assert!(matches!(decode(b"ID3\x04\0\0\x7f\x7f\x7f\x7f"), Err(Error::UnknownAudio { .. })));
}

#[test]
fn tags_before_an_audio_clip_are_skipped() {
    let tagged = |name: &str| [b"ID3\x04\0\0\0\0\x01\x02".as_slice(), &[0; 130], &file(name)].concat();
    for name in ["mono_16k.mp3", "mono_16k.flac"] {
        assert_eq!(decode(&tagged(name)).expect(name), decode(&file(name)).expect(name));
    }
}

#[test]
fn tag_footer_is_skipped() {
    let tag = [b"ID3\x04\0\x10\0\0\x01\x02", &[0; 130][..], b"3DI\x04\0\x10\0\0\x01\x02"].concat();
    for name in ["mono_16k.mp3", "mono_16k.flac"] {
        let tagged = [&tag[..], &file(name)].concat();
        assert_eq!(decode(&tagged).expect(name), decode(&file(name)).expect(name));
    }
}

/// Layers I and II of MPEG start like MP3, which is layer III.
#[test]
fn other_mpeg_layers_are_named_by_signature() {
    let mut bytes = file("mono_16k.mp3");
    for layer in [0, 4, 6] {
        bytes[1] = bytes[1] & 0xf9 | layer;
        assert!(matches!(decode(&bytes), Err(Error::UnknownAudio { .. })), "{layer}: {:?}", decode(&bytes));
    }
}

/// A WAV file of this many samples.
fn wav(samples: u32) -> Vec<u8> {
    let mut bytes = file("pcm16_16k.wav");
    bytes.resize(44 + 2 * samples as usize, 0);
    bytes[4..8].copy_from_slice(&(36 + 2 * samples).to_le_bytes());
    bytes[40..44].copy_from_slice(&(2 * samples).to_le_bytes());
    bytes
}

#[test]
fn clip_of_exactly_the_limit_is_read() {
    let limits = AudioLimits { max_seconds: 1, ..AudioLimits::default() };
    assert_eq!(Audio::decode(&wav(16_000), &limits).expect("a second").samples().len(), 16_000);
    assert!(matches!(Audio::decode(&wav(16_001), &limits), Err(Error::TooLong { limit: 1 })));
}

#[test]
fn limit_applies_without_a_header_length() {
    let mut bytes = file("mono_16k.flac");
    // The number of samples in STREAMINFO, 36 bits: an encoder of a stream writes 0.
    bytes[21] &= 0xf0;
    bytes[22..26].fill(0);
    assert!(decode(&bytes).is_ok(), "{:?}", decode(&bytes));
    let limits = AudioLimits { max_seconds: 0, ..AudioLimits::default() };
    assert!(matches!(Audio::decode(&bytes, &limits), Err(Error::TooLong { limit: 0 })));
}

#[test]
fn family_length_limits() {
    let chunks = |samples| Whisper { long: LongAudio::Chunks, ..Whisper::default() }.chunk_count(samples);
    assert_eq!([0, 1, 480_000, 480_001, 960_000].map(chunks), [1, 1, 1, 2, 2]);
    let granite = |samples| {
        let audio = Audio::from_samples(vec![0.5; samples]).expect("an audio clip");
        GraniteSpeech::default().features(&audio)
    };
    assert!(matches!(granite(256), Err(Error::UnsuitableLength { samples: 256, .. })));
    assert_eq!(granite(257).expect("two frames").frames(), 1);
}

#[test]
fn long_and_large_files_are_rejected() {
    let bytes = file("pcm16_16k.wav");
    let limits = AudioLimits { max_bytes: bytes.len() - 1, ..AudioLimits::default() };
    assert!(matches!(Audio::decode(&bytes, &limits), Err(Error::TooManyBytes { .. })));
    for (name, data) in
        [("pcm16_16k.wav", 44), ("mono_16k.mp3", 0), ("mono_16k.flac", 0), ("stereo_44k.ogg", 0)]
    {
        let limits = AudioLimits { max_seconds: 0, ..AudioLimits::default() };
        assert!(matches!(Audio::decode(&file(name), &limits), Err(Error::TooLong { limit: 0 })), "{name}");
        // The header suffices if it has the length.
        if data > 0 {
            assert!(
                matches!(audio_length(&file(name)[..data], &limits), Err(Error::TooLong { .. })),
                "{name}"
            );
        }
    }
}

#[test]
fn endless_header_allocates_nothing() {
    let mut bytes = file("pcm16_16k.wav");
    bytes[4..8].copy_from_slice(&0xf000_0100_u32.to_le_bytes());
    bytes[40..44].copy_from_slice(&0xf000_0000_u32.to_le_bytes());
    assert!(matches!(decode(&bytes), Err(Error::TooLong { limit: 600 })), "{:?}", decode(&bytes));
}

/// Programs that write a stream cannot know its length.
#[test]
fn stream_ends_at_the_end_of_file() {
    let whole = file("pcm16_16k.wav");
    let mut bytes = whole.clone();
    bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    let limits = AudioLimits::default();
    assert_eq!(audio_length(&bytes, &limits).ok(), audio_length(&whole, &limits).ok());
    assert_eq!(decode(&bytes).ok(), decode(&whole).ok());
    // Without samples, or with a truncated header.
    for end in [44, 43, 40, 20, 13] {
        assert!(matches!(decode(&bytes[..end]), Err(Error::Invalid { .. })), "{end}");
    }
}

#[test]
fn rates_out_of_range_are_rejected() {
    for rate in [0, 1, 3_999, 192_001, u32::MAX] {
        let mut bytes = file("pcm16_16k.wav");
        bytes[24..28].copy_from_slice(&rate.to_le_bytes());
        assert!(matches!(decode(&bytes), Err(Error::Invalid { .. })), "{rate}");
    }
}

/// A number of channels at which the decoding library's arithmetic overflows.
#[test]
fn panics_of_the_decoder_are_errors() {
    let mut bytes = file("pcm16_16k.wav");
    bytes[22..24].copy_from_slice(&u16::MAX.to_le_bytes());
    assert!(matches!(decode(&bytes), Err(Error::Invalid { .. })));
    assert!(matches!(audio_length(&bytes, &AudioLimits::default()), Err(Error::Invalid { .. })));
}

#[test]
fn nan_samples_are_rejected() {
    for value in [f32::NAN, f32::INFINITY] {
        assert!(matches!(Audio::from_samples(vec![0.0, value]), Err(Error::Invalid { .. })));
        let mut bytes = file("float_16k.wav");
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&value.to_le_bytes());
        assert!(matches!(decode(&bytes), Err(Error::Invalid { .. })), "{value}: {:?}", decode(&bytes));
    }
    assert!(matches!(Audio::from_samples(Vec::new()), Err(Error::Invalid { .. })));
}

#[test]
fn settings_out_of_range_are_reported() {
    let audio = Audio::from_samples(vec![0.5; 2000]).expect("an audio clip");
    let (gemma, granite) = (Gemma4Audio::default(), GraniteSpeech::default());
    let rejected = [
        (Gemma4Audio { hop: 0, ..gemma.clone() }.features(&audio).err(), "`hop` is 0"),
        (Gemma4Audio { window: usize::MAX, ..gemma.clone() }.features(&audio).err(), "`window` is"),
        (Gemma4Audio { mels: 0, ..gemma.clone() }.features(&audio).err(), "`mels` is 0"),
        (Gemma4Audio { frequencies: 9.0..1e9, ..gemma.clone() }.features(&audio).err(), "`max_frequency` is"),
        (
            Gemma4Audio { frequencies: f64::NAN..80.0, ..gemma.clone() }.features(&audio).err(),
            "`min_frequency` is NaN",
        ),
        (Gemma4Audio { floor: 0.0, ..gemma }.features(&audio).err(), "`mel_floor` is 0"),
        (Whisper { mels: usize::MAX, ..Whisper::default() }.chunks(&audio).err(), "`mels` is"),
        (GraniteSpeech { mels: 0, ..granite }.features(&audio).err(), "`mels` is 0"),
        (GraniteSpeech { downsample: 0, ..granite }.tokens(9).err(), "`projector_downsample_rate` is 0"),
    ];
    for (error, problem) in rejected {
        let error = error.expect(problem);
        assert!(matches!(error, Error::InvalidSettings { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}: {problem}");
    }
    let short = Audio::from_samples(vec![0.5]).expect("an audio clip");
    assert!(matches!(
        Gemma4Audio::default().features(&short),
        Err(Error::UnsuitableLength { samples: 1, .. })
    ));
    assert!(matches!(GraniteSpeech::default().features(&short), Err(Error::UnsuitableLength { .. })));
}
