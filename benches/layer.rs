//! The products of a layer of the public shape qwen3-0.6b:
//! `cargo bench -p lm-benches --bench layer [-- FILTER]`, in 4 bit or in the format that `LM_BENCH_FORMAT`
//! names, `q4_k` or another block type too.
//!
//! Each layer has its own copy of the weights, as in a model. Few rows are compared with the rate at which
//! memory is read, many with the rate of byte products.

use std::cell::OnceCell;
use std::rc::Rc;

use lm_benches::{Amount, Group, criterion, noise, random_weight};
use lm_kernels::{Arena, PackedMatrix, Pool, WeightFormat, host};

/// More than in the model, so that even the weights of a single kind of product exceed the caches.
const LAYERS: usize = 64;
const HIDDEN: usize = 1024;
const HEADS: usize = 2048;
const KV_HEADS: usize = 1024;
const INTERMEDIATE: usize = 3072;

fn main() -> lm_kernels::Result<()> {
    let format = std::env::var("LM_BENCH_FORMAT").map_or(Ok(WeightFormat::Q4), |name| name.parse())?;
    let mut criterion = criterion();
    // Made by the first case that the filter lets run.
    let made = OnceCell::new();
    let weights =
        || made.get_or_init(|| Rc::new(Weights::new(format).expect("memory for the weights"))).clone();
    for rows in [1, 4, 8, 32, 512] {
        let name = format!("layer of qwen3-0.6b in {format}, {rows} rows");
        let few = rows <= 8;
        let mut group = if few {
            Group::of_bytes(&mut criterion, &name)
        } else {
            Group::of_operations(&mut criterion, &name)
        };
        for kind in [Kind::Qkv, Kind::Output, Kind::GateUp, Kind::Down, Kind::All, Kind::Head] {
            let shapes = kind.shapes();
            let count = |one: fn(WeightFormat, usize, usize) -> usize| {
                kind.repeats() * shapes.iter().map(|&[out, input]| one(format, out, input)).sum::<usize>()
            };
            let amount = if few {
                Amount::Bytes(count(|format, out, input| format.matrix_bytes(out, input).unwrap_or(1)))
            } else {
                Amount::Operations(rows * count(|_, out, input| 2 * out * input))
            };
            let setup = || Ok((weights(), Buffers::new(rows)));
            group.case(&format!("{kind:?}"), amount, setup, |pool, (weights, buffers)| {
                weights.run(kind, pool, rows, buffers);
            });
        }
    }
    criterion.final_summary();
    Ok(())
}

/// Layers and the output head.
struct Weights {
    layers: Vec<Layer>,
    head: Vec<PackedMatrix>,
}

impl Weights {
    fn new(format: WeightFormat) -> lm_kernels::Result<Self> {
        let arena = Arena::default();
        let head = (0..HEAD_PARTS)
            .map(|_| random_weight(&arena, format, LOGITS, HIDDEN))
            .collect::<Result<_, _>>()?;
        let layers = (0..LAYERS).map(|_| Layer::new(&arena, format)).collect::<Result<_, _>>()?;
        Ok(Self { layers, head })
    }

    fn run(&self, kind: Kind, pool: &Pool, rows: usize, buffers: &mut Buffers) {
        match kind {
            Kind::Head => {
                let Buffers { x, logits, .. } = buffers;
                self.head.iter().for_each(|w| host::linear(pool, w, &x[..rows * HIDDEN], rows, logits));
            }
            _ => self.layers.iter().for_each(|layer| kind.run(pool, layer, rows, buffers)),
        }
    }
}

/// The weights of one layer.
struct Layer {
    q: PackedMatrix,
    k: PackedMatrix,
    v: PackedMatrix,
    output: PackedMatrix,
    gate: PackedMatrix,
    up: PackedMatrix,
    down: PackedMatrix,
}

/// Weights that make up the output head.
const HEAD_PARTS: usize = 8;
/// Rows of each of them: an eighth of the vocabulary.
const LOGITS: usize = 151_936 / HEAD_PARTS;

