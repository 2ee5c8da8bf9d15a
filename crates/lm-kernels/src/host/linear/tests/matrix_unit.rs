//! Products on a matrix unit, run by an interpreter of its program.

use super::super::super::lanes::{Kernel, LANES, Lanes, run_avx512};
use super::super::super::matrix_unit::tests::Interpreter;
use super::super::multiply::multiply;
use super::*;

/// Rows times the first two tiles of a weight, from row `first` on.
struct Pair<'a> {
    w: &'a PackedMatrix,
    rows: &'a Rows<'a>,
    first: usize,
    out: &'a mut [[[f32; LANES]; 2]],
}

impl Kernel for Pair<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let rows = self.first..self.first + self.out.len();
        multiply::<V>(self.w, [0, 1], self.rows, rows, self.out);
    }
}

#[test]
fn matrix_unit_tiles_give_the_same_bits() {
    if !Isa::supported().contains(&Isa::Avx512) {
        println!("skipped: the interpreted matrix unit is used with AVX-512, which this processor lacks");
        return;
    }
    let mut random = Random(5);
    let ggml = GgmlType::ALL.iter().map(|&ggml| WeightFormat::Ggml(ggml));
    for format in [WeightFormat::Q4, WeightFormat::Q8].into_iter().chain(ggml) {
        for (cols, m) in [(256, 32), (64, 9), (600, 40), (1024, 70), (96, 33), (1300, 12)] {
            let (w, x) = case(&mut random, format, 32, cols, m);
            let input = Input { x: &x, rows: m, norm: None };
            let rows = Rows::of(Isa::Scalar, &Pool::new(1), &input, [&w].into_iter());
            let mut expected = vec![[[0.0; LANES]; 2]; m];
            Isa::Scalar.run(Pair { w: &w, rows: &rows, first: 0, out: &mut expected });
            for first in [0, 7] {
                let mut out = vec![[[f32::NAN; LANES]; 2]; m - first];
                // SAFETY: AVX-512 is there, as checked above.
                unsafe { run_avx512::<Interpreter, _>(Pair { w: &w, rows: &rows, first, out: &mut out }) };
                assert_eq!(out, expected[first..], "{format} [{m}, {cols}] from row {first}");
            }
        }
    }
}
