"""Writes `golden.json`: WAV files with unusual headers, and the samples that libsndfile reads in them. See README.md."""

import io
import json
import struct
from pathlib import Path

import numpy as np
import soundfile

FOLDER = Path(__file__).parent
SAMPLES = np.arange(-20, 20, dtype="<i2") * 700
FORMAT = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 16000, 32000, 2, 16)


def chunk(name, data, length=None):
    return struct.pack("<4sI", name, len(data) if length is None else length) + data + b"\0" * (len(data) % 2)


def wav(length=None, riff=None, before=b"", after=b"", marker=b"RIFF"):
    body = b"WAVE" + before + FORMAT + chunk(b"data", SAMPLES.tobytes(), length) + after
    return marker + struct.pack("<I", len(body) if riff is None else riff) + body


def rf64(length, after=b"", data=0xFFFFFFFF, table=b""):
    sizes = struct.pack("<QQQI", 200, length, length // 2, len(table) // 12) + table
    return wav(data, 0xFFFFFFFF, chunk(b"ds64", sizes), after, b"RF64")


def cases():
    info = chunk(b"LIST", b"INFO" + chunk(b"ISFT", b"Lavf61.1.100\0"))
    yield "usual", wav()
    yield "ffmpeg to a pipe", wav(0xFFFFFFFF, 0xFFFFFFFF, info)
    yield "sox to a pipe", wav(0x7FFFF000, 0x7FFFF024)
    yield "arecord to a pipe", wav(0x7FFFFF00, 0x7FFFFF24)
    yield "2 GiB", wav(0x80000000, 0x80000024)
    yield "4 GiB less a header", wav(0xFFFFFFDB, 0xFFFFFFFF)
    yield "unknown in a file of known length", wav(0xFFFFFFFF, after=b"\1\2")
    yield "half a sample at the end of a stream", wav(0xFFFFFFFF, 0xFFFFFFFF, after=b"\1")
    yield "length 0", wav(0, 0)
    yield "length 0 in a file of known length", wav(0)
    yield "chunks after the samples", wav(after=info)
    yield "RF64", rf64(80)
    yield "RF64 with chunks after the samples", rf64(80, info)
    yield "RF64 with a table", rf64(80, table=b"abcd" + struct.pack("<Q", 5))
    yield "RF64 with the length in both places", rf64(80, data=80)
    yield "RF64 with two lengths", rf64(60, data=80)
    yield "RF64 of length 0", rf64(0)
    yield "RF64 without the long lengths", wav(marker=b"RF64")


def read(file):
    try:
        samples, rate = soundfile.read(io.BytesIO(file), dtype="int16")
        assert rate == 16000
        return samples.tolist()
    except soundfile.LibsndfileError:
        return []


def main():
    entries = [json.dumps({"name": name, "file": file.hex(), "samples": read(file)}) for name, file in cases()]
    (FOLDER / "golden.json").write_text("[\n" + ",\n".join(entries) + "\n]\n")


main()
