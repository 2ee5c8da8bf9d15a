use std::ops::{Range, RangeInclusive};

use burn::tensor::activation::softmax;
use burn::tensor::{Int, Tensor, TensorData};

use super::with_zeros;

/// Size in bytes of the scores of a tile of blocks, so that the scores of a long audio are never all in
/// memory.
const TILE_BYTES: usize = 16 << 20;

/// Added to the scores of masked keys.
const MASKED: f32 = -1e9;

/// Local attention, with scores for the distance between query and key. Rows are split into blocks; the rows
/// of a block attend to the block and to a context around it. Neither scores nor masks of all rows are ever
/// in memory.
///
/// # Source
/// Self-Attention with Relative Position Representations (arXiv 1803.02155); Transformer-XL (arXiv
/// 1901.02860), appendix B.
#[derive(Clone, Debug)]
pub(crate) struct BlockAttention {
    /// Rows of a block.
    pub(crate) block: usize,
    /// Rows before a block that its rows can attend to.
    pub(crate) before: usize,
    /// Rows after a block that its rows can attend to.
    pub(crate) after: usize,
    /// Distances from key to query, in rows, that a query attends to; negative for later keys.
    pub(crate) distances: RangeInclusive<isize>,
    /// Bound of the scores, by `cap · tanh(score / cap)`.
    pub(crate) soft_cap: Option<f32>,
}

impl BlockAttention {
    /// Number of rows of the position table: its `i`-th is for the distance `before + block - 1 - i`.
    pub(crate) fn positions(&self) -> usize {
        self.block + self.context()
    }

    /// Rows in reach of a block.
    fn context(&self) -> usize {
        self.before + self.block + self.after
    }

    /// Attends; queries are scaled already. A score is the product of the query and the sum of key and
    /// position.
    ///
    /// # Shapes
    /// - `q`, `k`, `v`: `[rows, heads, head_dim]`; returns the same shape
    /// - `positions`: `[heads, positions, head_dim]`, or `[1, positions, head_dim]` for all heads
    pub(crate) fn forward(
        &self,
        q: Tensor<3>,
        k: Tensor<3>,
        v: Tensor<3>,
        positions: Tensor<3>,
    ) -> Tensor<3> {
        let [rows, heads, _] = q.dims();
        let blocks = rows.div_ceil(self.block);
        let tile = (TILE_BYTES / (4 * heads * self.block * self.positions())).max(1);
        let tiles = (0..blocks).step_by(tile).map(|first| {
            let part = first..(first + tile).min(blocks);
            self.of_blocks(part, [&q, &k, &v], positions.clone())
        });
        Tensor::cat(tiles.collect(), 0)
    }

