"""Writes the pictures of this folder and `golden.json`: what Pillow and transformers make of them. See README.md."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers.image_processing_backends import PilBackend
from transformers.image_utils import load_image
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil, get_aspect_ratio_preserving_size
from transformers.models.lfm2_vl.image_processing_lfm2_vl import Lfm2VlImageProcessor
from transformers.models.lfm2_vl.processing_lfm2_vl import Lfm2VlProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

FOLDER = Path(__file__).parent
noise = np.random.default_rng(7)


def pixels(width, height, channels, dtype=np.uint8):
    """Waves with noise: resizing has something to sum up."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    waves = 128 + 100 * np.sin(x / 5 + c) * np.cos(y / 7 - c) + noise.integers(-27, 27, (height, width, channels))
    scale = 257 if dtype == np.uint16 else 1
    return (np.clip(waves, 0, 255) * scale + (noise.integers(0, 256, waves.shape) if scale > 1 else 0)).clip(0, np.iinfo(dtype).max).astype(dtype)


def save(name, image, **options):
    image.save(FOLDER / name, **options)


def rgb(width, height):
    return Image.fromarray(pixels(width, height, 3), "RGB")


def png16(name, array):
    """Pillow writes no 16-bit colours."""
    import struct
    import zlib

    height, width, channels = array.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    chunk = lambda tag, data: struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in array)
    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    (FOLDER / name).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def gif(name, place, screen, palette, transparent=None, is_local=False, is_interlaced=False, colors=None):
    """Pillow writes no frames that cover a part of the screen, and no indexes past a palette's end."""
    import struct

    (left, top, width, height), bits = place, (len(palette) - 1).bit_length() - 1
    indexes = [(5 * i + i * i // 3) % (colors or len(palette)) for i in range(width * height)]
    # Codes of five bits, a clear code before each: the dictionary stays empty.
    codes = [code for index in indexes for code in (16, index)] + [17]
    stream = sum(code << 5 * place for place, code in enumerate(codes))
    data = stream.to_bytes((5 * len(codes) + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255)) + b"\0"
    table = bytes(value for color in palette for value in color)
    header = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80 | (1 if is_local else bits), 2, 0)
    header += bytes(range(100, 112)) if is_local else table
    control = b"" if transparent is None else b"\x21\xf9\x04" + bytes([1, 0, 0, transparent, 0])
    flags = (0x80 | bits if is_local else 0) | (0x40 if is_interlaced else 0)
    image = b"\x2c" + struct.pack("<HHHHB", left, top, width, height, flags) + (table if is_local else b"")
    (FOLDER / name).write_bytes(header + control + image + b"\x04" + blocks + b"\x3b")


def gifs():
    palette = [(90, 17, 201), (3, 240, 77), (250, 128, 4), (66, 66, 1)]
    gif("frame_11x9.gif", (3, 2, 5, 4), (11, 9), palette)
    gif("frame_transparent_11x9.gif", (3, 2, 5, 4), (11, 9), palette, transparent=3)
    gif("frame_local_10x6.gif", (0, 1, 10, 3), (10, 6), palette, transparent=1, is_local=True)
    gif("frame_beyond_9x8.gif", (4, 5, 9, 6), (9, 8), palette)
    gif("frame_interlaced_7x13.gif", (1, 0, 6, 13), (7, 13), palette, is_interlaced=True)
    gif("palette_short_8x5.gif", (1, 1, 6, 3), (8, 5), palette[:2], transparent=9, colors=11)
    gif("palette_grey_8x5.gif", (1, 1, 6, 3), (8, 5), [(i, i, i) for i in range(4)], transparent=7, colors=11)


def pictures():
    gifs()
    save("rgb_1x1.png", rgb(1, 1))
    save("rgb_37x53.png", rgb(37, 53))
    save("rgb_1x400.png", rgb(1, 400))
    save("rgb_400x1.png", rgb(400, 1))
    save("grey_31x17.png", Image.fromarray(pixels(31, 17, 1)[..., 0], "L"))
    save("grey_alpha_20x9.png", Image.fromarray(pixels(20, 9, 2), "LA"))
    save("rgba_29x41.png", Image.fromarray(pixels(29, 41, 4), "RGBA"))
    save("palette_33x21.png", rgb(33, 21).convert("P", palette=Image.Palette.ADAPTIVE, colors=50))
    save("palette_transparent_16x16.png", rgb(16, 16).convert("P", palette=Image.Palette.ADAPTIVE, colors=16), transparency=3)
    save("bilevel_19x23.png", rgb(19, 23).convert("1"))
    png16("grey16_13x11.png", pixels(13, 11, 1, np.uint16))
    png16("rgb16_13x11.png", pixels(13, 11, 3, np.uint16))
    png16("rgba16_13x11.png", pixels(13, 11, 4, np.uint16))
    save("animated_15x12.gif", rgb(15, 12), save_all=True, append_images=[rgb(15, 12)], duration=100)
    save("lossless_23x19.webp", rgb(23, 19), lossless=True)
    save("rgb_18x14.bmp", rgb(18, 14))
    smooth = rgb(8, 6).resize((64, 48), Image.Resampling.BICUBIC)
    save("smooth_64x48.jpg", smooth, quality=95, subsampling=0)
    save("cmyk_64x48.jpg", smooth.convert("CMYK"), quality=95)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        save(f"orientation{orientation}_9x5.png", rgb(9, 5), exif=exif)
    exif = Image.Exif()
    exif[0x0112] = 6
    save("orientation6_64x48.jpg", smooth, quality=95, subsampling=0, exif=exif)
    png16("grey_alpha16_12x7.png", pixels(12, 7, 2, np.uint16))


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "lanczos": Image.Resampling.LANCZOS}
SIZES = [(1, 1), (37, 53), (53, 37), (74, 106), (36, 52), (18, 200), (200, 18), (5, 3), (111, 97), (37, 20), (16, 53)]