impl Layer {
    fn new(arena: &Arena, format: WeightFormat) -> lm_kernels::Result<Self> {
        let pack = |rows, cols| random_weight(arena, format, rows, cols);
        Ok(Self {
            q: pack(HEADS, HIDDEN)?,
            k: pack(KV_HEADS, HIDDEN)?,
            v: pack(KV_HEADS, HIDDEN)?,
            output: pack(HIDDEN, HEADS)?,
            gate: pack(INTERMEDIATE, HIDDEN)?,
            up: pack(INTERMEDIATE, HIDDEN)?,
            down: pack(HIDDEN, INTERMEDIATE)?,
        })
    }
}

/// The products that are timed.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Qkv,
    Output,
    GateUp,
    Down,
    /// The four above.
    All,
    Head,
}

impl Kind {
    /// `[out, in]` of each weight.
    fn shapes(self) -> Vec<[usize; 2]> {
        match self {
            Kind::Qkv => vec![[HEADS, HIDDEN], [KV_HEADS, HIDDEN], [KV_HEADS, HIDDEN]],
            Kind::Output => vec![[HIDDEN, HEADS]],
            Kind::GateUp => vec![[INTERMEDIATE, HIDDEN]; 2],
            Kind::Down => vec![[HIDDEN, INTERMEDIATE]],
            Kind::All => Self::OF_A_LAYER.iter().flat_map(|kind| kind.shapes()).collect(),
            Kind::Head => vec![[LOGITS, HIDDEN]],
        }
    }

    /// Times that these weights are read in one iteration.
    fn repeats(self) -> usize {
        if matches!(self, Kind::Head) { HEAD_PARTS } else { LAYERS }
    }

    const OF_A_LAYER: [Kind; 4] = [Kind::Qkv, Kind::Output, Kind::GateUp, Kind::Down];

    fn run(self, pool: &Pool, layer: &Layer, m: usize, buffers: &mut Buffers) {
        let Buffers { x, norm, q, k, v, wide, out, .. } = buffers;
        let norm = Some(host::Norm { weight: norm, eps: 1e-6 });
        let output = |w, y| host::Output { w, bias: None, then: host::Then::Store, y };
        match self {
            Kind::Qkv => {
                let input = host::Input { x: &x[..m * HIDDEN], rows: m, norm };
                host::linears(
                    pool,
                    input,
                    &mut [output(&layer.q, q), output(&layer.k, k), output(&layer.v, v)],
                );
            }
            Kind::Output => {
                let input = host::Input { x: &x[..m * HEADS], rows: m, norm: None };
                host::linears(
                    pool,
                    input,
                    &mut [host::Output { then: host::Then::Add, ..output(&layer.output, out) }],
                );
            }
            Kind::GateUp => {
                let input = host::Input { x: &x[..m * HIDDEN], rows: m, norm };
                host::gated(pool, input, &layer.gate, &layer.up, host::Activation::Silu, wide);
            }
            Kind::Down => {
                let input = host::Input { x: &x[..m * INTERMEDIATE], rows: m, norm: None };
                host::linears(
                    pool,
                    input,
                    &mut [host::Output { then: host::Then::Add, ..output(&layer.down, out) }],
                );
            }
            Kind::All => Self::OF_A_LAYER.iter().for_each(|kind| kind.run(pool, layer, m, buffers)),
            Kind::Head => unreachable!("no product of a layer"),
        }
    }
}

struct Buffers {
    x: Vec<f32>,
    norm: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    wide: Vec<f32>,
    out: Vec<f32>,
    logits: Vec<f32>,
}

impl Buffers {
    fn new(m: usize) -> Self {
        Self {
            x: noise(m * INTERMEDIATE),
            norm: vec![1.0; HIDDEN],
            q: vec![0.0; m * HEADS],
            k: vec![0.0; m * KV_HEADS],
            v: vec![0.0; m * KV_HEADS],
            wide: vec![0.0; m * INTERMEDIATE],
            out: vec![0.0; m * HIDDEN],
            logits: vec![0.0; m * LOGITS],
        }
    }
}
