//! Layers with recurrent states: `cargo bench -p lm-benches --bench states [-- FILTER]`.

use lm_benches::{Amount, COLD, Group, criterion, noise};
use lm_kernels::{
    CausalConv, DeltaNet, DeltaNetSpec, HeadOrder, Mamba2, Mamba2Spec, PAGE_LEN, Pool, RaggedLayout,
    SequenceLayout, StatePages, host,
};

const MANY: usize = 512;
/// Channels of LFM2-350M.
const CHANNELS: usize = 1024;
/// Heads of Qwen3.5's smaller models.
const SPEC: DeltaNetSpec = DeltaNetSpec {
    num_key_heads: 16,
    num_value_heads: 16,
    key_dim: 128,
    value_dim: 128,
    order: HeadOrder::Grouped,
};
/// Elements of the heads' matrices.
const MATRICES: usize = SPEC.num_value_heads * SPEC.key_dim * SPEC.value_dim;
/// Heads of Granite 4.0 H Micro.
const MAMBA: Mamba2Spec = Mamba2Spec {
    num_heads: 64,
    head_dim: 64,
    num_groups: 1,
    state_dim: 128,
    time_step_limit: [0.0, f32::INFINITY],
};
/// Elements of their matrices.
const MAMBA_MATRICES: usize = MAMBA.num_heads * MAMBA.head_dim * MAMBA.state_dim;

fn main() {
    let mut criterion = criterion();
    let mut group = Group::of_bytes(&mut criterion, "states, bytes");
    for rows in [1, MANY] {
        let bytes = 4 * (4 * rows * CHANNELS + conv(3, CHANNELS).state_len());
        let case = format!("short_conv of {CHANNELS} channels, {rows} rows");
        group.case(&case, Amount::Bytes(bytes), || ShortConv::new(rows), |pool, layer| layer.run(pool));
    }
    // A single row reads and writes the heads' matrices.
    let setup = || Delta::new(1, COLD / (4 * MATRICES) + 1);
    group.case("delta_net, 1 row", Amount::Bytes(2 * 4 * MATRICES), setup, |pool, net| net.run(pool));
    let setup = || Mamba::new(1, COLD / (4 * MAMBA_MATRICES) + 1);
    group.case("mamba2, 1 row", Amount::Bytes(2 * 4 * MAMBA_MATRICES), setup, |pool, net| net.run(pool));
    drop(group);
    // Many rows take three multiply-adds and a product for each of their elements.
    let mut group = Group::of_operations(&mut criterion, "states, operations");
    let amount = Amount::Operations(7 * MANY * MATRICES);
    let case = format!("delta_net, {MANY} rows");
    group.case(&case, amount, || Delta::new(MANY, 1), |pool, net| net.run(pool));
    // Two multiply-adds and a product.
    let amount = Amount::Operations(5 * MANY * MAMBA_MATRICES);
    let case = format!("mamba2, {MANY} rows");
    group.case(&case, amount, || Mamba::new(MANY, 1), |pool, net| net.run(pool));
    drop(group);
    criterion.final_summary();
}

fn conv(kernel_size: usize, channels: usize) -> CausalConv {
    CausalConv::new(kernel_size, channels, &noise(kernel_size * channels), None)
}

/// A layout with the rows of one sequence, a single one after 30 tokens, and its number of pages.
fn one_sequence(rows: usize) -> (RaggedLayout, usize) {
    let cached_len = if rows == 1 { 30 } else { 0 };
    let pages = (cached_len + rows).div_ceil(PAGE_LEN);
    let block_table = (0..pages as u32).collect();
    let sequence = SequenceLayout { rows: 0..rows, cached_len, block_table, ..Default::default() };
    (RaggedLayout { sequences: vec![sequence] }, pages)
}

struct ShortConv {
    conv: CausalConv,
    layout: RaggedLayout,
    states: StatePages,
    x: Vec<f32>,
    out: Vec<f32>,
}

impl ShortConv {
    fn new(rows: usize) -> lm_kernels::Result<Self> {
        let ((layout, pages), conv) = (one_sequence(rows), conv(3, CHANNELS));
        let states = StatePages::new(pages, conv.state_len())?;
        let (x, out) = (noise(3 * rows * CHANNELS), vec![0.0; rows * CHANNELS]);
        let mut layer = Self { conv, layout, states, x, out };
        layer.run(Pool::global());
        let (x, tap) = (&layer.x, noise(3 * CHANNELS)[2]);
        let expected = x[CHANNELS] * tap * x[0] * x[2 * CHANNELS];
        assert!((layer.out[0] - expected).abs() < 1e-6, "the first row has no past");
        Ok(layer)
    }

    fn run(&mut self, pool: &Pool) {
        host::short_conv(pool, &self.x, &self.conv, &mut self.states, &self.layout, &mut self.out);
    }
}

struct Delta {
    net: DeltaNet,
    layout: RaggedLayout,
    states: Vec<StatePages>,
    next: usize,
    qkv: Vec<f32>,
    gates: Vec<f32>,
    out: Vec<f32>,
}

impl Delta {
    fn new(rows: usize, copies: usize) -> lm_kernels::Result<Self> {
        let heads = SPEC.num_value_heads;
        let net = DeltaNet::new(SPEC, conv(4, SPEC.width()), vec![0.5; heads], vec![0.0; heads]);
        let (layout, pages) = one_sequence(rows);
        let states = vec![StatePages::new(pages, net.state_len())?; copies];
        let (qkv, gates) = (noise(rows * SPEC.width()), noise(rows * heads));
        let out = vec![0.0; rows * heads * SPEC.value_dim];
        let mut layer = Self { net, layout, states, next: 0, qkv, gates, out };
        layer.run(Pool::global());
        let finite = layer.out.iter().all(|out| out.is_finite());
        assert!(finite && layer.out.iter().any(|&out| out != 0.0), "something is read");
        Ok(layer)
    }

    fn run(&mut self, pool: &Pool) {
        let inputs = host::DeltaNetRows { qkv: &self.qkv, dt: &self.gates, beta: &self.gates };
        host::delta_net(pool, inputs, &self.net, &mut self.states[self.next], &self.layout, &mut self.out);
        self.next = (self.next + 1) % self.states.len();
    }
}

struct Mamba {
    net: Mamba2,
    layout: RaggedLayout,
    states: Vec<StatePages>,
    next: usize,
    projected: Vec<f32>,
    out: Vec<f32>,
}

impl Mamba {
    fn new(rows: usize, copies: usize) -> lm_kernels::Result<Self> {
        let heads = MAMBA.num_heads;
        let of_heads = |value| vec![value; heads];
        let conv = conv(4, MAMBA.conv_width());
        let net = Mamba2::new(MAMBA, conv, of_heads(0.5), of_heads(0.0), of_heads(1.0));
        let (layout, pages) = one_sequence(rows);
        let states = vec![StatePages::new(pages, net.state_len())?; copies];
        let (projected, out) = (noise(rows * MAMBA.projected_width()), vec![0.0; rows * MAMBA.inner_width()]);
        let mut layer = Self { net, layout, states, next: 0, projected, out };
        layer.run(Pool::global());
        let finite = layer.out.iter().all(|out| out.is_finite());
        assert!(finite && layer.out.iter().any(|&out| out != 0.0), "something is read");
        Ok(layer)
    }

    fn run(&mut self, pool: &Pool) {
        let states = &mut self.states[self.next];
        host::mamba2(pool, &self.projected, &self.net, states, &self.layout, &mut self.out);
        self.next = (self.next + 1) % self.states.len();
    }
}
