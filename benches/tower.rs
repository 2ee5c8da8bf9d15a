//! A layer of a vision tower of the public shape siglip2-base over an image of 512² pixels (1,024 patches),
//! in bfloat16: `cargo bench -p lm-benches --bench tower [-- FILTER]`. The tower has twelve of them.

#![allow(clippy::single_range_in_vec_init, reason = "a list of ranges with one image in it")]

use lm_benches::{Amount, Group, check_product, criterion, noise, random_weight};
use lm_kernels::{
    Activation, Arena, AttentionSpec, KvDtype, PAGE_LEN, PackedMatrix, PagedLayer, Pool, RaggedLayout,
    SequenceLayout, WeightFormat, host,
};

const PATCHES: usize = 1024;
const HIDDEN: usize = 768;
const INTERMEDIATE: usize = 3072;
const HEADS: usize = 12;

/// Parts of a layer that are timed.
#[derive(Clone, Copy, Debug)]
enum Part {
    Projections,
    Attention,
    FeedForward,
    All,
}

impl Part {
    fn operations(self) -> usize {
        match self {
            Self::Projections => 2 * PATCHES * 4 * HIDDEN * HIDDEN,
            Self::Attention => 4 * PATCHES * PATCHES * HIDDEN,
            Self::FeedForward => 2 * PATCHES * 2 * HIDDEN * INTERMEDIATE,
            Self::All => {
                [Self::Projections, Self::Attention, Self::FeedForward].map(Self::operations).iter().sum()
            }
        }
    }
}

/// Weights of a layer and room for its rows.
struct Operands {
    /// Queries, keys, values, output.
    projections: [PackedMatrix; 4],
    up: PackedMatrix,
    down: PackedMatrix,
    pages: PagedLayer,
    layout: RaggedLayout,
    norm: Vec<f32>,
    x: Vec<f32>,
    rows: [Vec<f32>; 4],
    wide: [Vec<f32>; 2],
    ones: Vec<f32>,
}

impl Operands {
    fn new() -> lm_kernels::Result<Self> {
        let arena = Arena::default();
        let weight = |out, input| random_weight(&arena, WeightFormat::Bf16, out, input);
        let square = || weight(HIDDEN, HIDDEN);
        let block_table = (0..PATCHES.div_ceil(PAGE_LEN) as u32).collect();
        let sequence = SequenceLayout {
            rows: 0..PATCHES,
            cached_len: 0,
            block_table,
            bidirectional: vec![0..PATCHES],
            reach: None,
        };
        let rows = || vec![0.0; PATCHES * HIDDEN];
        let wide = || vec![0.0; PATCHES * INTERMEDIATE];
        let mut operands = Self {
            projections: [square()?, square()?, square()?, square()?],
            up: weight(INTERMEDIATE, HIDDEN)?,
            down: weight(HIDDEN, INTERMEDIATE)?,
            pages: PagedLayer::new(KvDtype::F32, PATCHES.div_ceil(PAGE_LEN), HEADS, HIDDEN / HEADS)?,
            layout: RaggedLayout { sequences: vec![sequence] },
            norm: vec![1.0; HIDDEN],
            x: noise(PATCHES * HIDDEN),
            rows: [rows(), rows(), rows(), rows()],
            wide: [wide(), wide()],
            ones: vec![1.0; PATCHES * INTERMEDIATE],
        };
        operands.check();
        Ok(operands)
    }

    /// Equal values are their own average.
    fn check(&mut self) {
        let pool = Pool::global();
        host::linear(pool, &self.projections[0], &self.x, PATCHES, &mut self.rows[0]);
        check_product(&self.projections[0], &self.x, &self.rows[0]);
        self.rows[1].copy_from_slice(&self.x);
        self.rows[2].fill(0.25);
        self.attend(pool);
        assert!(self.rows[3].iter().all(|out| (out - 0.25).abs() < 1e-4), "an average of equal values");
    }

    fn run(&mut self, pool: &Pool, part: Part) {
        match part {
            Part::Projections => self.project(pool),
            Part::Attention => self.attend(pool),
            Part::FeedForward => self.feed_forward(pool),
            Part::All => {
                self.normed(pool);
                self.project(pool);
                self.attend(pool);
                self.normed(pool);
                self.feed_forward(pool);
            }
        }
    }

    fn normed(&mut self, pool: &Pool) {
        let norm = host::LayerNorm { weight: &self.norm, bias: &self.norm, eps: 1e-6 };
        host::layer_norm(pool, &self.x, norm, &mut self.rows[3]);
    }

    fn project(&mut self, pool: &Pool) {
        for (weight, rows) in self.projections.iter().zip(&mut self.rows) {
            host::linear(pool, weight, &self.x, PATCHES, rows);
        }
    }

    fn attend(&mut self, pool: &Pool) {
        let spec = AttentionSpec {
            num_heads: HEADS,
            num_kv_heads: HEADS,
            head_dim: HIDDEN / HEADS,
            scale: 0.125,
            window: None,
            soft_cap: None,
            sinks: None,
        };
        let [q, k, v, out] = &mut self.rows;
        self.pages.write(Pool::global(), &self.layout, k, v);
        host::attention(pool, q, &self.pages, &self.layout, &spec, out);
    }

    fn feed_forward(&mut self, pool: &Pool) {
        let [wide, gated] = &mut self.wide;
        host::linear(pool, &self.up, &self.x, PATCHES, wide);
        host::glu(pool, wide, &self.ones, Activation::GeluTanh, gated);
        host::linear(pool, &self.down, gated, PATCHES, &mut self.rows[3]);
    }
}

fn main() {
    let mut criterion = criterion();
    let mut group = Group::of_operations(&mut criterion, "layer of siglip2-base in bf16, 1,024 patches");
    for part in [Part::Projections, Part::Attention, Part::FeedForward, Part::All] {
        let amount = Amount::Operations(part.operations());
        group.case(&format!("{part:?}"), amount, Operands::new, |pool, operands| operands.run(pool, part));
    }
    drop(group);
    criterion.final_summary();
}
