//! ggml's block types against the reference's floats: `testdata/ggml`, made by a script with the `gguf`
//! package.

use std::path::Path;

use lm_kernels::{Arena, Error, GgmlType, PackedMatrix, Packing, Source, WeightFormat};

const COLS: usize = 256;

/// The blocks of a type and their floats by the reference.
fn vectors(format: GgmlType) -> (Vec<u8>, Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/ggml/{format}.bin"));
    let mut blocks = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row_bytes = format.row_bytes(COLS).expect("whole blocks");
    let rows = blocks.len() / (row_bytes + COLS * 4);
    let floats = blocks.split_off(rows * row_bytes);
    assert_eq!(floats.len(), rows * COLS * 4);
    (blocks, floats)
}

/// Number of rows of a type's vectors.
fn rows_of(floats: &[u8]) -> usize {
    floats.len() / (COLS * 4)
}

fn floats(packed: &PackedMatrix) -> Vec<u8> {
    let mut row = vec![0.0; packed.cols()];
    let mut out = Vec::new();
    for index in 0..packed.rows() {
        packed.dequantize_row(index, &mut row);
        out.extend(row.iter().flat_map(|x| x.to_le_bytes()));
    }
    out
}

#[test]
fn every_type_matches_the_reference_bits() {
    for &format in GgmlType::ALL {
        let (blocks, expected) = vectors(format);
        let packed =
            PackedMatrix::from_blocks(format, rows_of(&expected), COLS, &blocks).expect("finite scales");
        assert_eq!(packed.format(), WeightFormat::Ggml(format));
        let got = floats(&packed);
        let differs = got.chunks(4).zip(expected.chunks(4)).position(|(got, expected)| got != expected);
        let at =
            differs.map(|at| (at / COLS, at % COLS, &got[4 * at..4 * at + 4], &expected[4 * at..4 * at + 4]));
        assert_eq!(at, None, "{format}: row, column, bits, the reference's bits");
    }
}

#[test]
fn rows_of_whole_blocks_take_any_shape() {
    for &format in GgmlType::ALL {
        let (blocks, expected) = vectors(format);
        // The rows as rows of one block, or as one row; in chunks too.
        let len = format.block_len();
        let elements = rows_of(&expected) * COLS;
        for rows in [elements / len, 1] {
            let cols = elements / rows;
            let packed = PackedMatrix::from_blocks(format, rows, cols, &blocks).expect("finite scales");
            assert!(floats(&packed) == expected, "{format} [{rows}, {cols}]");
            let mut packing =
                Packing::new(&Arena::default(), WeightFormat::Ggml(format), rows, cols).expect("small");
            let first = rows / Packing::ROWS * Packing::ROWS;
            let (head, tail) = blocks.split_at(first * format.row_bytes(cols).expect("whole blocks"));
            packing.push_blocks(first, head).expect("finite scales");
            packing.push_blocks(rows - first, tail).expect("finite scales");
            assert!(floats(&packing.finish()) == expected, "{format} [{rows}, {cols}] in pieces");
        }
    }
}

/// Floats, and their blocks by the reference.
fn quantized(format: GgmlType) -> (Vec<f32>, Vec<u8>) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/ggml/{format}.quantized.bin"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows = bytes.len() / (COLS * 4 + format.row_bytes(COLS).expect("whole blocks"));
    let (floats, blocks) = bytes.split_at(rows * COLS * 4);
    let floats = floats.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    (floats, blocks.to_vec())
}

#[test]
fn quantised_bytes_match_the_reference() {
    let types: Vec<_> = GgmlType::ALL.iter().copied().filter(|format| format.quantizes()).collect();
    assert_eq!(types, [GgmlType::Q8_0, GgmlType::Q4_0]);
    for format in types {
        let (floats, expected) = quantized(format);
        let rows = floats.len() / COLS;
        let blocks = format.quantize(COLS, Source::F32(&floats)).expect("finite values");
        let size = format.block_bytes();
        let differs =
            blocks.chunks(size).zip(expected.chunks(size)).position(|(got, expected)| got != expected);
        assert_eq!(differs.map(|block| block * 32 / COLS), None, "{format}: row");
        // Quantising while packing gives the same matrix as packing these blocks.
        let packed = PackedMatrix::pack(WeightFormat::Ggml(format), rows, COLS, Source::F32(&floats));
        let taken = PackedMatrix::from_blocks(format, rows, COLS, &blocks).expect("finite scales");
        assert!(self::floats(&packed.expect("finite values")) == self::floats(&taken), "{format}");
    }
}

#[test]
fn unquantisable_values_are_reported() {
    for (value, format) in [(f32::NAN, GgmlType::Q8_0), (9e6, GgmlType::Q8_0), (-6e5, GgmlType::Q4_0)] {
        let mut values = vec![1.0; 40 * 64];
        values[37 * 64 + 40] = value;
        values[38 * 64] = f32::INFINITY;
        let error = PackedMatrix::pack(WeightFormat::Ggml(format), 40, 64, Source::F32(&values)).unwrap_err();
        let named = matches!(error, Error::NotRepresentable { row: 37, col: 40, value: got, .. }
            if got.to_bits() == value.to_bits());
        assert!(named, "{error}");
    }
    let error = GgmlType::Q8_0.quantize(48, Source::F32(&[0.0; 48])).unwrap_err();
    assert!(matches!(error, Error::PartialBlock { cols: 48, block: 32, .. }), "{error}");
    let error = GgmlType::Q8_0.quantize(32, Source::F32(&[0.0; 33])).unwrap_err();
    assert!(matches!(error, Error::SourceLength { .. }), "{error}");
}

