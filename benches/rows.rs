//! Norms and gates over rows, in bytes read and written:
//! `cargo bench -p lm-benches --bench rows [-- FILTER]`.

use lm_benches::{Amount, Group, criterion, noise};
use lm_kernels::{Activation, Pool, host};

const WIDTH: usize = 1024;

fn main() {
    let mut criterion = criterion();
    let mut group = Group::of_bytes(&mut criterion, "rows");
    for rows in [1, 8192] {
        let (len, setup) = (rows * WIDTH, move || Ok(Operands::new(rows * WIDTH)));
        let case = format!("rms_norm [{rows}, {WIDTH}]");
        group.case(&case, Amount::Bytes(8 * len), setup, |pool, operands| operands.rms_norm(pool));
        let case = format!("glu [{rows}, {WIDTH}]");
        group.case(&case, Amount::Bytes(12 * len), setup, |pool, operands| operands.glu(pool));
    }
    drop(group);
    criterion.final_summary();
}

struct Operands {
    x: Vec<f32>,
    up: Vec<f32>,
    weight: Vec<f32>,
    y: Vec<f32>,
}

impl Operands {
    fn new(len: usize) -> Self {
        let x = noise(len);
        let mut operands =
            Self { up: x.iter().rev().copied().collect(), x, weight: vec![2.0; WIDTH], y: vec![0.0; len] };
        operands.rms_norm(Pool::global());
        for y in operands.y.chunks_exact(WIDTH) {
            let mean_square = y.iter().map(|y| f64::from(*y).powi(2)).sum::<f64>() / WIDTH as f64;
            assert!((mean_square - 4.0).abs() < 1e-4, "{mean_square}");
        }
        operands.glu(Pool::global());
        for ((gate, up), y) in operands.x.iter().zip(&operands.up).zip(&operands.y) {
            let exact = f64::from(*gate) / (1.0 + (-f64::from(*gate)).exp()) * f64::from(*up);
            assert!((f64::from(*y) - exact).abs() < 1e-6, "{y} is not {exact}");
        }
        operands
    }

    fn rms_norm(&mut self, pool: &Pool) {
        host::rms_norm(pool, &self.x, &self.weight, 0.0, &mut self.y);
    }

    fn glu(&mut self, pool: &Pool) {
        host::glu(pool, &self.x, &self.up, Activation::Silu, &mut self.y);
    }
}