def family(name, output, values):
    values = np.asarray(values, dtype=np.float32)
    picked = np.linspace(0, values.size - 1, 400).astype(int)
    return {"family": name, "picture": output, "shape": list(values.shape), "at": picked.tolist(), "values": [float(v) for v in values.reshape(-1)[picked]]}


def families():
    for name in ["rgb_37x53.png", "rgb_1x1.png", "rgba_29x41.png"]:
        image = load_image(str(FOLDER / name))
        yield family("qwen2_vl", name, Qwen2VLImageProcessorPil()(image, return_tensors="np")["pixel_values"])
        qwen3 = Qwen2VLImageProcessorPil(patch_size=16, image_mean=[0.5] * 3, image_std=[0.5] * 3, min_pixels=65536, max_pixels=16777216)
        yield family("qwen3_vl", name, qwen3(image, return_tensors="np")["pixel_values"])
        gemma4 = Gemma4ImageProcessorPil(max_soft_tokens=70)(image, return_tensors="np")
        count = int((np.asarray(gemma4["image_position_ids"])[0, :, 0] >= 0).sum())
        yield family("gemma4_70", name, np.asarray(gemma4["pixel_values"])[0, :count])
        values = np.asarray(Gemma3ImageProcessorPil(size={"height": 224, "width": 224})(image, return_tensors="np")["pixel_values"])[0]
        cut = values.reshape(3, 16, 14, 16, 14).transpose(1, 3, 0, 2, 4).reshape(256, -1)
        yield family("gemma3_224", name, cut)
        yield family("smol_tiles", name, smol(image, SMOL_SMALL))
        yield family("smol_whole", name, smol(image, SMOL_SMALL | {"do_image_splitting": False}))
        lfm = Lfm2VlImageProcessor(**LFM_SMALL)(image, return_tensors="pt")
        yield family("lfm_tiles", name, lfm["pixel_values"][lfm["pixel_attention_mask"].bool()])


