//! Portable bodies against the slice kernels, and device forms of weights and caches on host memory, so that
//! they are tested without a GPU.

mod caches;
mod input_sums;

use std::sync::Arc;

use burn::backend::Dispatch;
use burn::tensor::{Device as BurnDevice, Tensor};

use super::backend::Bridge;
use super::weight::{Matrix, Weight};
use super::*;
use crate::host::testing::Random;
use crate::{
    Activation, AttentionSpec, Device, GgmlType, PackedMatrix, RaggedLayout, RopePairing, RopeTable, Routing,
    SequenceLayout, Source, WeightFormat,
};

/// Devices whose tensors are in host memory.
fn host_devices() -> Vec<BurnDevice> {
    let on_host = Device::available().iter().filter(|&&device| device != Device::Gpu);
    on_host.map(|device| device.burn().unwrap()).collect()
}

/// Pseudo-random values between -1 and 1.
fn noise(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7 + seed * 13 + 1) as f32 * 0.731).sin()).collect()
}

fn noise_tensor<const D: usize>(shape: [usize; D], seed: usize, device: &BurnDevice) -> Tensor<D> {
    from_host(noise(shape.iter().product(), seed), shape, device)
}

fn assert_close<const D: usize>(what: &str, one: Tensor<D>, other: Tensor<D>, tolerance: f32) {
    assert_eq!(one.dims(), other.dims(), "{what}");
    let (one, other) = (to_host(one).unwrap(), to_host(other).unwrap());
    for (index, (one, other)) in one.iter().zip(&other).enumerate() {
        assert!((one - other).abs() <= tolerance, "{what}: element {index}: {one} and {other}");
    }
}

#[test]
fn row_operations_equal_their_default_bodies() {
    for device in host_devices() {
        let x = || noise_tensor([5, 48], 1, &device);
        let weight = || noise_tensor([48], 2, &device);
        assert_close(
            "rms_norm",
            rms_norm(x(), weight(), 1e-5),
            rms_norm::portable(x(), weight(), 1e-5),
            2e-6,
        );
        let bias = || noise_tensor([48], 5, &device);
        assert_close(
            "layer_norm",
            layer_norm(x(), weight(), bias(), 1e-5),
            layer_norm::portable(x(), weight(), bias(), 1e-5),
            4e-6,
        );
        let up = || noise_tensor([5, 48], 3, &device);
        let clamped = Activation::ClampedSwiglu { alpha: 1.702, limit: 0.5 };
        for activation in [
            Activation::Silu,
            Activation::GeluTanh,
            Activation::Sigmoid,
            Activation::Gelu,
            Activation::QuickGelu,
            Activation::Relu,
            Activation::ReluSquared,
            Activation::Xielu { alpha_p: 0.7, alpha_n: 1.3, beta: 0.5, eps: -1e-6 },
            clamped,
        ] {
            let what = format!("glu by {activation:?}");
            assert_close(&what, glu(x(), up(), activation), glu::portable(x(), up(), activation), 1e-6);
        }
        let heads = || noise_tensor([5, 3, 16], 4, &device);
        let table = RopeTable { inv_freq: vec![1.0, 0.3, 0.01, 1e-4, 1e-5], attention_factor: 1.1 };
        for pairing in [RopePairing::HalfSplit, RopePairing::Adjacent] {
            let angles = Arc::new(table.angles(&[0, 1, 7, 100, 40_000]).with_pairing(pairing));
            assert_close("rope", rope(heads(), &angles), rope::portable(heads(), &angles), 1e-6);
        }
    }
}

/// More rows than a tile of the portable body.
#[test]
fn segment_attention_equals_its_default_body() {
    let lengths = [300, 0, 1, 37];
    for device in host_devices() {
        let heads = |count, seed| noise_tensor([338, count, 12], seed, &device);
        let [q, k, v] = [heads(4, 14), heads(2, 15), heads(2, 16)];
        let spec = AttentionSpec {
            num_heads: 4,
            num_kv_heads: 2,
            head_dim: 12,
            scale: 0.7,
            window: None,
            soft_cap: None,
            sinks: None,
        };
        for reach in [None, Some(0), Some(9), Some(299)] {
            let attended = segment_attention(q.clone(), k.clone(), v.clone(), &lengths, 0.7, reach);
            let (mut row, mut sequences) = (0, Vec::new());
            for len in lengths {
                let (rows, bidirectional) = (row..row + len, vec![0..len]);
                sequences.push(SequenceLayout { rows, bidirectional, reach, ..Default::default() });
                row += len;
            }
            let rows = [q.clone(), k.clone(), v.clone()];
            let portable = segment_attention::portable(rows, &RaggedLayout { sequences }, &spec);
            assert_close(&format!("segment_attention, {reach:?}"), attended, portable, 1e-5);
        }
    }
}

