//! Packing of weights at load, by the bytes of the checkpoint:
//! `cargo bench -p lm-benches --bench pack [-- FILTER]`.

use lm_benches::{Amount, Group, criterion, noise};
use lm_kernels::{FloatDtype, GgmlType, PackedMatrix, Source, WeightFormat};

const ROWS: usize = 6144;
const COLS: usize = 1024;
const FORMATS: [WeightFormat; 5] =
    [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4];

fn main() {
    let mut criterion = criterion();
    let mut group = Group::of_bytes(&mut criterion, &format!("pack [{ROWS}, {COLS}]"));
    for format in FORMATS {
        let case = format!("bf16 to {format}");
        group.case(
            &case,
            Amount::Bytes(2 * ROWS * COLS),
            || bf16(format),
            |_, bytes| {
                pack(format, bytes).expect("packed before");
            },
        );
    }
    for &ggml in GgmlType::ALL {
        let len = ROWS * ggml.row_bytes(COLS).unwrap_or(0);
        let setup = || Ok((0..len).map(|i| (i * 31 % 64) as u8).collect::<Vec<u8>>());
        group.case(&format!("blocks of {ggml}"), Amount::Bytes(len), setup, |_, bytes| {
            PackedMatrix::from_blocks(ggml, ROWS, COLS, bytes).expect("blocks of the type");
        });
    }
    drop(group);
    criterion.final_summary();
}

/// Numbers in bf16, as in a checkpoint; packing keeps them.
fn bf16(format: WeightFormat) -> lm_kernels::Result<Vec<u8>> {
    let bytes: Vec<u8> = noise(ROWS * COLS).iter().flat_map(|x| x.to_le_bytes()[2..].to_owned()).collect();
    let packed = pack(format, &bytes)?;
    let (mut row, mut values) = (vec![0.0; COLS], vec![0.0; COLS]);
    packed.dequantize_row(ROWS - 1, &mut row);
    Source::from_le_bytes(FloatDtype::Bf16, &bytes)?.read((ROWS - 1) * COLS, &mut values);
    assert!(row.iter().zip(&values).all(|(x, y)| (x - y).abs() < 0.15), "the last row is kept");
    Ok(bytes)
}

fn pack(format: WeightFormat, bytes: &[u8]) -> lm_kernels::Result<PackedMatrix> {
    PackedMatrix::pack(format, ROWS, COLS, Source::from_le_bytes(FloatDtype::Bf16, bytes)?)
}