# The published settings, and others: patches of 14 leave 4 of the 60 pixels of a tile.
SMOL = {"size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}}
SMOL_SMALL = {"size": {"longest_edge": 200}, "max_image_size": {"longest_edge": 60}}
LFM_SMALL = {"encoder_patch_size": 4, "downsample_factor": 3, "min_image_tokens": 3, "max_image_tokens": 7, "tile_size": 24, "min_tiles": 2,
             "max_tiles": 6, "max_pixels_tolerance": 1.5}


def smol(image, settings):
    """Patches of all tiles, cut as the tower's convolution does."""
    values = np.asarray(SmolVLMImageProcessorPil(**settings)(image, return_tensors="np")["pixel_values"])[0]
    count = len(values)
    return values[:, :, :56, :56].reshape(count, 3, 4, 14, 4, 14).transpose(0, 2, 4, 1, 3, 5).reshape(count * 16, -1)


def smol_grid(width, height, settings, tokens):
    """Rows, columns and tokens of SmolVLM's tiles. Pictures without pixels in memory: `PilBackend.resize` is replaced by their sizes."""
    processor, tile = SmolVLMImageProcessorPil(**settings), settings["max_image_size"]["longest_edge"]
    image = processor.resize(np.broadcast_to(np.uint8(0), (3, height, width)), processor.size)
    _, rows, columns = processor.split_images(processor.resize_for_vision_encoder(image, tile), {"longest_edge": tile})
    return [rows, columns, get_image_prompt_string(rows, columns, tokens, "", "@", "").count("@")]


def lfm_grid(width, height, settings):
    """Rows, columns, size as a whole, and tokens of LFM2-VL's tiles; tensors without data."""
    processor = Lfm2VlImageProcessor(**settings)
    names = ["downsample_factor", "min_tiles", "max_tiles", "use_thumbnail", "min_image_tokens", "max_image_tokens", "encoder_patch_size", "tile_size",
             "max_pixels_tolerance", "resample"]
    empty = torch.empty((1, 3, height, width), dtype=torch.uint8, device="meta")
    _, rows, columns, sizes = processor.resize_and_split(empty, **{name: getattr(processor, name) for name in names})
    text = object.__new__(Lfm2VlProcessor)
    text.image_processor, text.image_token = processor, "@"
    counts = text._get_image_num_tokens(sizes[0])
    return [rows[0], columns[0], sizes[0][1], sizes[0][0], text._build_image_tokens(rows[0], columns[0], *counts, True, False).count("@")]


def grids(picture_sizes):
    original = PilBackend.resize
    PilBackend.resize = lambda self, image, size, resample=None, **options: np.broadcast_to(np.uint8(0), (3, size.height, size.width))
    for (width, height), *_ in picture_sizes:
        yield [smol_grid(width, height, SMOL, 64), smol_grid(width, height, SMOL_SMALL, 4)] + [lfm_grid(width, height, lfm) for lfm in ({}, LFM_SMALL)]
    PilBackend.resize = original


def sizes():
    """Sizes and what the families make of them: width and height, or null where they refuse."""
    draw = random.Random(11)

    def refused(function, *arguments):
        try:
            height, width = function(*arguments)
            return [width, height]
        except ValueError:
            return None

    for index in range(2000):
        limit = [50, 500, 5000, 20000][index % 4]
        width, height = draw.randint(1, limit), draw.randint(1, limit)
        yield [
            [width, height],
            refused(smart_resize, height, width, 28, 56 * 56, 28 * 28 * 1280),
            refused(smart_resize, height, width, 32, 65536, 16777216),
            refused(get_aspect_ratio_preserving_size, height, width, 16, 280 * 9, 3),
            refused(get_aspect_ratio_preserving_size, height, width, 16, 70 * 9, 3),
        ]


def main():
    pictures()
    decoded, resized = [], []
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in {".png", ".gif", ".webp", ".bmp", ".jpg"}:
            image = load_image(str(path))
            entry = {"picture": path.name, "size": list(image.size), "sha256": digest(np.asarray(image))}
            if path.suffix == ".jpg":
                entry["bytes"] = np.asarray(image)[::7, ::7].reshape(-1).tolist()
            decoded.append(entry)
    image = load_image(str(FOLDER / "rgb_37x53.png"))
    for name, kind in FILTERS.items():
        for size in SIZES:
            resized.append({"filter": name, "size": list(size), "sha256": digest(np.asarray(image.resize(size, kind)))})
    all_sizes = list(sizes())
    golden = {"decoded": decoded, "resized": resized, "families": list(families()), "sizes": all_sizes, "grids": list(grids(all_sizes))}
    lines = ",\n".join(f'"{key}": [\n' + ",\n".join(json.dumps(entry) for entry in entries) + "\n]" for key, entries in golden.items())
    (FOLDER / "golden.json").write_text("{\n" + lines + "\n}\n")


main()
