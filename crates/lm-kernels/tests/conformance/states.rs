//! Operations with recurrent states: ragged batches, in several steps, over pages in any order.

use std::ops::Range;
use std::sync::Arc;

use burn::tensor::Tensor;
use lm_kernels::HeadOrder::{Grouped, Tiled};
use lm_kernels::{
    CacheLayout, CausalConv, DeltaNet, DeltaNetSpec, KvDtype, KvPool, LayerCache, Mamba2, Mamba2Spec,
    PAGE_LEN, RaggedLayout, SequenceLayout, delta_net, from_host, mamba2, short_conv, to_host,
};

use super::{Random, Target, assert_close};

/// Rows of three sequences in each step: prompts, chunks, single tokens, and none of the last.
const STEPS: [[usize; 3]; 4] = [[70, 1, 33], [5, 60, 31], [1, 1, 1], [1, 40, 0]];
const PAGES: usize = 5;

/// Runs sequences step by step. `inputs` are all rows of each sequence, split into parts of these widths,
/// `results` the expected results of each row.
fn steps(
    target: &Target,
    what: &str,
    state_len: usize,
    widths: &[usize],
    inputs: &[Vec<Vec<f32>>],
    results: &[Vec<Vec<f64>>],
    mut operation: impl FnMut(Vec<Tensor<2>>, &mut KvPool, &Arc<RaggedLayout>) -> Vec<f32>,
) {
    let mut random = Random::new(8);
    // The middle layer is used.
    let layers = [3, state_len, 3].map(|len| LayerCache::State { len });
    let mut pool = KvPool::new(target.device, &CacheLayout::new(layers), 256, KvDtype::F32).unwrap();
    let pages = random.shuffled(pool.num_pages(0));
    (0..pool.num_pages(0) as u32).for_each(|page| pool.states(1).get_mut(page).fill(7.0));
    let mut done = [0; 3];
    for lengths in STEPS {
        let (mut layout, mut rows, mut expected) =
            (RaggedLayout::default(), vec![Vec::new(); widths.len()], vec![]);
        for (sequence, len) in lengths.into_iter().enumerate() {
            let range: Range<usize> = done[sequence]..done[sequence] + len;
            for (part, &width) in widths.iter().enumerate() {
                rows[part].extend_from_slice(&inputs[sequence][part][range.start * width..range.end * width]);
            }
            expected.extend(results[sequence][range.clone()].concat());
            let table = &pages[sequence * PAGES..][..range.end.div_ceil(PAGE_LEN)];
            let (first, cached_len) = (layout.rows(), range.start);
            let block_table = table.to_vec();
            let rows = first..first + len;
            layout.sequences.push(SequenceLayout {
                rows,
                cached_len,
                block_table,
                bidirectional: vec![],
                reach: None,
            });
            done[sequence] = range.end;
        }
        let tensors = rows
            .into_iter()
            .zip(widths)
            .map(|(rows, &width)| from_host(rows, [layout.rows(), width], &target.burn));
        let got = operation(tensors.collect(), &mut pool, &Arc::new(layout));
        assert_close(&format!("{what}, {lengths:?} rows, on {}", target.device), &got, &expected, |_| 2e-5);
    }
}

fn total_rows(sequence: usize) -> usize {
    STEPS.iter().map(|lengths| lengths[sequence]).sum()
}

/// A channel's convolution sum over the newest inputs.
fn tap_sum(taps: &[f32], row: usize, input: impl Fn(usize) -> f64) -> f64 {
    let taps = taps.iter().rev().take(row + 1).enumerate();
    taps.map(|(back, &tap)| f64::from(tap) * input(row - back)).sum()
}

