//! Writing and copying of pages.

use super::super::ragged::SequenceLayout;
use super::super::testing::Random;
use super::*;
use crate::Error;

#[test]
fn rows_are_written_only_to_their_slots() {
    for dtype in [KvDtype::F32, KvDtype::F16] {
        let mut random = Random(61);
        let (layout, pages) = random.layout(&[(30, 5), (0, 33)]);
        let mut layer = PagedLayer::new(dtype, pages, 2, 4).unwrap();
        let (k, v) = (random.normal(38 * 8), random.normal(38 * 8));
        layer.write(&Pool::new(2), &layout, &k, &v);
        let mut written = 0;
        for sequence in &layout.sequences {
            for (index, row) in sequence.rows.clone().enumerate() {
                let (page, slot) = sequence.place(sequence.cached_len + index);
                for head in 0..2 {
                    let from = row * 8 + head * 4;
                    let near = |got: &[f32], x: &[f32]| got.iter().zip(x).all(|(a, b)| (a - b).abs() < 2e-3);
                    assert!(near(&layer.key(page, head, slot), &k[from..from + 4]));
                    assert!(near(&layer.value(page, head, slot), &v[from..from + 4]));
                    written += 4;
                }
            }
        }
        let slots = (0..pages as PageId)
            .flat_map(|page| (0..2 * PAGE_LEN).map(move |i| (page, i / PAGE_LEN, i % PAGE_LEN)));
        let keys = slots.flat_map(|(page, head, slot)| layer.key(page, head, slot));
        assert_eq!(keys.filter(|&x| x != 0.0).count(), written, "{dtype}: other slots are untouched");
    }
}

#[test]
fn copied_page_is_equal_and_independent() {
    for dtype in [KvDtype::F32, KvDtype::F16] {
        let mut layer = PagedLayer::new(dtype, 3, 2, 4).unwrap();
        let (layout, _) = Random(62).layout(&[(0, 32)]);
        layer.write(&Pool::new(2), &layout, &vec![1.5; 32 * 8], &vec![2.5; 32 * 8]);
        layer.copy_page(0, 2);
        layer.write(&Pool::new(2), &layout, &vec![0.0; 32 * 8], &vec![0.0; 32 * 8]);
        for slot in [0, 31] {
            assert_eq!((layer.key(2, 1, slot), layer.value(2, 1, slot)), (vec![1.5; 4], vec![2.5; 4]));
            assert_eq!(layer.key(1, 1, slot), [0.0; 4]);
        }
        assert_eq!(layer.bytes_per_page(), 2 * 32 * (4 + 16) * dtype.bytes(), "values are filled up to 16");
    }
}

/// Each slot has a different scale, so that a scale that is not copied is detected.
#[test]
fn copied_page_keeps_integer_scales() {
    let mut layer = PagedLayer::new(KvDtype::Q8, 3, 2, 4).unwrap();
    let (layout, _) = Random(62).layout(&[(0, 32)]);
    let numbers = |factor: f32| (1..=32 * 8).map(|i| factor * i as f32).collect::<Vec<_>>();
    layer.write(&Pool::new(2), &layout, &numbers(0.25), &numbers(-3.0));
    layer.copy_page(0, 2);
    for (head, slot) in (0..2).flat_map(|head| (0..PAGE_LEN).map(move |slot| (head, slot))) {
        assert_eq!(layer.key(2, head, slot), layer.key(0, head, slot), "key of head {head}, slot {slot}");
        let value = layer.value(2, head, slot);
        assert_eq!(value, layer.value(0, head, slot), "value of head {head}, slot {slot}");
        assert!(value.iter().any(|&x| x != 0.0), "head {head}, slot {slot} was written");
    }
}

#[test]
fn page_round_trips_with_unused_slots_zeroed() {
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
        let mut layer = PagedLayer::new(dtype, 3, 2, 4).unwrap();
        let (layout, _) = Random(63).layout(&[(0, 32)]);
        let numbers = |factor: f32| (1..=32 * 8).map(|i| factor * i as f32).collect::<Vec<_>>();
        layer.write(&Pool::new(2), &layout, &numbers(0.25), &numbers(-3.0));
        let source = layout.sequences[0].block_table[0];
        let target = (source + 1) % 3;
        for slots in [32, 7, 0] {
            let mut bytes = Vec::new();
            layer.read_page(source, slots, &mut bytes);
            assert_eq!(bytes.len(), layer.bytes_per_page());
            layer.write_page(target, &bytes);
            for (head, slot) in (0..2).flat_map(|head| (0..PAGE_LEN).map(move |slot| (head, slot))) {
                let got = (layer.key(target, head, slot), layer.value(target, head, slot));
                let expected = match slot < slots {
                    true => (layer.key(source, head, slot), layer.value(source, head, slot)),
                    false => (vec![0.0; 4], vec![0.0; 4]),
                };
                assert_eq!(got, expected, "{dtype} head {head} slot {slot} of {slots}");
            }
        }
    }
}

