"""Writes the sounds of this folder and `golden.json`: what libsndfile, torchaudio and transformers make of them. See README.md."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import soundfile
import torch
import torchaudio
from transformers.models.gemma4.feature_extraction_gemma4 import Gemma4AudioFeatureExtractor
from transformers.models.gemma4.processing_gemma4 import Gemma4Processor
from transformers.models.granite_speech.feature_extraction_granite_speech import GraniteSpeechFeatureExtractor
from transformers.models.whisper.feature_extraction_whisper import WhisperFeatureExtractor

FOLDER = Path(__file__).parent
noise = np.random.default_rng(5)


def tone(rate, seconds, channels):
    """A rising tone with noise, another one in each channel."""
    time = np.arange(int(rate * seconds)) / rate
    waves = [0.5 * np.sin(2 * np.pi * (200 + 300 * c + 900 * time) * time) + 0.1 * noise.standard_normal(len(time)) for c in range(channels)]
    return np.stack(waves, axis=1).clip(-1, 1)


# File, rate, seconds, channels, subtype of libsndfile.
FILES = [
    ("pcm8_16k.wav", 16000, 0.02, 1, "PCM_U8"),
    ("pcm16_16k.wav", 16000, 0.5, 1, "PCM_16"),
    ("pcm24_16k.wav", 16000, 0.02, 1, "PCM_24"),
    ("pcm32_16k.wav", 16000, 0.02, 1, "PCM_32"),
    ("float_16k.wav", 16000, 0.02, 1, "FLOAT"),
    ("double_16k.wav", 16000, 0.02, 1, "DOUBLE"),
    ("ulaw_8k.wav", 8000, 0.05, 1, "ULAW"),
    ("alaw_16k.wav", 16000, 0.02, 1, "ALAW"),
    ("stereo_16k.wav", 16000, 0.02, 2, "PCM_16"),
    ("stereo_44k.wav", 44100, 0.05, 2, "PCM_16"),
    ("six_48k.wav", 48000, 0.02, 6, "PCM_16"),
    ("mono_11k.wav", 11025, 0.03, 1, "PCM_16"),
    ("mono_12k.wav", 12345, 0.03, 1, "PCM_16"),
    ("mono_16k.flac", 16000, 0.3, 1, "PCM_16"),
    ("stereo_48k.flac", 48000, 0.1, 2, "PCM_24"),
    ("stereo_44k.ogg", 44100, 0.2, 2, "VORBIS"),
    ("mono_16k.ogg", 16000, 0.2, 1, "VORBIS"),
    ("stereo_44k.mp3", 44100, 0.2, 2, "MPEG_LAYER_III"),
    ("mono_16k.mp3", 16000, 0.2, 1, "MPEG_LAYER_III"),
]


# libsndfile writes the current time into the PEAK chunk of WAV files with floats, and a random serial number into Ogg files.
PEAK_TIME = 0x6B05AA93
SERIAL_NUMBERS = {"stereo_44k.ogg": 0x35511FCC, "mono_16k.ogg": 0x0E79461C}


def sounds():
    for name, rate, seconds, channels, subtype in FILES:
        soundfile.write(FOLDER / name, tone(rate, seconds, channels), rate, subtype=subtype)
        if subtype in {"FLOAT", "DOUBLE"}:
            set_peak_time(FOLDER / name)
        if subtype == "VORBIS":
            set_serial_number(FOLDER / name)
    soundfile.write(FOLDER / "silence.wav", np.zeros(1000), 16000, subtype="PCM_16")
    soundfile.write(FOLDER / "one_sample.wav", np.array([0.25]), 16000, subtype="PCM_16")


def set_peak_time(path):
    file = bytearray(path.read_bytes())
    struct.pack_into("<I", file, file.index(b"PEAK") + 12, PEAK_TIME)
    path.write_bytes(file)


def set_serial_number(path):
    """Changes the serial number of each Ogg page, and the page's checksum with it (RFC 3533)."""
    file, at = bytearray(path.read_bytes()), 0
    while at < len(file):
        segments = file[at + 26]
        end = at + 27 + segments + sum(file[at + 27 : at + 27 + segments])
        struct.pack_into("<I", file, at + 14, SERIAL_NUMBERS[path.name])
        struct.pack_into("<I", file, at + 22, 0)
        struct.pack_into("<I", file, at + 22, ogg_checksum(file[at:end]))
        at = end
    path.write_bytes(file)


def ogg_checksum(page):
    checksum = 0
    for byte in page:
        checksum ^= byte << 24
        for _ in range(8):
            checksum = (checksum << 1) ^ (0x104C11DB7 if checksum & 0x80000000 else 0)
    return checksum