/// Maximum bytes in memory per byte of the file: codebook indices are expanded to the entries.
fn growth(format: GgmlType) -> f64 {
    match format {
        GgmlType::Iq4Xs => 1.03,
        GgmlType::Iq3S => 1.28,
        GgmlType::Iq3Xxs => 1.43,
        GgmlType::Iq2S => 1.42,
        GgmlType::Iq2Xs => 1.57,
        GgmlType::Iq2Xxs => 1.64,
        GgmlType::Iq1M => 2.08,
        GgmlType::Iq1S => 2.17,
        _ => 1.02,
    }
}

/// Bytes of a wide matrix in memory, compared with those in a file.
#[test]
fn packed_size_is_at_most_the_file_size() {
    for &format in GgmlType::ALL {
        for cols in [2880_usize.next_multiple_of(format.block_len()), 4096] {
            let file = 16 * format.row_bytes(cols).expect("whole blocks");
            let packed = PackedMatrix::from_blocks(format, 16, cols, &vec![0; file]).expect("zeros");
            let share = packed.bytes() as f64 / file as f64;
            assert!(
                (1.0..=growth(format)).contains(&share),
                "{format} [16, {cols}]: {share} of the file's bytes"
            );
        }
    }
}

#[test]
fn non_finite_scales_are_rejected_with_their_place() {
    for &format in GgmlType::ALL {
        let (blocks, floats) = vectors(format);
        for at in places_of_scales(format) {
            let mut bad = blocks.clone();
            // The last block of row 4.
            let block = 5 * format.row_bytes(COLS).expect("whole blocks") - format.block_bytes();
            bad[block + at..][..2].copy_from_slice(&[0x00, 0x7e]);
            match format {
                GgmlType::Mxfp4 => bad[block] = 0xff,
                // The upper four bits of four words: 0x7e00.
                GgmlType::Iq1M => bad[block + 48..][..8].copy_from_slice(&[0, 0, 0, 0, 0, 0xe0, 0, 0x70]),
                _ => {}
            }
            let rows = rows_of(&floats);
            let error = PackedMatrix::from_blocks(format, rows, COLS, &bad).expect_err("a scale is NaN");
            let expected = COLS - format.block_len();
            assert!(
                matches!(error, Error::NotRepresentable { row: 4, col, value, .. } if col == expected && value.is_nan()),
                "{format}: {error}"
            );
        }
    }
}

fn places_of_scales(format: GgmlType) -> &'static [usize] {
    match format {
        GgmlType::Q4_1 | GgmlType::Q5_1 | GgmlType::Q4K | GgmlType::Q5K => &[0, 2],
        GgmlType::Q2K => &[80, 82],
        GgmlType::Q3K => &[108],
        GgmlType::Q6K => &[208],
        _ => &[0],
    }
}

#[test]
fn wrong_sizes_are_reported() {
    let new = |rows, cols| Packing::new(&Arena::default(), WeightFormat::Ggml(GgmlType::Q4K), rows, cols);
    let error = new(2, 384).expect_err("one block and a half");
    assert_eq!(error.to_string(), "rows of 384 columns are not a whole number of q4_k blocks of 256");
    assert!(matches!(new(usize::MAX / 256, 1 << 20), Err(Error::ShapeOverflow { .. })));
    let error = new(1, 256).expect("small").push_blocks(1, &[0; 143]).expect_err("a byte is missing");
    assert!(matches!(error, Error::SourceLength { expected: 144, got: 143, .. }), "{error}");
    let error = new(1, 256).expect("small").push(1, Source::F32(&[0.0; 256])).expect_err("floats");
    assert_eq!(error.to_string(), "weights cannot be quantised to q4_k: its blocks are read from files only");
}

#[test]
fn names_equal_those_of_ggml() {
    for &format in GgmlType::ALL {
        assert_eq!(format.to_string().parse::<WeightFormat>().expect("its name"), WeightFormat::Ggml(format));
    }
    let error = "q9_k".parse::<GgmlType>().expect_err("no type");
    assert!(error.to_string().contains("q8_0, q4_0, q4_1"), "{error}");
}

#[test]
fn infinite_scales_are_rejected() {
    for (bits, infinite) in [(0x7c00_u16, f32::INFINITY), (0xfc00, f32::NEG_INFINITY)] {
        let mut blocks = GgmlType::Q8_0.quantize(64, Source::F32(&[1.0; 5 * 64])).expect("finite values");
        let second_of_row_4 = (4 * 2 + 1) * 34;
        blocks[second_of_row_4..][..2].copy_from_slice(&bits.to_le_bytes());
        let error = PackedMatrix::from_blocks(GgmlType::Q8_0, 5, 64, &blocks).expect_err("an infinite scale");
        let Error::NotRepresentable { row: 4, col: 32, value, .. } = error else { panic!("{error}") };
        assert_eq!(value, infinite);
    }
}
