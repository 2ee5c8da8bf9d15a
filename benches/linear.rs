//! Linear layers of the public shape qwen3-0.6b: `cargo bench -p lm-benches --bench linear [FORMAT] [rows ...]`, in
//! `q4_k` or another block type too.
//!
//! Each layer has its own copy of the weights, as in a model. Few rows are compared with the machine's memory bandwidth,
//! many with its rate of 8-bit products; both are measured in the same run.

use std::time::Duration;

use lm_benches::{Limit, median_time, noise, random_weight};
use lm_kernels::{Arena, Isa, PackedMatrix, Pool, WeightFormat, host};

/// More than in the model, so that the weights of a single kind of product do not fit a cache either.
const LAYERS: usize = 64;
const HIDDEN: usize = 1024;
const HEADS: usize = 2048;
const KV_HEADS: usize = 1024;
const INTERMEDIATE: usize = 3072;
const BUDGET: Duration = Duration::from_millis(400);

fn main() -> Result<(), lm_kernels::Error> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let format: WeightFormat = args.first().map_or("q4", String::as_str).parse()?;
    let rows: Vec<usize> = args.iter().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let rows = if rows.is_empty() { vec![1, 2, 4, 8, 32, 512] } else { rows };
    let pool = Pool::global();
    let memory =
        Limit { unit: "GB/s", rate: host::limits::BandwidthProbe::new()?.read_bandwidth(pool) / 1e9 };
    let products = Limit { unit: "GOP/s", rate: host::limits::int8_rate(pool) / 1e9 };
    println!("{} threads, {}, {format}", pool.threads(), Isa::current());
    let arena = Arena::default();
    let heads =
        (0..8).map(|_| random_weight(&arena, format, LOGITS, HIDDEN)).collect::<Result<Vec<_>, _>>()?;
    let layers =
        (0..LAYERS).map(|_| Layer::new(&arena, format)).collect::<Result<Vec<_>, lm_kernels::Error>>()?;
    for m in rows {
        let (x, mut y) = (noise(m * HIDDEN), vec![0.0; m * LOGITS]);
        let time = median_time(BUDGET, || heads.iter().for_each(|w| host::linear(pool, w, &x, m, &mut y)));
        println!("{}", memory.line(&format!("Head of {m} rows"), (8 * heads[0].bytes()) as f64, time));
        for kind in [Kind::Qkv, Kind::Output, Kind::GateUp, Kind::Down, Kind::All] {
            let mut buffers = Buffers::new(m);
            let time = median_time(BUDGET, || {
                layers.iter().for_each(|layer| kind.run(pool, layer, m, &mut buffers))
            });
            let weights: Vec<&PackedMatrix> = kind.weights(&layers[0]);
            let bytes: usize = weights.iter().map(|w| w.bytes()).sum();
            let ops: usize = weights.iter().map(|w| 2 * m * w.rows() * w.cols()).sum();
            let case = format!("{kind:?} of {m} rows");
            println!("{}", memory.line(&case, (LAYERS * bytes) as f64, time));
            if m > 4 {
                println!("{}", products.line(&case, (LAYERS * ops) as f64, time));
            }
        }
    }
    Ok(())
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

/// Rows of a head weight: an eighth of the vocabulary; eight of them make up the output head.
const LOGITS: usize = 151_936 / 8;

impl Layer {
    fn new(arena: &Arena, format: WeightFormat) -> Result<Self, lm_kernels::Error> {
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

/// The products of a layer that are timed.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Qkv,
    Output,
    GateUp,
    Down,
    All,
}

impl Kind {
    fn weights(self, layer: &Layer) -> Vec<&PackedMatrix> {
        match self {
            Kind::Qkv => vec![&layer.q, &layer.k, &layer.v],
            Kind::Output => vec![&layer.output],
            Kind::GateUp => vec![&layer.gate, &layer.up],
            Kind::Down => vec![&layer.down],
            Kind::All => [Kind::Qkv, Kind::Output, Kind::GateUp, Kind::Down]
                .iter()
                .flat_map(|kind| kind.weights(layer))
                .collect(),
        }
    }

    fn run(self, pool: &Pool, layer: &Layer, m: usize, buffers: &mut Buffers) {
        let Buffers { x, norm, q, k, v, wide, out } = buffers;
        let norm = Some(host::Norm { weight: norm, eps: 1e-6 });
        let output = |w, y| host::Output { w, bias: None, add: false, y };
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
                host::linears(pool, input, &mut [host::Output { add: true, ..output(&layer.output, out) }]);
            }
            Kind::GateUp => {
                let input = host::Input { x: &x[..m * HIDDEN], rows: m, norm };
                host::gated(pool, input, &layer.gate, &layer.up, host::Activation::Silu, wide);
            }
            Kind::Down => {
                let input = host::Input { x: &x[..m * INTERMEDIATE], rows: m, norm: None };
                host::linears(pool, input, &mut [host::Output { add: true, ..output(&layer.down, out) }]);
            }
            Kind::All => {
                for kind in [Kind::Qkv, Kind::Output, Kind::GateUp, Kind::Down] {
                    kind.run(pool, layer, m, buffers);
                }
            }
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
        }
    }
}
