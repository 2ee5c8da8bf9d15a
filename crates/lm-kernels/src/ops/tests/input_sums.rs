//! Recorded inputs of weights.

use super::*;

fn assert_sums(what: &str, got: &InputSum, rows: &[&[f32]]) {
    let square = |col: usize| rows.iter().map(|row| f64::from(row[col]).powi(2)).sum::<f64>();
    assert_eq!(got.rows, rows.len() as u64, "{what}");
    for (col, got) in got.squares.iter().enumerate() {
        assert!(
            (got - square(col)).abs() <= 1e-5 * (1.0 + square(col)),
            "{what}: column {col}: {got} and {}",
            square(col)
        );
    }
}

/// A weight of noise whose inputs are recorded.
fn recorded(matrices: usize, rows: usize, cols: usize, seed: usize) -> (Weight, Arc<InputSums>) {
    let values = noise(matrices * rows * cols, seed);
    let format = WeightFormat::F32;
    let packed = PackedMatrix::pack(format, matrices * rows, cols, Source::F32(&values)).unwrap();
    let inputs = Arc::new(InputSums::new(matrices, cols));
    (Weight::from(Arc::new(packed)).with_inputs(Arc::clone(&inputs)), inputs)
}

#[test]
fn products_add_the_squares_of_their_inputs() {
    for device in host_devices() {
        let x = || noise_tensor([3, 8], 71, &device);
        let norm = || noise_tensor([8], 72, &device);
        let weights = [73, 74, 75].map(|seed| recorded(1, 5, 8, seed));
        let [(q, of_q), (k, of_k), (v, of_v)] = &weights;
        linear(x(), q);
        linear_add(x(), k, None, noise_tensor([3, 5], 76, &device));
        linear_bias(x(), v, noise_tensor([5], 77, &device), None);
        let rows = noise(24, 71);
        let rows: Vec<_> = rows.chunks(8).collect();
        for of in [of_q, of_k, of_v] {
            assert_sums("linear", &of.matrices()[0], &rows);
        }
        let normed = to_host(rms_norm(x(), norm(), 1e-5)).unwrap();
        let both: Vec<_> = rows.iter().copied().chain(normed.chunks(8)).collect();
        let [y, ..] = qkv(x(), norm(), 1e-5, [q, k, v], [None, None, None]);
        for of in [of_q, of_k, of_v] {
            assert_sums("qkv", &of.matrices()[0], &both);
        }
        assert_close("q", y, linear(rms_norm(x(), norm(), 1e-5), q), 1e-6);
        let biases = [91, 92, 93].map(|seed| Some(noise_tensor([5], seed, &device)));
        let biased = qkv(x(), norm(), 1e-5, [q, k, v], biases.clone());
        for ((y, weight), bias) in biased.into_iter().zip([q, k, v]).zip(biases.into_iter().flatten()) {
            assert_close("qkv", y, linear_bias(rms_norm(x(), norm(), 1e-5), weight, bias, None), 1e-6);
        }
        let [(gate, of_gate), (up, of_up)] = [78, 79].map(|seed| recorded(1, 5, 8, seed));
        gated(x(), norm(), 1e-5, &gate, &up, Activation::Silu);
        for of in [of_gate, of_up] {
            assert_sums("gated", &of.matrices()[0], &normed.chunks(8).collect::<Vec<_>>());
        }
    }
}

#[test]
fn experts_sum_only_their_rows() {
    let (count, hidden, inner) = (3, 8, 6);
    let routing = Routing { per_row: 2, experts: vec![2, 0, 0, 2], weights: vec![0.5; 4] };
    for device in host_devices() {
        let shapes = [(inner, hidden, 81), (inner, hidden, 82), (hidden, inner, 83)];
        let weights = shapes.map(|(rows, cols, seed)| recorded(count, rows, cols, seed));
        let sums = weights.each_ref().map(|(_, sums)| Arc::clone(sums));
        let experts = Experts::new(count, weights.map(|(weight, _)| weight), None, Activation::Silu);
        moe(noise_tensor([2, hidden], 84, &device), &experts, &Arc::new(routing.clone()));
        let x = noise(2 * hidden, 84);
        let rows: Vec<_> = x.chunks(hidden).collect();
        let [of_gate, of_up, of_down] = sums.map(|sums| sums.matrices());
        for expert in [0, 2] {
            assert_sums("gate", &of_gate[expert], &rows);
            assert_sums("up", &of_up[expert], &rows);
            let product = |seed| {
                let w = &noise(count * inner * hidden, seed)[expert * inner * hidden..][..inner * hidden];
                let packed = PackedMatrix::pack(WeightFormat::F32, inner, hidden, Source::F32(w)).unwrap();
                linear(noise_tensor([2, hidden], 84, &device), &Weight::from(Arc::new(packed)))
            };
            let gated = to_host(glu(product(81), product(82), Activation::Silu)).unwrap();
            assert_sums("down", &of_down[expert], &gated.chunks(inner).collect::<Vec<_>>());
        }
        assert_eq!((of_gate[1].rows, of_down[1].rows), (0, 0));
    }
}

#[test]
#[should_panic(expected = "the bias must be as long as a row of the result")]
fn longer_bias_is_rejected() {
    let device = Device::Cpu.burn().unwrap();
    let w = PackedMatrix::pack(WeightFormat::F32, 5, 8, Source::F32(&noise(5 * 8, 1))).unwrap();
    let w = Weight::from(Arc::new(w));
    let biases = [Some(noise_tensor([6], 4, &device)), None, None];
    qkv(noise_tensor([3, 8], 2, &device), noise_tensor([8], 3, &device), 1e-5, [&w, &w, &w], biases);
}
