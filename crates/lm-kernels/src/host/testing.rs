//! Random inputs for the tests of this module, from fixed seeds.

use half::f16;

use super::pack::GgmlType;
use super::page_id::PAGE_LEN;
use super::ragged::{RaggedLayout, SequenceLayout};

/// SplitMix64 generator.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both inclusive.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    /// Returns approximately normal values, with mean 0 and variance 1.
    pub fn normal(&mut self, len: usize) -> Vec<f32> {
        let mut uniform = || (self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
        (0..len).map(|_| (0..6).map(|_| uniform()).sum::<f32>() * std::f32::consts::SQRT_2).collect()
    }

    /// Random blocks with arbitrary codes and scales of about 1/100; of MXFP4 from 1/1024 to 1/128.
    pub fn blocks(&mut self, format: GgmlType, rows: usize, cols: usize) -> Vec<u8> {
        let bytes = rows * format.row_bytes(cols).expect("whole blocks");
        let mut blocks: Vec<u8> = (0..bytes).map(|_| self.next() as u8).collect();
        for block in blocks.chunks_exact_mut(format.block_bytes()) {
            for &at in halves(format) {
                let scale = f16::from_f32((self.next() % 200) as f32 * 1e-4 - 0.01);
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
            match format {
                GgmlType::Mxfp4 => block[0] = 118 + self.next() as u8 % 4,
                GgmlType::Iq1M => {
                    // An f16 in the upper four bits of the last four words.
                    let half = f16::from_f32((self.next() % 200) as f32 * 1e-4 - 0.01).to_bits();
                    for (i, word) in block[48..].as_chunks_mut::<2>().0.iter_mut().enumerate() {
                        word[1] = word[1] & 15 | ((half >> (4 * i) & 15) as u8) << 4;
                    }
                }
                _ => {}
            }
        }
        blocks
    }

    /// A layout of sequences with these (cached, new) lengths, their pages shuffled over a pool. Returns the
    /// pool's size too.
    pub fn layout(&mut self, lengths: &[(usize, usize)]) -> (RaggedLayout, usize) {
        let pages: usize = lengths.iter().map(|(cached, new)| (cached + new).div_ceil(PAGE_LEN)).sum();
        let mut free: Vec<u32> = (0..pages as u32).collect();
        (1..free.len()).rev().for_each(|i| free.swap(i, self.between(0, i)));
        let mut layout = RaggedLayout::default();
        for &(cached_len, new) in lengths {
            let start = layout.rows();
            let block_table = free.split_off(free.len() - (cached_len + new).div_ceil(PAGE_LEN));
            let rows = start..start + new;
            layout.sequences.push(SequenceLayout {
                rows,
                cached_len,
                block_table,
                bidirectional: vec![],
                reach: None,
            });
        }
        (layout, pages)
    }
}

/// A layout of two new sequences with these rows, each with one page.
pub(super) fn beside(rows: [std::ops::Range<usize>; 2], pages: [u32; 2]) -> RaggedLayout {
    let sequence = |(rows, page)| SequenceLayout { rows, block_table: vec![page], ..Default::default() };
    RaggedLayout { sequences: rows.into_iter().zip(pages).map(sequence).collect() }
}

/// Byte offsets of the f16 scales in a block.
pub(super) fn halves(format: GgmlType) -> &'static [usize] {
    match format {
        GgmlType::Q8_0 | GgmlType::Q4_0 | GgmlType::Q5_0 | GgmlType::Iq4Nl | GgmlType::Iq4Xs => &[0],
        GgmlType::Iq3S | GgmlType::Iq3Xxs | GgmlType::Iq2S | GgmlType::Iq2Xs | GgmlType::Iq2Xxs => &[0],
        GgmlType::Iq1S => &[0],
        GgmlType::Q4_1 | GgmlType::Q5_1 | GgmlType::Q4K | GgmlType::Q5K => &[0, 2],
        GgmlType::Q2K => &[80, 82],
        GgmlType::Q3K => &[108],
        GgmlType::Q6K => &[208],
        GgmlType::Mxfp4 | GgmlType::Iq1M => &[],
    }
}

/// The bits of floats, for exact comparisons.
pub(super) fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Runs sequences `piece` rows at a time, in one batch, over contiguous pages, and returns the results of
/// each.
///
/// `inputs` are the rows of each sequence, `width` values per row; `call` gets those of a piece and returns
/// the results of its rows.
pub(super) fn in_pieces(
    inputs: &[Vec<f32>],
    width: usize,
    piece: usize,
    mut call: impl FnMut(&RaggedLayout, &[f32]) -> Vec<f32>,
) -> Vec<Vec<f32>> {
    let longest = inputs.iter().map(|rows| rows.len() / width).max().unwrap_or(0);
    let mut results = vec![Vec::new(); inputs.len()];
    for start in (0..longest).step_by(piece) {
        let (mut layout, mut rows, mut first_page) = (RaggedLayout::default(), Vec::new(), 0);
        for input in inputs {
            let len = input.len() / width;
            let range = start.min(len)..len.min(start + piece);
            rows.extend_from_slice(&input[range.start * width..range.end * width]);
            let (first, pages) = (layout.rows(), len.div_ceil(PAGE_LEN) as u32);
            layout.sequences.push(SequenceLayout {
                rows: first..first + range.len(),
                cached_len: range.start,
                block_table: (first_page..first_page + pages).collect(),
                bidirectional: vec![],
                reach: None,
            });
            first_page += pages;
        }
        let got = call(&layout, &rows);
        let width = got.len() / layout.rows();
        for (result, sequence) in results.iter_mut().zip(&layout.sequences) {
            result.extend_from_slice(&got[sequence.rows.start * width..sequence.rows.end * width]);
        }
    }
    results
}
