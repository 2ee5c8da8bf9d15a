//! `short_conv` against loops in double precision, and against itself.

use super::super::testing::{Random, bits, in_pieces};
use super::*;

/// The results for one whole sequence.
fn exact(x: &[f32], channels: usize, kernel: usize, taps: &[f32], bias: &[f32]) -> Vec<f64> {
    let part = |row: usize, part: usize, channel: usize| f64::from(x[(3 * row + part) * channels + channel]);
    let mut out = Vec::new();
    for row in 0..x.len() / (3 * channels) {
        for channel in 0..channels {
            let mut sum = f64::from(bias[channel]);
            for back in 0..kernel.min(row + 1) {
                let tap = f64::from(taps[channel * kernel + kernel - 1 - back]);
                sum += tap * part(row - back, 0, channel) * part(row - back, 2, channel);
            }
            out.push(part(row, 1, channel) * sum);
        }
    }
    out
}

#[test]
fn rows_equal_the_definition_for_every_split() {
    let mut random = Random(71);
    for (channels, kernel) in [(1, 2), (16, 3), (20, 4), (200, 3), (33, 2), (5, 1)] {
        let (taps, bias) = (random.normal(channels * kernel), random.normal(channels));
        let conv = CausalConv::new(kernel, channels, &taps, Some(&bias));
        let inputs = [75, 3, 40].map(|rows| random.normal(3 * rows * channels));
        let run = |isa, threads, piece| {
            let (pool, mut states) = (Pool::new(threads), StatePages::new(6, conv.state_len()).unwrap());
            states.get_mut(0).fill(f32::NAN); // The previous content of a page is ignored.
            in_pieces(&inputs, 3 * channels, piece, |layout, x| {
                let mut out = vec![f32::NAN; x.len() / 3];
                short_conv_on(isa, &pool, x, &conv, &mut states, layout, &mut out);
                out
            })
        };
        let reference = run(Isa::Scalar, 1, usize::MAX);
        for (input, found) in inputs.iter().zip(&reference) {
            for (found, exact) in found.iter().zip(exact(input, channels, kernel, &taps, &bias)) {
                let error = (f64::from(*found) - exact).abs();
                assert!(error <= 2e-6, "{channels} channels of {kernel} taps: {found}, not {exact}");
            }
        }
        for &isa in Isa::supported() {
            for piece in [1, 7, 32, 100] {
                for (found, reference) in run(isa, 3, piece).iter().zip(&reference) {
                    assert_eq!(
                        bits(found),
                        bits(reference),
                        "{channels} channels in pieces of {piece}, {isa}"
                    );
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "states are those of the convolution")]
fn states_of_another_size_are_rejected() {
    let conv = CausalConv::new(3, 4, &[1.0; 12], None);
    let mut states = StatePages::new(1, 7).unwrap();
    short_conv(&Pool::new(1), &[], &conv, &mut states, &RaggedLayout::default(), &mut []);
}

/// Two sequences of one row each, with these pages for their states.
fn two_sequences(rows: [std::ops::Range<usize>; 2], pages: [u32; 2]) {
    let conv = CausalConv::new(3, 4, &[1.0; 12], None);
    let mut states = StatePages::new(2, conv.state_len()).unwrap();
    let (layout, len) = (crate::host::testing::beside(rows, pages), 4 * 2);
    short_conv(&Pool::new(2), &vec![1.0; 3 * len], &conv, &mut states, &layout, &mut vec![0.0; len]);
}

#[test]
#[should_panic(expected = "sequences 0 and 1 write page 1")]
fn page_of_two_sequences_is_rejected() {
    two_sequences([0..1, 1..2], [1, 1]);
}

#[test]
#[should_panic(expected = "1..2 follows rows that end at 2")]
fn rows_of_two_sequences_are_rejected() {
    two_sequences([0..2, 1..2], [0, 1]);
}
