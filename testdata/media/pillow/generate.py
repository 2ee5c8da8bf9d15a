"""Writes `golden.json`: sizes and files at the edges of formats, and what Pillow makes of them. See README.md."""

import hashlib
import io
import json
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

FOLDER = Path(__file__).parent
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS}

# Pictures at 100 times the width, and their sizes afterwards.
HIGH = [
    ((3, 399), [(5, 40), (3, 40), (2, 398), (5, 399), (1, 400), (7, 1)]),
    ((10, 1001), [(4, 100), (20, 1000), (4, 1001), (20, 1002)]),
    ((10, 1000), [(4, 100), (20, 999), (4, 1001)]),
    ((3, 301), [(2, 30), (9, 300)]),
    ((3, 300), [(2, 30), (9, 299)]),
    ((399, 3), [(40, 5), (40, 2)]),
]


def pixels(width, height):
    """A pattern that the test computes too."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return (x * 37 + y * y * 11 + x * y * 7 + c * 59).astype(np.uint8)


def digest(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def resized():
    for source, targets in HIGH:
        image = Image.fromarray(pixels(*source))
        for name, kind in FILTERS.items():
            for target in targets:
                yield {"source": source, "filter": name, "size": target, "sha256": digest(image.resize(target, kind))}


def load(file):
    """As `transformers.image_utils.load_image`."""
    return ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB")


def chunk(name, data, checksum=None):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data) if checksum is None else checksum)


SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = chunk(b"IEND", b"")


def png(before=b"", after=b"", end=END, values=bytes(range(0, 180, 10)), width=3, bits=8, kind=2):
    """Rows of these bytes."""
    stride = width * {0: 1, 2: 3, 4: 2, 6: 4}[kind] * bits // 8
    rows = b"".join(b"\0" + values[i : i + stride] for i in range(0, len(values), stride))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(values) // stride, bits, kind, 0, 0, 0))
    return SIGNATURE + header + before + chunk(b"IDAT", zlib.compress(rows)) + after + end


def entry(value, kind=3, count=1, tag=0x0112, order="<"):
    return struct.pack(order + "HHI", tag, kind, count) + value


def tiff(*entries, order="<", end=b"\0\0\0\0", magic=None, offset=8):
    start = magic or (b"II*\0" if order == "<" else b"MM\0*")
    return start + struct.pack(order + "IH", offset, len(entries)) + b"".join(entries) + end


def exif(orientation):
    return tiff(entry(struct.pack("<HH", orientation, 0)))


def xmp(value):
    return b'<x:xmpmeta><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>' % value


def itxt(text, is_compressed=False):
    return chunk(b"iTXt", b"XML:com.adobe.xmp\0" + bytes([is_compressed, 0]) + b"\0\0" + (zlib.compress(text) if is_compressed else text))


def raw(data):
    """EXIF data as ImageMagick writes it."""
    digits = data.hex().encode()
    lines = [digits[i : i + 72] for i in range(0, len(digits), 72)]
    return b"\n".join([b"", b"exif", b"%8d" % len(data), *lines, b""])


def orientations():
    """PNG files by the place and the form of their orientation."""
    six = b"\6\0\0\0"
    # Bytes, text, whole numbers with and without sign, undefined, and a type that does not exist.
    for kind in [1, 2, 3, 4, 6, 7, 8, 9, 13, 14]:
        yield f"type {kind}", chunk(b"eXIf", tiff(entry(six, kind)))
    for order in "<>":
        yield f"LONG {order}", chunk(b"eXIf", tiff(entry(struct.pack(order + "I", 8), 4, order=order), order=order))
    yield "LONG above 16 bits", chunk(b"eXIf", tiff(entry(b"\6\0\1\0", 4)))
    yield "LONG8", chunk(b"eXIf", tiff(entry(struct.pack("<I", 26), 16)) + struct.pack("<Q", 6))
    yield "two values", chunk(b"eXIf", tiff(entry(b"\6\0\7\0", 3, 2)))
    yield "three values", chunk(b"eXIf", tiff(entry(struct.pack("<I", 26), 3, 3)) + b"\6\0\7\0\1\0")
    yield "no value", chunk(b"eXIf", tiff(entry(six, 3, 0)))
    yield "0", chunk(b"eXIf", exif(0))
    yield "9", chunk(b"eXIf", exif(9))
    yield "twice in a directory", chunk(b"eXIf", tiff(entry(six), entry(b"\x08\0\0\0")))
    yield "no end of the directory", chunk(b"eXIf", tiff(entry(six), end=b""))
    yield "half an entry", chunk(b"eXIf", tiff(entry(six), b"abc", end=b""))
    yield "after a value past the end", chunk(b"eXIf", tiff(entry(struct.pack("<I", 9999), 2, 100, 0x010F), entry(six)))
    yield "before a value past the end", chunk(b"eXIf", tiff(entry(six), entry(struct.pack("<I", 9999), 2, 100, 0x0132)))
    yield "a directory past the end", chunk(b"eXIf", tiff(entry(six), offset=999))
    yield "MM*0", chunk(b"eXIf", tiff(entry(b"\0\6\0\0", order=">"), order=">", magic=b"MM*\0"))
    yield "no EXIF data", chunk(b"eXIf", b"")
    yield "a prefix", chunk(b"eXIf", b"Exif\0\0" + exif(6))
    yield "two chunks", chunk(b"eXIf", exif(6)) + chunk(b"eXIf", exif(8))
    yield "XMP attribute", itxt(xmp(6))
    yield "XMP compressed", itxt(xmp(6), True)
    yield "XMP element", itxt(b"<tiff:Orientation>6</tiff:Orientation>")
    yield "XMP 16", itxt(xmp(16))
    yield "XMP single quotes", itxt(b"tiff:Orientation='7' tiff:Orientation=\"6\"")
    yield "XMP 0", itxt(xmp(0) + xmp(6))
    yield "XMP in tEXt", chunk(b"tEXt", b"XML:com.adobe.xmp\0" + xmp(6))
    yield "XMP in zTXt", chunk(b"zTXt", b"XML:com.adobe.xmp\0\0" + zlib.compress(xmp(6)))
    yield "EXIF before XMP", chunk(b"eXIf", exif(1)) + itxt(xmp(6))
    yield "EXIF bytes before XMP", chunk(b"eXIf", tiff(entry(six, 1))) + itxt(xmp(6))
    yield "XMP after EXIF data without the tag", chunk(b"eXIf", tiff(entry(six, tag=0x0100))) + itxt(xmp(8))
    for data in [b"Exif\0\0" + exif(6), exif(8)]:
        yield f"raw EXIF in zTXt, {len(data)} bytes", chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(raw(data)))
        yield f"raw EXIF in tEXt, {len(data)} bytes", chunk(b"tEXt", b"Raw profile type exif\0" + raw(data))
    yield "raw EXIF under another name", chunk(b"tEXt", b"Raw profile type APP1\0" + raw(b"Exif\0\0" + exif(6)))
    yield "raw EXIF beside EXIF", chunk(b"eXIf", exif(6)) + chunk(b"tEXt", b"Raw profile type exif\0" + raw(exif(8)))
    yield "a decimal", chunk(b"eXIf", tiff(entry(struct.pack("<f", 6), 11)))


def damaged():
    """PNG files that break off or have wrong checksums."""
    text, pixels, whole = b"Title\0a picture", png(end=b""), png()
    yield "checksum before the pixels", png(before=chunk(b"tEXt", text, 1))
    yield "checksum of a private chunk", png(before=chunk(b"prVt", text, 1))
    yield "checksum after the pixels", png(after=chunk(b"tEXt", text, 1))
    yield "checksum of EXIF after the pixels", png(after=chunk(b"eXIf", exif(6), 1))
    yield "checksum of the pixels", pixels[:-4] + bytes(4) + END
    yield "no end", pixels
    yield "half an end", whole[:-7]
    yield "an end without its checksum", whole[:-4]
    yield "half the pixels", whole[:60]
    yield "half a chunk after the pixels", png(after=chunk(b"tEXt", text)[:-10], end=b"")
    yield "a chunk after the pixels without its checksum", png(after=chunk(b"tEXt", text)[:-4], end=b"")
    yield "no name", png(before=chunk(b"a\0b\1", b""))
    yield "no name after the pixels", png(after=chunk(b"a\0b\1", b"") + chunk(b"eXIf", exif(6)))
    yield "bytes after the end", whole + chunk(b"eXIf", exif(6))


def colors():
    """16 bits of grey, and transparent colours."""
    grey = struct.pack(">8H", 0, 1, 100, 255, 256, 300, 1000, 65535)
    for transparent in [100, 300]:
        yield f"16-bit grey, {transparent} transparent", png(chunk(b"tRNS", struct.pack(">H", transparent)), values=grey, width=4, bits=16, kind=0)
    yield "16-bit grey with alpha", png(values=grey, width=2, bits=16, kind=4)
    yield "8-bit grey, 100 transparent", png(chunk(b"tRNS", b"\0\x64"), values=bytes([0, 1, 100, 255]), width=2, kind=0)
    yield "16-bit RGB with a transparent colour", png(chunk(b"tRNS", struct.pack(">3H", 511, 512, 768)), values=struct.pack(">6H", 511, 512, 768, 1024, 1280, 65535), width=2, bits=16)


def jpeg(*segments, **options):
    file = io.BytesIO()
    Image.fromarray(pixels(6, 4) // 16 + 100).save(file, "JPEG", quality=100, subsampling=0, **options)
    data = b"".join(b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data for marker, data in segments)
    return file.getvalue()[:2] + data + file.getvalue()[2:]


def jpegs():
    prefix, namespace = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
    long = tiff(entry(b"\6\0\0\0", 4))
    yield "LONG", jpeg((0xE1, prefix + long))
    yield "EXIF in two segments", jpeg((0xE1, prefix + long[:15]), (0xE1, prefix + long[15:]))
    yield "EXIF in another segment", jpeg((0xE2, prefix + long))
    yield "XMP", jpeg((0xE1, namespace + xmp(6)))
    yield "XMP twice", jpeg((0xE1, namespace + xmp(6)), (0xE1, namespace + xmp(3)))
    yield "EXIF and XMP", jpeg((0xE1, namespace + xmp(6)), (0xE1, prefix + exif(1)))
    for transform in [0, 1]:
        yield f"JFIF with Adobe's transform {transform}", jpeg((0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([transform])))
    yield "RGB of Adobe", jpeg(keep_rgb=True)
    yield "RGB of Adobe with JFIF", jpeg((0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"), keep_rgb=True)


def webp(flags, *chunks):
    file = io.BytesIO()
    Image.fromarray(pixels(6, 4)).save(file, "WEBP", lossless=True)
    header = b"" if flags is None else struct.pack("<4sII", b"VP8X", 10, flags) + b"\5\0\0\3\0\0"
    data = b"".join(struct.pack("<4sI", name, len(data)) + data + b"\0" * (len(data) % 2) for name, data in chunks)
    body = b"WEBP" + header + file.getvalue()[12:] + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webps():
    yield "EXIF", webp(8, (b"EXIF", exif(6)))
    yield "EXIF with a prefix", webp(8, (b"EXIF", b"Exif\0\0" + exif(6)))
    yield "EXIF that the header does not announce", webp(0, (b"EXIF", exif(6)))
    yield "EXIF without a header", webp(None, (b"EXIF", exif(6)))
    yield "EXIF twice", webp(8, (b"EXIF", exif(6)), (b"EXIF", exif(8)))
    yield "XMP", webp(4, (b"XMP ", xmp(6)))
    yield "XMP beside EXIF that is not announced", webp(4, (b"EXIF", exif(6)), (b"XMP ", xmp(3)))
    yield "EXIF and XMP", webp(12, (b"EXIF", exif(1)), (b"XMP ", xmp(6)))


def bmp(values, bits, compression, masks=(), header=40):
    data = struct.pack(f"<{len(values)}" + {16: "H", 32: "I"}[bits], *values)
    fields = struct.pack("<IiiHHIIiiII", header, len(values), 1, 1, bits, compression, len(data), 2835, 2835, 0, 0)
    fields += struct.pack(f"<{len(masks)}I", *masks)
    fields += bytes(max(0, header - len(fields)))
    return b"BM" + struct.pack("<IHHI", 14 + len(fields) + len(data), 0, 0, 14 + len(fields)) + fields + data


def bmps():
    five = [i << 10 | (31 - i) << 5 | i for i in range(32)] + [0x8000, 0xFFFF]
    six = [(i % 32) << 11 | i << 5 | (31 - i % 32) for i in range(64)]
    wide = [0xFF, 0x12345678, 0xFEDCBA98, 0x80402010]
    yield "5-5-5", bmp(five, 16, 0)
    yield "5-5-5 with masks", bmp(five, 16, 3, (0x7C00, 0x3E0, 0x1F))
    yield "5-6-5", bmp(six, 16, 3, (0xF800, 0x7E0, 0x1F))
    yield "5-6-5 with the fourth header", bmp(six, 16, 3, (0xF800, 0x7E0, 0x1F, 0), 108)
    yield "5-6-5 that breaks off", bmp(six, 16, 3, (0xF800, 0x7E0, 0x1F))[:-4]
    yield "32 bits", bmp(wide, 32, 0)
    yield "32 bits with masks", bmp(wide, 32, 3, (0xFF000000, 0xFF0000, 0xFF00))


def cases():
    for name, data in orientations():
        yield f"PNG: {name}", png(before=data)
    for name, data in [("EXIF", chunk(b"eXIf", exif(6))), ("XMP", itxt(xmp(6), True)), ("raw EXIF", chunk(b"tEXt", b"Raw profile type exif\0" + raw(exif(6))))]:
        yield f"PNG: {name} after the pixels", png(after=data)
    for name, file in [*damaged(), *colors()]:
        yield f"PNG: {name}", file
    for format, files in [("JPEG", jpegs()), ("WebP", webps()), ("BMP", bmps())]:
        for name, file in files:
            yield f"{format}: {name}", file


def decoded():
    for name, file in cases():
        try:
            image = load(file)
        except (OSError, SyntaxError, ValueError):
            image = None
        yield {"name": name, "file": file.hex(), "size": image and image.size, "rgb": image and image.tobytes().hex()}


def main():
    warnings.simplefilter("ignore")
    golden = {"resized": list(resized()), "decoded": list(decoded())}
    lines = ",\n".join(f'"{key}": [\n' + ",\n".join(json.dumps(entry) for entry in entries) + "\n]" for key, entries in golden.items())
    (FOLDER / "golden.json").write_text("{\n" + lines + "\n}\n")


main()