pub fn check_short_conv(target: &Target) {
    let mut random = Random::new(9);
    for (channels, kernel, biased) in [(1, 2, false), (20, 3, true), (64, 3, false), (150, 4, true)] {
        let taps = random.values(channels * kernel, 1.0);
        let bias = if biased { random.values(channels, 1.0) } else { vec![0.0; channels] };
        let conv = CausalConv::new(kernel, channels, &taps, biased.then_some(&bias));
        let conv = Arc::new(conv);
        let inputs: Vec<_> =
            (0..3).map(|sequence| vec![random.values(total_rows(sequence) * 3 * channels, 1.5)]).collect();
        let results: Vec<Vec<Vec<f64>>> = inputs
            .iter()
            .map(|parts| {
                let at = |row: usize, part: usize, channel: usize| {
                    f64::from(parts[0][(row * 3 + part) * channels + channel])
                };
                let result = |row: usize, channel: usize| {
                    let taps = &taps[channel * kernel..(channel + 1) * kernel];
                    let sum = tap_sum(taps, row, |row| at(row, 0, channel) * at(row, 2, channel));
                    at(row, 1, channel) * (sum + f64::from(bias[channel]))
                };
                let rows = parts[0].len() / (3 * channels);
                (0..rows).map(|row| (0..channels).map(|channel| result(row, channel)).collect()).collect()
            })
            .collect();
        let what = format!("short_conv of {channels} channels, {kernel} taps");
        steps(
            target,
            &what,
            conv.state_len(),
            &[3 * channels],
            &inputs,
            &results,
            |mut rows, pool, layout| {
                let got = short_conv(rows.remove(0), &conv, pool, 1, layout);
                assert_eq!(got.dims(), [layout.rows(), channels]);
                to_host(got).unwrap()
            },
        );
    }
}

pub fn check_delta_net(target: &Target) {
    let mut random = Random::new(10);
    for ([num_key_heads, num_value_heads], order, [key_dim, value_dim], kernel) in [
        ([1, 1], Grouped, [4, 6], 2),
        ([2, 4], Grouped, [16, 32], 4),
        ([2, 6], Tiled, [16, 32], 4),
        ([2, 2], Grouped, [24, 20], 4),
        ([1, 3], Grouped, [64, 128], 3),
    ] {
        let spec = DeltaNetSpec { num_key_heads, num_value_heads, key_dim, value_dim, order };
        let taps = random.values(spec.width() * kernel, 1.0);
        let rates: Vec<f32> = random.values(num_value_heads, 1.0).iter().map(|rate| rate.exp()).collect();
        let biases = random.values(num_value_heads, 1.0);
        let conv = CausalConv::new(kernel, spec.width(), &taps, None);
        let net = Arc::new(DeltaNet::new(spec, conv, rates.clone(), biases.clone()));
        let widths = [spec.width(), num_value_heads, num_value_heads];
        let inputs: Vec<_> = (0..3)
            .map(|sequence| widths.map(|width| random.values(total_rows(sequence) * width, 1.5)).to_vec())
            .collect();
        let results: Vec<_> =
            inputs.iter().map(|parts| reference(&spec, kernel, &taps, [&rates, &biases], parts)).collect();
        let what = format!("delta_net {spec:?}, {kernel} taps");
        steps(target, &what, net.state_len(), &widths, &inputs, &results, |rows, pool, layout| {
            let [qkv, dt, beta] = rows.try_into().unwrap();
            let got = delta_net(qkv, dt, beta, &net, pool, 1, layout);
            assert_eq!(got.dims(), [layout.rows(), num_value_heads, value_dim]);
            to_host(got).unwrap()
        });
    }
}

pub fn check_mamba2(target: &Target) {
    let mut random = Random::new(11);
    let unlimited = [0.0, f32::INFINITY];
    for ([num_heads, head_dim, num_groups, state_dim], time_step_limit, kernel) in [
        ([1, 4, 1, 6], unlimited, 2),
        ([4, 16, 2, 32], unlimited, 4),
        ([3, 20, 1, 24], [0.2, 0.9], 4),
        ([6, 64, 3, 16], unlimited, 3),
    ] {
        let spec = Mamba2Spec { num_heads, head_dim, num_groups, state_dim, time_step_limit };
        let [taps, conv_bias] = [kernel, 1].map(|of_each| random.values(spec.conv_width() * of_each, 1.0));
        let rates: Vec<f32> = random.values(num_heads, 1.0).iter().map(|rate| rate.exp()).collect();
        let [biases, skips] = [(); 2].map(|()| random.values(num_heads, 1.0));
        let conv = CausalConv::new(kernel, spec.conv_width(), &taps, Some(&conv_bias));
        let net = Arc::new(Mamba2::new(spec, conv, rates.clone(), biases.clone(), skips.clone()));
        let width = spec.projected_width();
        let inputs: Vec<_> =
            (0..3).map(|sequence| vec![random.values(total_rows(sequence) * width, 1.0)]).collect();
        let weights = [&taps, &conv_bias, &rates, &biases, &skips].map(Vec::as_slice);
        let results: Vec<_> =
            inputs.iter().map(|parts| mamba2_reference(&spec, kernel, weights, &parts[0])).collect();
        let what = format!("mamba2 {spec:?}, {kernel} taps");
        steps(target, &what, net.state_len(), &[width], &inputs, &results, |mut rows, pool, layout| {
            let got = mamba2(rows.remove(0), &net, pool, 1, layout);
            assert_eq!(got.dims(), [layout.rows(), spec.inner_width()]);
            to_host(got).unwrap()
        });
    }
}