/// Saved sessions hold these bytes.
#[test]
fn page_bytes_have_a_fixed_order() {
    const SLOTS: usize = 20;
    // 127 is the largest of each vector, so that the scale is exact.
    let integer = |h: usize, s: usize, c: usize| if c == 15 { 127 } else { 50 * h + s + 2 * c };
    let scale = |part: usize, h: usize| (1_usize << (2 * part + h)) as f32;
    for dtype in [KvDtype::F32, KvDtype::Q8] {
        let mut layer = PagedLayer::new(dtype, 1, 2, 16).unwrap();
        let sequence = SequenceLayout { rows: 0..32, block_table: vec![0], ..Default::default() };
        let layout = RaggedLayout { sequences: vec![sequence] };
        let rows = |part| {
            let number = |i: usize| integer(i / 16 % 2, i / 32, i % 16) as f32 * scale(part, i / 16 % 2);
            (0..32 * 32).map(number).collect::<Vec<_>>()
        };
        layer.write(&Pool::new(1), &layout, &rows(0), &rows(1));
        let mut expected = Vec::new();
        for (part, h, i) in (0..2 * 2 * 512).map(|i| (i / 1024, i / 512 % 2, i % 512)) {
            let (s, c) = if part == 0 { (i % 32, i / 32) } else { (i / 16, i % 16) };
            let integer = if s < SLOTS { integer(h, s, c) } else { 0 };
            match dtype {
                KvDtype::Q8 => expected.push(128 + integer as u8),
                _ => expected.extend((integer as f32 * scale(part, h)).to_ne_bytes()),
            }
        }
        for (part, h, s) in (0..2 * 2 * 32).map(|i| (i / 64, i / 32 % 2, i % 32)) {
            let scale = if s < SLOTS { (scale(part, h).to_bits() >> 16) as u16 } else { 0 };
            expected.extend(scale.to_ne_bytes().into_iter().filter(|_| dtype == KvDtype::Q8));
        }
        let mut bytes = Vec::new();
        layer.read_page(0, SLOTS, &mut bytes);
        assert!(bytes == expected, "{dtype}");
    }
}

#[test]
#[should_panic(expected = "page 3 of 3")]
fn page_out_of_range_is_not_written() {
    let sequence = SequenceLayout { rows: 0..1, block_table: vec![3], ..Default::default() };
    let layout = RaggedLayout { sequences: vec![sequence] };
    PagedLayer::new(KvDtype::F32, 3, 1, 1).unwrap().write(&Pool::new(1), &layout, &[1.0], &[1.0]);
}

#[test]
#[should_panic(expected = "33 of 32 slots")]
fn too_many_slots_are_rejected() {
    PagedLayer::new(KvDtype::F16, 1, 1, 1).unwrap().read_page(0, 33, &mut Vec::new());
}

#[test]
fn layers_allocated_together_have_separate_pages() {
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
        let mut layers = PagedLayer::for_layers(dtype, 19, &[(2, 4), (1, 20), (3, 8)]).unwrap();
        let sequence =
            SequenceLayout { rows: 0..32 * 19, block_table: (0..19).collect(), ..Default::default() };
        let layout = RaggedLayout { sequences: vec![sequence] };
        for (index, layer) in layers.iter_mut().enumerate() {
            let len = 32 * 19 * layer.num_kv_heads() * layer.head_dim();
            layer.write(&Pool::new(2), &layout, &vec![index as f32 + 1.0; len], &vec![-(index as f32); len]);
        }
        for (index, layer) in layers.iter().enumerate() {
            let dim = layer.head_dim();
            for (page, head, slot) in [(0, 0, 0), (7, 0, 31), (8, layer.num_kv_heads() - 1, 0), (18, 0, 31)] {
                let near =
                    |got: Vec<f32>, x: f32| got.len() == dim && got.iter().all(|y| (y - x).abs() < 0.02);
                assert!(near(layer.key(page, head, slot), index as f32 + 1.0), "{dtype} {index} {page}");
                assert!(near(layer.value(page, head, slot), -(index as f32)), "{dtype} {index} {page}");
            }
        }
    }
}

#[test]
fn impossible_size_is_an_error() {
    let overflow = PagedLayer::new(KvDtype::F16, usize::MAX, 2, 64);
    assert!(matches!(overflow, Err(Error::ShapeOverflow { .. })));
    let rejected = PagedLayer::new(KvDtype::F16, 1 << 48, 1, 64);
    assert!(matches!(rejected, Err(Error::OutOfMemory { .. })), "{:?}", rejected.err());
}

#[test]
#[should_panic(expected = "page 3 of 3")]
fn page_out_of_range_is_rejected() {
    PagedLayer::new(KvDtype::F32, 3, 1, 1).unwrap().copy_page(0, 3);
}
