//! Parts of rows and of weights: tasks, and pairs of tiles within one.

use super::*;

#[test]
fn row_range_gives_its_part_of_the_products() {
    let mut random = Random(8);
    for format in formats() {
        for m in [1, 20] {
            let (w, x) = case(&mut random, format, 70, 256, m);
            let all = run(Isa::current(), 2, &w, &x, m);
            for rows in [0..70, 16..16, 16..50, 32..64, 64..70] {
                let part = run(Isa::current(), 2, &w.row_range(rows.clone()), &x, m);
                let expected: Vec<f32> = all.chunks(70).flat_map(|all| all[rows.clone()].to_vec()).collect();
                assert_eq!(bits(&part), bits(&expected), "{w:?}, rows {rows:?}");
            }
        }
    }
}

#[test]
fn rows_beyond_one_task_are_computed() {
    let mut random = Random(9);
    for format in [WeightFormat::F32, WeightFormat::Q8, WeightFormat::Q4] {
        let (w, x) = case(&mut random, format, 50, 64, 1030);
        for &isa in Isa::supported() {
            let all = run(isa, 2, &w, &x, 1030);
            for row in [0, 511, 512, 513, 1023, 1024, 1029] {
                let alone = run(Isa::Scalar, 1, &w, &x[row * 64..(row + 1) * 64], 1);
                assert_eq!(
                    bits(&all[row * 50..(row + 1) * 50]),
                    bits(&alone),
                    "{format} with {isa}, row {row}"
                );
            }
        }
    }
}

/// Paths of AVX2 cut rows into pieces whose activations fit the L2 cache: 64 rows and more.
#[test]
fn rows_of_pieces_for_the_cache_are_computed() {
    let mut random = Random(11);
    let q5_0 = WeightFormat::Ggml(GgmlType::Q5_0);
    for format in [WeightFormat::F32, WeightFormat::Q4, q5_0, WeightFormat::Ggml(GgmlType::Q6K)] {
        let (w, x) = case(&mut random, format, 40, 5120, 139);
        let expected = bits(&run(Isa::Scalar, 1, &w, &x, 139));
        for &isa in Isa::supported() {
            let pieces = 139_usize.div_ceil(tasks::rows_of_task(isa, &w));
            let expected_pieces = if matches!(isa, Isa::Avx2 | Isa::AvxVnni) { 3 } else { 1 };
            assert_eq!(pieces, expected_pieces, "{format} with {isa}");
            assert_eq!(bits(&run(isa, 2, &w, &x, 139)), expected, "{format} with {isa}");
        }
    }
    let narrow = case(&mut random, q5_0, 16, 256, 1).0;
    assert_eq!(tasks::rows_of_task(Isa::Avx2, &narrow), 512);
}

/// Tasks of seven pairs of tiles: three (170 rows), two (200) and one (300) at a time.
#[test]
fn pairs_beyond_one_pass_are_computed() {
    let mut random = Random(10);
    for m in [170, 200, 300] {
        let (gate, x) = case(&mut random, WeightFormat::Q4, 7 * 32, 32, m);
        let (up, _) = case(&mut random, WeightFormat::Q4, 7 * 32, 32, m);
        let (gates, ups) = (run(Isa::Scalar, 1, &gate, &x, m), run(Isa::Scalar, 1, &up, &x, m));
        for row in [0, m - 1] {
            let alone = run(Isa::Scalar, 1, &gate, &x[row * 32..(row + 1) * 32], 1);
            assert_eq!(bits(&gates[row * 224..(row + 1) * 224]), bits(&alone), "{m} rows, row {row}");
        }
        let mut y = vec![f32::NAN; m * 224];
        let input = Input { x: &x, rows: m, norm: None };
        gated_on(Isa::current(), &Pool::new(1), input, [&gate, &up], Activation::Silu, &mut y);
        let expected: Vec<f32> = gates.iter().zip(&ups).map(|(g, u)| Activation::Silu.gate(*g, *u)).collect();
        assert_eq!(bits(&y), bits(&expected), "{m} rows");
    }
}
