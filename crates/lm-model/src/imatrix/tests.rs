use lm_formats::{FileBytes, GgufEntries, GgufEntry, GgufHeader, GgufNewTensor, GgufTensorType};

use super::*;

fn sum(squares: &[f64], rows: u64) -> InputSum {
    InputSum { squares: squares.to_vec(), rows }
}

fn matrix(sums: &[(&str, Vec<InputSum>)]) -> Result<ImportanceMatrix> {
    let sums = sums.iter().map(|(name, sums)| ((*name).to_owned(), sums.clone()));
    let calibration = Calibration { datasets: vec!["text.txt".to_owned()], chunk_count: 2, chunk_size: 512 };
    ImportanceMatrix::new("file".to_owned(), sums, calibration)
}

fn read(bytes: &[u8]) -> Result<ImportanceMatrix> {
    ImportanceMatrix::read("file", FileBytes::Owned(bytes.into()))
}

/// A file of type `kind` with these tensors: name, type, shape, values.
fn file(kind: &str, tensors: &[(&str, &str, &[usize], &[f32])]) -> Vec<u8> {
    let mut keys = GgufEntries::default();
    keys.put(FILE_TYPE, GgufEntry::Text(kind.to_owned()));
    let new = |&(name, ty, shape, _): &(&str, &str, &[usize], &[f32])| GgufNewTensor {
        name: name.to_owned(),
        ty: GgufTensorType::from_name(ty).unwrap(),
        shape: shape.to_vec(),
    };
    let GgufHeader { mut bytes, tensors: placed, len } =
        GgufHeader::new(&keys, &tensors.iter().map(new).collect::<Vec<_>>()).unwrap();
    for (place, (_, _, _, values)) in placed.iter().zip(tensors) {
        bytes.resize(place.range.start, 0);
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    bytes.resize(len, 0);
    bytes
}

#[test]
fn matrix_round_trips() {
    let layers = [
        ("blk.0.attn_q.weight", vec![sum(&[1.0, 2.5, 0.0], 4)]),
        ("blk.0.ffn_up_exps.weight", vec![sum(&[1.0, 3.0], 2), sum(&[0.0, 0.0], 0)]),
        ("never.run", vec![sum(&[0.0], 0)]),
    ];
    let written = matrix(&layers).unwrap();
    let read = read(&written.to_gguf().unwrap()).unwrap();
    assert_eq!(read, written);
    let names: Vec<_> = read.layers().map(|(name, _)| name).collect();
    assert_eq!(names, ["blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight"]);
    assert_eq!(read.calibration().datasets, ["text.txt"]);
}

#[test]
fn importance_is_the_mean_square() {
    let layers = [
        ("dense", vec![sum(&[4.0, 2.0], 2)]),
        ("experts", vec![sum(&[6.0, 3.0], 3), sum(&[0.0, 0.0], 0), sum(&[1.0, 4.0], 1)]),
    ];
    let matrix = matrix(&layers).unwrap();
    let importance = |name, count, shape| matrix.importance(name, count, shape).unwrap();
    let expected = |rows, values: &[f32]| Some(Importance::new(rows, 2, values).unwrap());
    assert_eq!(importance("dense", 1, [3, 2]), expected(3, &[2.0, 1.0]));
    assert_eq!(importance("dense", 3, [6, 2]), expected(6, &[2.0, 1.0]), "experts share one");
    let of_experts = [2.0, 1.0, /* the mean of the others */ 3.0, 5.0, 1.0, 4.0];
    assert_eq!(importance("experts", 3, [6, 2]), expected(6, &of_experts));
    assert_eq!(importance("another", 1, [3, 2]), None);
    for (name, count, shape) in [("dense", 1, [3, 3]), ("experts", 1, [6, 2]), ("experts", 2, [6, 2])] {
        let error = matrix.importance(name, count, shape).unwrap_err();
        assert!(matches!(error, Error::Format(FormatError::TensorShape { .. })), "{name} {count}: {error}");
    }
}

#[test]
fn one_count_may_cover_all_matrices() {
    let tensors = [("x.in_sum2", "F32", &[2, 1][..], &[4.0, 6.0][..]), ("x.counts", "F32", &[1], &[2.0])];
    let read = read(&file(IMATRIX, &tensors)).unwrap();
    assert_eq!(read.layers().next().unwrap().1.counts, [2.0, 2.0]);
}

#[test]
fn invalid_files_are_rejected_with_the_tensor() {
    type Tensor<'a> = (&'a str, &'a str, &'a [usize], &'a [f32]);
    let rejected = |kind: &str, tensors: &[Tensor<'_>], expected: &str| {
        let error = read(&file(kind, tensors)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let sums = |values: &'static [f32]| ("x.in_sum2", "F32", &[1, 2][..], values);
    let counts = |values: &'static [f32]| ("x.counts", "F32", &[1, 1][..], values);
    rejected("model", &[], "`general.type` is model, supported: imatrix");
    rejected(IMATRIX, &[sums(&[1.0, 2.0])], "file has no tensor x.counts");
    rejected(IMATRIX, &[counts(&[1.0])], "file has no tensor x.in_sum2");
    rejected(IMATRIX, &[("x.in_sum2", "F16", &[1, 2], &[0.0]), counts(&[1.0])], "x.in_sum2 is stored as F16");
    let three = ("x.counts", "F32", &[3, 1][..], &[1.0, 1.0, 1.0][..]);
    rejected(IMATRIX, &[sums(&[1.0, 2.0]), three], "tensor x.counts has shape [3, 1], expected [1, 1]");
    for values in [&[1.0, f32::NAN], &[1.0, -1.0], &[1.0, f32::INFINITY]] {
        rejected(IMATRIX, &[sums(values), counts(&[1.0])], "expected finite numbers from 0 on");
    }
    rejected(IMATRIX, &[sums(&[1.0, 2.0]), counts(&[-1.0])], "tensor x.counts holds -1");
    rejected(
        IMATRIX,
        &[sums(&[1.0, 2.0]), counts(&[1e-39])],
        "tensor x.in_sum2 holds inf, expected sums whose quotients",
    );
}

#[test]
fn layer_without_inputs_has_no_importance() {
    for (squares, count) in [(&[0.0, 0.0], 1.0), (&[1.0, 2.0], 0.0)] {
        let tensors =
            [("x.in_sum2", "F32", &[1, 2][..], &squares[..]), ("x.counts", "F32", &[1, 1], &[count])];
        assert_eq!(read(&file(IMATRIX, &tensors)).unwrap().importance("x", 1, [4, 2]).unwrap(), None);
    }
    let experts = matrix(&[("x", vec![sum(&[0.0, 0.0], 5), sum(&[2.0, 4.0], 2)])]).unwrap();
    let expected = Importance::new(4, 2, &[1.0, 2.0, 1.0, 2.0]).unwrap();
    assert_eq!(
        experts.importance("x", 2, [4, 2]).unwrap(),
        Some(expected),
        "a dead expert has that of the other"
    );
}

#[test]
fn sizes_beyond_the_file_are_rejected() {
    let whole = matrix(&[("x", vec![sum(&[1.0, 2.0], 1)])]).unwrap().to_gguf().unwrap();
    assert!(whole.len().is_multiple_of(32), "ggml reads whole alignments");
    let padding = 32 - 4; // The last tensor is one count.
    for len in 0..whole.len() - padding {
        assert!(read(&whole[..len]).is_err(), "{len} bytes");
    }
    // The number of tensors, and the columns.
    let size = 2_u64.to_le_bytes();
    let places: Vec<_> = (0..whole.len() - 8).filter(|&place| whole[place..place + 8] == size).collect();
    assert!(places.len() >= 2);
    for place in places {
        let mut hostile = whole.clone();
        hostile[place..place + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(read(&hostile).is_err(), "at {place}");
    }
}

#[test]
fn overflowed_sums_are_rejected() {
    for square in [f64::NAN, f64::INFINITY, 1e300] {
        let error = matrix(&[("x", vec![sum(&[1.0, square], 1)])]).unwrap_err();
        assert!(matches!(error, Error::TensorValue { .. }), "{error}");
    }
}

#[test]
fn file_has_sums_and_a_count_per_matrix() {
    let sums = vec![sum(&[1.0, 2.0, 3.0], 1), sum(&[1.0, 2.0, 3.0], 4)];
    let bytes = matrix(&[("x", sums)]).unwrap().to_gguf().unwrap();
    let file = lm_formats::GgufFile::read("file", FileBytes::Owned(bytes.into())).unwrap();
    let shapes: Vec<_> = file.tensors().iter().map(|t| (t.name.as_str(), t.shape.clone())).collect();
    assert_eq!(shapes, [("x.in_sum2", vec![2, 3]), ("x.counts", vec![2, 1])]);
}

#[test]
fn underflowed_means_equal_zero_inputs() {
    let tiny = f64::from(f32::from_bits(1));
    let importance = |first: Vec<f64>| {
        let sums = vec![InputSum { squares: first, rows: 1000 }, sum(&[1.0, 2.0], 1)];
        matrix(&[("x", sums)]).unwrap().importance("x", 2, [2, 2]).unwrap()
    };
    assert!(importance(vec![tiny; 2]).is_some(), "the mean of the other matrix");
    let alone = matrix(&[("x", vec![InputSum { squares: vec![tiny; 2], rows: 1000 }])]).unwrap();
    assert!(alone.importance("x", 1, [1, 2]).unwrap().is_none());
}
