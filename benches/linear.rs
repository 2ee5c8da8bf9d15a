//! Products with weights of every format: `cargo bench -p lm-benches --bench linear [-- FILTER]`.
//!
//! A few rows of activations are multiplied by copies of a matrix that are larger together than any cache, in
//! bytes of weights a second; 512 rows by one matrix, in operations a second.

use criterion::Criterion;
use lm_benches::{Amount, COLD, Group, check_product, criterion, noise, random_weight};
use lm_kernels::{Arena, GgmlType, PackedMatrix, WeightFormat, host};

const ROWS: usize = 6144;
const COLS: usize = 2048;
const MANY: usize = 512;
/// Formats that floats are packed to.
const FORMATS: [WeightFormat; 5] =
    [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4];

/// A matrix several times, activations and room for the products.
struct Operands {
    copies: Vec<PackedMatrix>,
    next: usize,
    x: Vec<f32>,
    y: Vec<f32>,
}

impl Operands {
    fn new(format: WeightFormat, rows: usize, copies: usize) -> lm_kernels::Result<Self> {
        let weight = random_weight(&Arena::default(), format, ROWS, COLS)?;
        let (x, mut y) = (noise(rows * COLS), vec![0.0; rows * ROWS]);
        host::linear(lm_kernels::Pool::global(), &weight, &x, rows, &mut y);
        check_product(&weight, &x, &y);
        Ok(Self { copies: vec![weight; copies], next: 0, x, y })
    }
}

fn main() {
    let mut criterion = criterion();
    let blocks = GgmlType::ALL.iter().map(|&ggml| WeightFormat::Ggml(ggml));
    let all: Vec<WeightFormat> = FORMATS.into_iter().chain(blocks).collect();
    few_rows(&mut criterion, 1, &all);
    few_rows(&mut criterion, 4, &FORMATS);
    few_rows(&mut criterion, 8, &FORMATS);
    many_rows(&mut criterion, &all);
    criterion.final_summary();
}

fn few_rows(criterion: &mut Criterion, rows: usize, formats: &[WeightFormat]) {
    let mut group = Group::of_bytes(criterion, &format!("linear {rows} of {COLS} by {ROWS}"));
    for &format in formats {
        let bytes = format.matrix_bytes(ROWS, COLS).unwrap_or(1);
        let setup = || Operands::new(format, rows, COLD / bytes + 1);
        group.case(&format.to_string(), Amount::Bytes(bytes), setup, |pool, operands| {
            let Operands { copies, next, x, y } = operands;
            host::linear(pool, &copies[*next], x, rows, y);
            *next = (*next + 1) % copies.len();
        });
    }
}

fn many_rows(criterion: &mut Criterion, formats: &[WeightFormat]) {
    let mut group = Group::of_operations(criterion, &format!("linear {MANY} of {COLS} by {ROWS}"));
    for &format in formats {
        let amount = Amount::Operations(2 * MANY * ROWS * COLS);
        group.case(
            &format.to_string(),
            amount,
            || Operands::new(format, MANY, 1),
            |pool, operands| {
                host::linear(pool, &operands.copies[0], &operands.x, MANY, &mut operands.y);
            },
        );
    }
}