def picked(values, count):
    values = np.asarray(values, dtype=np.float32).reshape(-1)
    at = np.unique(np.linspace(0, values.size - 1, count).astype(int))
    return {"at": at.tolist(), "values": [float(value) for value in values[at]]}


def decoded(path):
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    mono = samples.mean(axis=1, dtype=np.float32)
    # The filter has the precision of the sound.
    resampled = torchaudio.functional.resample(torch.from_numpy(mono).double(), rate, 16000).float().numpy()
    digest = hashlib.sha256(resampled.astype("<f4").tobytes()).hexdigest()
    return {"file": path.name, "rate": rate, "samples": len(resampled), "sha256": digest} | picked(resampled, 60)


def features(family, sound, values):
    return {"family": family, "sound": sound, "shape": list(values.shape)} | picked(values, 300)


def double(extractor, sound):
    """Gemma 4's extractor in double precision: its own is in single, which is uncertain where a loud and a silent frequency meet."""
    return extractor._extract_spectrogram(sound.astype(np.float64), np.ones(len(sound)))[0]


def whisper(mels, sound):
    """The variant in NumPy, which computes in double precision."""
    return WhisperFeatureExtractor(feature_size=mels)._np_extract_fbank_features([sound], "cpu")[0].T


def granite(sound):
    extractor = GraniteSpeechFeatureExtractor()
    extractor.mel_filters = extractor.mel_filters.double()
    return extractor._extract_mel_spectrograms(Double(torch.from_numpy(sound).double()[None]))[0].numpy()


class Double:
    """A tensor that stays in double precision."""

    def __init__(self, tensor):
        self.tensor, self.shape = tensor, tensor.shape

    def to(self, device):
        return self

    def float(self):
        return self.tensor


GEMMA_OTHER = {"feature_size": 40, "frame_length_ms": 32.0, "hop_length_ms": 12.5, "min_frequency": 125.0, "max_frequency": 7600.0, "mel_floor": 1e-2}


def longer(sound, samples):
    return np.tile(sound, samples // len(sound) + 1)[:samples]


def mels():
    """Lengths in samples, of the sound of `pcm16_16k.wav` repeated."""
    sound = soundfile.read(FOLDER / "pcm16_16k.wav", dtype="float32")[0]
    silent = np.zeros(4000, dtype=np.float32)
    gemma, other = Gemma4AudioFeatureExtractor(), Gemma4AudioFeatureExtractor(**GEMMA_OTHER)
    for samples in [161, 200, 320, 321, 4001, 20000]:
        yield features("gemma4", ["tone", samples], double(gemma, longer(sound, samples)))
    yield features("gemma4", ["silence", 4000], double(gemma, silent))
    for samples in [513, 4001]:
        yield features("gemma4_other", ["tone", samples], double(other, longer(sound, samples)))
    for name, wave in [("tone", longer(sound, 1)), ("tone", longer(sound, 8001)), ("silence", silent), ("tone", longer(sound, 479840)), ("tone", longer(sound, 480160))]:
        for count in [80, 128]:
            padded = np.pad(wave, (0, max(0, 480000 - len(wave))))[:480000]
            yield features(f"whisper_{count}", [name, len(wave)], whisper(count, padded))
    wave = longer(sound, 480160)
    yield features("voxtral", ["tone", len(wave)], whisper(128, np.pad(wave, (0, 960000 - len(wave)))))
    for samples in [257, 4001, 20000]:
        yield features("granite", ["tone", samples], granite(longer(sound, samples)))


def counts():
    """Numbers of samples, and the tokens that Gemma 4 and Granite Speech make of them."""
    gemma = object.__new__(Gemma4Processor)
    gemma.feature_extractor, gemma.audio_seq_length = Gemma4AudioFeatureExtractor(), 750
    granite_speech = GraniteSpeechFeatureExtractor()
    draw = np.random.default_rng(3)
    for samples in [1, 160, 161, 320, 321, 479999, 480000, 480001] + draw.integers(1, 1_000_000, 500).tolist():
        yield [samples, gemma._compute_audio_num_tokens(np.broadcast_to(np.float32(0), samples), 16000), granite_speech._get_num_audio_features([samples])[0]]


def main():
    sounds()
    files = [decoded(path) for path in sorted(FOLDER.iterdir()) if path.suffix in {".wav", ".flac", ".ogg", ".mp3"}]
    golden = {"decoded": files, "features": list(mels()), "counts": list(counts())}
    lines = ",\n".join(f'"{key}": [\n' + ",\n".join(json.dumps(entry) for entry in entries) + "\n]" for key, entries in golden.items())
    (FOLDER / "golden.json").write_text("{\n" + lines + "\n}\n")


main()