    /// Output of the rows of some blocks.
    fn of_blocks(&self, blocks: Range<usize>, [q, k, v]: [&Tensor<3>; 3], positions: Tensor<3>) -> Tensor<3> {
        let ([rows, heads, head_dim], context, count) = (q.dims(), self.context(), blocks.len());
        let (first, end) = (blocks.start * self.block, (blocks.end * self.block).min(rows));
        let missing = count * self.block - (end - first);
        let q = with_zeros(q.clone().narrow(0, first, end - first), [0, missing])
            .reshape([count, self.block, heads, head_dim])
            .permute([2, 0, 1, 3]); // [heads, blocks, block, head_dim]
        // Rows in reach of the blocks, and one of zeros in place of rows that are not there.
        let start = first.saturating_sub(self.before);
        let len = (blocks.end * self.block + self.after).min(rows) - start;
        let key_of = |block: usize, column: usize| {
            (block * self.block + column).checked_sub(self.before).filter(|&row| row < rows)
        };
        let places = blocks.clone().flat_map(|block| (0..context).map(move |column| (block, column)));
        let ids: Vec<i64> = places
            .map(|(block, column)| key_of(block, column).map_or(len, |row| row - start) as i64)
            .collect();
        let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [count * context]), &q.device());
        let in_reach = |x: &Tensor<3>| {
            let x = with_zeros(x.clone().narrow(0, start, len), [0, 1]).select(0, ids.clone());
            x.reshape([count, context, heads, head_dim]).permute([2, 0, 1, 3]) // [heads, blocks, context, head_dim]
        };
        let of_content = q.clone().matmul(in_reach(k).swap_dims(2, 3)); // [heads, blocks, block, context]
        let by_place = q.reshape([heads, count * self.block, head_dim]).matmul(positions.swap_dims(1, 2));
        let mut scores = of_content + self.shifted(by_place, count);
        if let Some(cap) = self.soft_cap {
            scores = (scores / cap).tanh() * cap;
        }
        let mask = self.mask(&blocks, rows);
        let mask =
            Tensor::<4>::from_data(TensorData::new(mask, [1, count, self.block, context]), &scores.device());
        let out = softmax(scores + mask, 3).matmul(in_reach(v)); // [heads, blocks, block, head_dim]
        out.permute([1, 2, 0, 3]).reshape([count * self.block, heads, head_dim]).narrow(0, 0, end - first)
    }

    /// Scores by row of the position table to scores by key: `[heads, blocks * block, positions]` to
    /// `[heads, blocks, block, context]`. In the flat table of a block each row begins one entry earlier than
    /// the row before it.
    fn shifted(&self, scores: Tensor<3>, blocks: usize) -> Tensor<4> {
        let ([heads, _, width], block) = (scores.dims(), self.block);
        let flat = scores.reshape([heads, blocks, block * width]);
        let from_first = flat.narrow(2, block - 1, block * (width - 1));
        from_first.reshape([heads, blocks, block, width - 1]).narrow(3, 0, self.context())
    }

    /// For each pair of a query and a key in its reach, zero or [`MASKED`].
    fn mask(&self, blocks: &Range<usize>, rows: usize) -> Vec<f32> {
        let (block, context, before) = (self.block, self.context(), self.before as isize);
        let of_block = |index: usize| {
            let first = (index * block) as isize - before;
            (0..block as isize).flat_map(move |row| {
                (0..context as isize).map(move |column| {
                    let is_row = (0..rows as isize).contains(&(first + column));
                    match is_row && self.distances.contains(&(row + before - column)) {
                        true => 0.0,
                        false => MASKED,
                    }
                })
            })
        };
        blocks.clone().flat_map(of_block).collect()
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Distribution;
    use lm_kernels::{Device, from_host, to_host};

    use super::*;

    /// Attention row by row, by definition.
    fn naive(
        spec: &BlockAttention,
        rows: usize,
        [q, k, v, table]: [&[f32]; 4],
        [heads, dim]: [usize; 2],
    ) -> Vec<f32> {
        let at = |x: &[f32], row: usize, head: usize| x[(row * heads + head) * dim..][..dim].to_vec();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let mut out = Vec::new();
        for row in 0..rows {
            let start = (row / spec.block * spec.block) as isize;
            let reach = start - spec.before as isize..start + (spec.block + spec.after) as isize;
            for head in 0..heads {
                let query = at(q, row, head);
                let score = |key: usize| {
                    let place = (spec.before + spec.block) as isize - 1 - (row as isize - key as isize);
                    let position = &table[(head * spec.positions() + place as usize) * dim..][..dim];
                    let score = dot(&query, &at(k, key, head)) + dot(&query, position);
                    spec.soft_cap.map_or(score, |cap| cap * (score / cap).tanh()).exp()
                };
                let keys: Vec<usize> = (0..rows)
                    .filter(|&key| reach.contains(&(key as isize)))
                    .filter(|&key| spec.distances.contains(&(row as isize - key as isize)))
                    .collect();
                let sum: f32 = keys.iter().map(|&key| score(key)).sum();
                let part =
                    |i: usize| keys.iter().map(|&key| score(key) / sum * at(v, key, head)[i]).sum::<f32>();
                out.extend((0..dim).map(part));
            }
        }
        out
    }

    #[test]
    fn rows_attend_to_their_block_and_context() {
        let device = Device::Cpu.burn().unwrap();
        let whole = isize::MIN..=isize::MAX;
        let cases = [
            (BlockAttention { block: 4, before: 3, after: 0, distances: 0..=2, soft_cap: Some(1.5) }, 11),
            (BlockAttention { block: 3, before: 4, after: 2, distances: -1..=3, soft_cap: None }, 10),
            (BlockAttention { block: 5, before: 0, after: 0, distances: whole, soft_cap: None }, 13),
            (BlockAttention { block: 1, before: 2, after: 1, distances: -1..=1, soft_cap: None }, 4),
        ];
        for (spec, rows) in cases {
            let (heads, dim) = (2, 3);
            let random =
                |shape: [usize; 3]| Tensor::<3>::random(shape, Distribution::Uniform(-1.0, 1.0), &device);
            let [q, k, v] = [0; 3].map(|_| random([rows, heads, dim]));
            let table = random([heads, spec.positions(), dim]);
            let [a, b, c, d] = [&q, &k, &v, &table].map(|x| to_host(x.clone()).unwrap());
            let expected = naive(&spec, rows, [&a, &b, &c, &d], [heads, dim]);
            let expected = from_host(expected, [rows, heads, dim], &device);
            let found = spec.forward(q, k, v, table);
            let difference = (found - expected).abs().max().into_scalar::<f32>();
            assert!(difference < 1e-5, "{spec:?}: {difference}");
        }
    }
}