/// Reference results of `mamba2` for one whole sequence.
fn mamba2_reference(
    spec: &Mamba2Spec,
    kernel: usize,
    [taps, conv_bias, rates, biases, skips]: [&[f32]; 5],
    rows: &[f32],
) -> Vec<Vec<f64>> {
    let Mamba2Spec { num_heads, head_dim, num_groups, state_dim, time_step_limit } = *spec;
    let (width, inner) = (spec.projected_width(), spec.inner_width());
    let [shortest, longest] = time_step_limit.map(f64::from);
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let mut matrices = vec![vec![vec![0.0; state_dim]; head_dim]; num_heads];
    let mut results = Vec::new();
    for row in 0..rows.len() / width {
        let channel = |channel: usize| {
            let taps = &taps[channel * kernel..(channel + 1) * kernel];
            let sum = tap_sum(taps, row, |row| f64::from(rows[row * width + inner + channel]));
            silu(sum + f64::from(conv_bias[channel]))
        };
        let mixed: Vec<f64> = (0..spec.conv_width()).map(channel).collect();
        let mut result = Vec::new();
        for (head, matrix) in matrices.iter_mut().enumerate() {
            let group = head / (num_heads / num_groups);
            let b = &mixed[inner + group * state_dim..][..state_dim];
            let c = &mixed[inner + (num_groups + group) * state_dim..][..state_dim];
            let dt = f64::from(rows[(row + 1) * width - num_heads + head]) + f64::from(biases[head]);
            let dt = dt.exp().ln_1p().clamp(shortest, longest);
            let alpha = (-f64::from(rates[head]) * dt).exp();
            for (column, column_state) in matrix.iter_mut().enumerate() {
                let x = mixed[head * head_dim + column];
                column_state.iter_mut().zip(b).for_each(|(state, b)| *state = *state * alpha + dt * x * b);
                let read: f64 = column_state.iter().zip(c).map(|(state, c)| state * c).sum();
                result.push(read + x * f64::from(skips[head]));
            }
        }
        results.push(result);
    }
    results
}

/// Reference results of `delta_net` for one whole sequence.
fn reference(
    spec: &DeltaNetSpec,
    kernel: usize,
    taps: &[f32],
    [rates, biases]: [&[f32]; 2],
    parts: &[Vec<f32>],
) -> Vec<Vec<f64>> {
    let DeltaNetSpec { num_key_heads, num_value_heads, key_dim, value_dim, order } = *spec;
    let (width, keys) = (spec.width(), num_key_heads * key_dim);
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let mut matrices = vec![vec![vec![0.0; key_dim]; value_dim]; num_value_heads];
    let mut results = Vec::new();
    for row in 0..parts[0].len() / width {
        let channel = |channel: usize| {
            let taps = &taps[channel * kernel..(channel + 1) * kernel];
            silu(tap_sum(taps, row, |row| f64::from(parts[0][row * width + channel])))
        };
        let mixed: Vec<f64> = (0..width).map(channel).collect();
        let mut result = Vec::new();
        for (head, matrix) in matrices.iter_mut().enumerate() {
            let key_head = match order {
                Grouped => head / (num_value_heads / num_key_heads),
                Tiled => head % num_key_heads,
            };
            let unit = |start: usize| -> Vec<f64> {
                let x = &mixed[start + key_head * key_dim..][..key_dim];
                let length = (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
                x.iter().map(|x| x / length).collect()
            };
            let (q, k) = (unit(0), unit(keys));
            let gate = |part: usize| f64::from(parts[part][row * num_value_heads + head]);
            let softplus = (gate(1) + f64::from(biases[head])).exp().ln_1p();
            let alpha = (-f64::from(rates[head]) * softplus).exp();
            let beta = 1.0 / (1.0 + (-gate(2)).exp());
            for (column, column_state) in matrix.iter_mut().enumerate() {
                let value = mixed[2 * keys + head * value_dim + column];
                column_state.iter_mut().for_each(|x| *x *= alpha);
                let dot = |state: &[f64], x: &[f64]| state.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
                let correction = (value - dot(column_state, &k)) * beta;
                column_state.iter_mut().zip(&k).for_each(|(x, k)| *x += k * correction);
                result.push(dot(column_state, &q) / (key_dim as f64).sqrt());
            }
        }
        results.push(result);
    }
    results
}
