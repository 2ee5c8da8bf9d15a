//! Extreme values: large scores, weights and sinks, infinities, NaN, and unwritten slots.

use super::*;

/// One head of sixteen dimensions, and queries whose score is the first element of a key.
fn first_element(slots: usize) -> Case {
    let spec = AttentionSpec {
        num_heads: 1,
        num_kv_heads: 1,
        head_dim: 16,
        scale: 1.0,
        window: None,
        soft_cap: None,
        sinks: None,
    };
    let mut case = Case::new(&mut Random(17), spec, &[(0, slots)]);
    case.queries[0] = [[1.0].as_slice(), &[0.0; 15]].concat().repeat(slots);
    case.keys[0] = vec![0.0; slots * 16];
    case
}

/// The large weight's value is not 0 in another column, so that its scale counts among those of the chunk.
#[test]
fn small_weights_beside_a_large_one_count() {
    let mut case = first_element(250);
    // exp(7.32) = 1506 times the others, which are 10.88 of 16,383 steps. The key, 127 times a bf16, is exact
    // in 8 bits.
    case.keys[0][0] = 127.0 * 236.0 / 4096.0;
    case.values[0] = [[1.0].as_slice(), &[0.0; 15]].concat().repeat(250);
    case.values[0][..2].copy_from_slice(&[0.0, 1.0]);
    let exact = case.expected(0, 249, 0)[0];
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
        let last = f64::from(case.run(Isa::current(), 2, dtype, 250)[0][249 * 16]);
        assert!((last / exact - 1.0).abs() < 0.02, "{dtype}: {last}, exactly {exact}");
    }
}

#[test]
fn infinity_and_nan_reach_only_rows_that_see_them() {
    for broken in [f32::NAN, f32::INFINITY] {
        let mut case = first_element(70);
        case.values[0][40 * 16 + 3] = broken;
        let out = &case.run(Isa::current(), 2, KvDtype::Q8, 70)[0];
        let reached = [0, 39, 40, 69].map(|row| !out[row * 16 + 3].is_finite());
        assert_eq!(reached, [false, false, true, true], "{broken}");
    }
}

#[test]
fn unwritten_slots_are_ignored() {
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
        let case = first_element(5);
        let mut layer = PagedLayer::new(dtype, 1, 1, 16).unwrap();
        let rows = |cached_len, rows| {
            let sequence =
                SequenceLayout { rows: 0..rows, cached_len, block_table: vec![0], ..Default::default() };
            RaggedLayout { sequences: vec![sequence] }
        };
        let run = |layer: &PagedLayer| {
            let mut y = [0.0; 16];
            attention_on(
                Isa::current(),
                &Pool::new(1),
                &case.queries[0][..16],
                layer,
                &rows(4, 1),
                &case.spec,
                &mut y,
            );
            bits(&y)
        };
        layer.write(&Pool::new(1), &rows(0, 5), &case.keys[0], &case.values[0]);
        let clean = run(&layer);
        // Contents that an earlier sequence left in the page.
        layer.write(&Pool::new(1), &rows(5, 27), &[f32::NAN; 27 * 16], &[f32::NAN; 27 * 16]);
        assert_eq!(run(&layer), clean, "{dtype}");
    }
}

#[test]
fn large_score_takes_all_weight_without_overflow() {
    let spec = AttentionSpec {
        num_heads: 1,
        num_kv_heads: 1,
        head_dim: 1,
        scale: 1.0,
        window: None,
        soft_cap: None,
        sinks: None,
    };
    let mut case = Case::new(&mut Random(14), spec, &[(0, 40)]);
    case.queries[0] = vec![1000.0; 40];
    case.keys[0] = (0..40).map(|slot| slot as f32).collect();
    case.values[0] = case.keys[0].clone();
    assert_eq!(case.run(Isa::current(), 1, KvDtype::F32, 40)[0], case.keys[0]);
}

#[test]
fn score_far_above_the_cap_equals_the_cap() {
    let mut case = first_element(5);
    case.spec.soft_cap = Some(1.0);
    case.keys[0].iter_mut().step_by(32).for_each(|x| *x = 1000.0);
    case.check(KvDtype::F32, 2e-6);
}

#[test]
fn sink_far_above_the_scores_takes_all_weight() {
    for (sink, left) in [(1000.0, 0.0), (-1000.0, 1.0)] {
        let mut case = first_element(3);
        case.spec.sinks = Some([sink].into());
        case.values[0] = vec![1.0; 3 * 16];
        assert_eq!(case.run(Isa::current(), 1, KvDtype::F32, 3)[0], [left; 3 * 16], "{sink}");
    }
}

#[test]
fn result_rounded_to_zero_is_positive() {
    let mut case = first_element(2);
    case.values[0] = vec![-f32::from_bits(1); 2 * 16];
    case.values[0][16..].fill(0.0);
    let out = &case.run(Isa::current(), 1, KvDtype::F32, 2)[0];
    assert_eq!(bits(&out[16..]), [0; 16]);
}

/// 127 and its scale 1 are exact in 8 bits.
#[test]
fn equal_values_are_exact_in_8_bits() {
    let mut case = first_element(40);
    case.values[0] = vec![127.0; 40 * 16];
    let out = &case.run(Isa::current(), 1, KvDtype::Q8, 40)[0];
    assert!(out.iter().all(|x| (x - 127.0).abs() < 0.1), "{out:?}");
}

#[test]
fn queries_are_rounded_to_the_nearest() {
    let mut case = first_element(2);
    case.spec.scale = 1.0 / 127.0;
    case.queries[0] = [[127.0, 0.9].as_slice(), &[0.0; 14]].concat().repeat(2);
    case.keys[0][1] = 127.0;
    case.values[0] = [[127.0; 16], [0.0; 16]].concat();
    let got = case.run(Isa::current(), 1, KvDtype::Q8, 2)[0][16];
    let e = std::f32::consts::E;
    assert!((got - 127.0 * e / (e + 1.0)).abs() < 0.5, "{got}");
}

#[test]
fn nan_in_query_or_key_propagates() {
    let sinks = [None, Some([0.0].into())];
    for (dtype, sinks) in [KvDtype::F32, KvDtype::F16, KvDtype::Q8]
        .iter()
        .flat_map(|&dtype| sinks.each_ref().map(|sinks| (dtype, sinks)))
    {
        let broken = |case: &mut Case| {
            case.spec.sinks = sinks.clone();
            let out = &case.run(Isa::current(), 1, dtype, 5)[0];
            out.chunks(16).map(|out| out.iter().all(|x| x.is_nan())).collect::<Vec<bool>>()
        };
        let mut case = first_element(5);
        case.queries[0][2 * 16 + 3] = f32::NAN;
        assert_eq!(broken(&mut case), [false, false, true, false, false], "{dtype}, {sinks:?}");
        let mut case = first_element(5);
        case.keys[0][2 * 16 + 3] = f32::NAN;
        assert_eq!(broken(&mut case), [false, false, true, true, true], "{dtype}, {sinks:?}");
    }
}