#[test]
fn experts_equal_their_default_body_for_every_weight() {
    for sizes in [[3, 32, 48], [3, 24, 20]] {
        check_experts(sizes);
    }
}

fn check_experts([count, hidden, inner]: [usize; 3]) {
    let activation = Activation::ClampedSwiglu { alpha: 1.702, limit: 0.5 };
    let routing =
        Arc::new(Routing { per_row: 2, experts: vec![2, 0, 0, 2, 2, 1, 0, 1], weights: noise(8, 60) });
    for device in host_devices() {
        for (format, tolerance) in FORMATS_AND_TOLERANCES {
            let pack = |rows: usize, cols: usize, seed| {
                PackedMatrix::pack(format, count * rows, cols, Source::F32(&noise(count * rows * cols, seed)))
            };
            let packed = [pack(inner, hidden, 61), pack(inner, hidden, 62), pack(hidden, inner, 63)];
            let packed = packed.map(|packed| packed.unwrap());
            let vector = |rows: usize, seed| noise_tensor::<1>([count * rows], seed, &device);
            let biases = || [vector(inner, 64), vector(inner, 65), vector(hidden, 66)];
            let run = |weights: [Weight; 3]| {
                let experts = Experts::new(count, weights, Some(biases()), activation);
                moe(noise_tensor([4, hidden], 67, &device), &experts, &routing)
            };
            let uploaded = run(packed.each_ref().map(|packed| Weight::upload(packed, &device)));
            let resident = packed.map(|packed| Weight::from(Arc::new(packed)));
            let [gate, up, down] = biases().map(Tensor::into_dispatch);
            let portable = moe::portable::<Dispatch>(
                noise_tensor([4, hidden], 67, &device),
                resident.each_ref().map(|weight| weight.matrix().clone()),
                moe::Biases::Present { gate, up, down },
                moe::ExpertShape { count, activation },
                &routing,
                None,
            );
            assert_close(&format!("moe {format}, uploaded"), uploaded, portable.clone(), 1e-4);
            // Both products are rounded, and the second one's inputs are off by the first one's rounding: up
            // to six times 8.
            assert_close(&format!("moe {format}"), run(resident), portable, 10.0 * tolerance);
        }
    }
}

/// Views that are not contiguous slices: kernels must see the elements in the tensor's order.
#[test]
fn host_operations_read_strided_views() {
    for device in host_devices() {
        let packed = noise_tensor([6, 8], 5, &device);
        let strided = packed.clone().transpose(); // [8, 6]
        let copied = from_host(to_host(strided.clone()).unwrap(), [8, 6], &device);
        let weight = noise_tensor([6], 6, &device);
        let norm = |x: Tensor<2>| rms_norm(x, weight.clone(), 1e-5);
        assert_close("rms_norm of a transposed view", norm(strided), norm(copied), 0.0);
        let tail = packed.clone().narrow(0, 4, 2);
        let copied = from_host(to_host(tail.clone()).unwrap(), [2, 8], &device);
        let up = noise_tensor([2, 8], 7, &device);
        let gate = |gate| glu(gate, up.clone(), Activation::Silu);
        assert_close("glu of a slice", gate(tail), gate(copied), 0.0);
        let before = noise(48, 5);
        assert_eq!(to_host(packed).unwrap(), before, "the tensor behind the views is untouched");
    }
}

/// The Q formats differ by the rounding of the activations, which only the host does: of 64 products of
/// values below 1, each is off by at most 0.5 / 127.
#[test]
fn linear_equals_its_default_body() {
    for device in host_devices() {
        for (format, tolerance) in FORMATS_AND_TOLERANCES {
            let packed = PackedMatrix::pack(format, 20, 64, Source::F32(&noise(20 * 64, 8))).unwrap();
            let weight = Weight::from(Arc::new(packed));
            let x = || noise_tensor([3, 64], 9, &device);
            let portable = linear::portable::<Dispatch>(x(), weight.matrix().clone());
            assert_close(&format!("linear {format}"), linear(x(), &weight), portable, tolerance);
            let x = || noise_tensor([5, 3, 64], 10, &device);
            let portable = batched_linear::portable::<Dispatch>(x(), weight.matrix());
            assert_close(
                &format!("batched_linear {format}"),
                batched_linear(x(), &weight),
                portable,
                tolerance,
            );
        }
    }
}

const FORMATS_AND_TOLERANCES: [(WeightFormat, f32); 5] = [
    (WeightFormat::F32, 5e-5),
    (WeightFormat::F16, 5e-5),
    (WeightFormat::Bf16, 5e-5),
    (WeightFormat::Q8, 64.0 * 0.5 / 127.0 / 2.0),
    (WeightFormat::Q4, 64.0 * 0.5 / 127.0 / 2.0),
];

#[test]
fn weight_tensors_have_the_packed_values() {
    for device in host_devices() {
        for (format, _) in FORMATS_AND_TOLERANCES {
            for cols in [64, 40] {
                let packed = PackedMatrix::pack(format, 9, cols, Source::F32(&noise(9 * cols, 10))).unwrap();
                let uploaded = Weight::upload(&packed, &device);
                let resident = Weight::from(Arc::new(packed));
                let ids = [8, 0, 3, 3];
                let rows = embedding(&resident, &ids, &device);
                let what = format!("{format} [9, {cols}]");
                assert_close(&what, embedding(&uploaded, &ids, &device), rows, 0.0);
                let x = || noise_tensor([2, cols], 11, &device);
                let portable = linear::portable::<Dispatch>(x(), resident.matrix().clone());
                assert_close(&what, linear(x(), &uploaded), portable, 5e-5);
            }
        }
    }
}

#[test]
fn blocks_have_the_same_values_on_other_devices() {
    for device in host_devices() {
        for &ggml in GgmlType::ALL {
            let blocks = Random(13).blocks(ggml, 9, 256);
            let packed = PackedMatrix::from_blocks(ggml, 9, 256, &blocks).unwrap();
            let uploaded = Weight::upload(&packed, &device);
            let resident = Weight::from(Arc::new(packed));
            let ids = [8, 0, 3, 3];
            let rows = embedding(&resident, &ids, &device);
            assert_close(&ggml.to_string(), embedding(&uploaded, &ids, &device), rows, 0.0);
            let x = || noise_tensor([2, 256], 11, &device);
            let portable = linear::portable::<Dispatch>(x(), resident.matrix().clone());
            assert_close(&ggml.to_string(), linear(x(), &uploaded), portable, 5e-5);
            let stays_packed = matches!(ggml, GgmlType::Q8_0 | GgmlType::Q4_0);
            assert_eq!(matches!(uploaded.matrix(), Matrix::Packed { .. }), stays_packed, "{ggml}");
        }
    }
}

#[test]
fn packed_tensors_have_no_dense_copy() {
    let (rows, cols) = (16, 128);
    for device in host_devices() {
        for (format, bits) in [(WeightFormat::Q8, 8), (WeightFormat::Q4, 4)] {
            let packed =
                PackedMatrix::pack(format, rows, cols, Source::F32(&noise(rows * cols, 12))).unwrap();
            let weight = Weight::upload(&packed, &device);
            let Matrix::Packed { words, scales, .. } = weight.matrix().clone() else {
                panic!("{format} is packed")
            };
            let (words, scales) = (Dispatch::lift_int::<2>(words), Dispatch::lift::<2>(scales));
            assert_eq!(words.dims(), [rows, cols * bits / 32]);
            assert_eq!(scales.dims(), [rows, cols / 32]);
            let bytes =
                words.dtype().size() * rows * cols * bits / 32 + scales.dtype().size() * rows * cols / 32;
            assert_eq!(weight.bytes(), bytes);
        }
    }
}

#[test]
fn shared_types_are_send_and_sync() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Weight>();
    assert_send_sync::<KvPool>();
}
