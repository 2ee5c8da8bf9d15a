//! Products with weights of every format: `cargo bench -p lm-benches --bench formats [FORMAT ...]`.
//!
//! One row of activations is multiplied by matrices larger than any cache, 512 rows by one matrix. The machine's
//! peak bandwidth and operation rate are measured before and after each pass, since it may be under other load: a
//! share is the median of the passes' shares. Every result is checked before it is timed.

use std::time::Instant;

use lm_benches::{noise, random_weight};
use lm_kernels::{Arena, GgmlType, Isa, PackedMatrix, Pool, WeightFormat, host};

const ROWS: usize = 6144;
const COLS: usize = 2048;
/// Bytes of weights read per pass.
const COLD: usize = 512 << 20;
const MANY: usize = 512;
const PASSES: usize = 5;

fn main() -> Result<(), lm_kernels::Error> {
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let blocks = GgmlType::ALL.iter().map(|&ggml| WeightFormat::Ggml(ggml));
    let all = [WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4].into_iter().chain(blocks);
    let formats: Vec<WeightFormat> = if names.is_empty() {
        all.collect()
    } else {
        names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?
    };
    let pool = Pool::global();
    let memory = host::limits::BandwidthProbe::new()?;
    println!("{} threads, {}", pool.threads(), Isa::current());
    println!("| format | bits | GB/s from memory | of the rate | GOP/s, {MANY} rows | of the rate |");
    println!("|---|---|---|---|---|---|");
    for format in formats {
        let first = random_weight(&Arena::default(), format, ROWS, COLS)?;
        let bits = 8.0 * first.bytes() as f64 / (ROWS * COLS) as f64;
        let weights = vec![first; COLD.div_ceil(ROWS * COLS * bits as usize / 8)];
        let bytes: usize = weights.iter().map(PackedMatrix::bytes).sum();
        let (x, mut y) = (noise(MANY * COLS), vec![0.0; MANY * ROWS]);
        host::linear(pool, &weights[0], &x, MANY, &mut y);
        check(&weights[0], &x, &y);

        let [cold, share] = best(
            || memory.read_bandwidth(pool),
            || {
                bytes as f64
                    / seconds(|| {
                        weights.iter().for_each(|w| host::linear(pool, w, &x[..COLS], 1, &mut y[..ROWS]));
                    })
            },
        );
        let operations = (2 * MANY * ROWS * COLS) as f64;
        let [many, of_products] = best(
            || host::limits::int8_rate(pool),
            || operations / seconds(|| host::linear(pool, &weights[0], &x, MANY, &mut y)),
        );
        println!(
            "| {format} | {bits:.2} | {:.1} | {:.0} % | {:.0} | {:.0} % |",
            cold / 1e9,
            100.0 * share,
            many / 1e9,
            100.0 * of_products,
        );
    }
    Ok(())
}

/// The medians of a rate and of its share of a limit, which is measured before and after each pass.
fn best(limit: impl Fn() -> f64, mut rate: impl FnMut() -> f64) -> [f64; 2] {
    rate();
    let (mut rates, mut shares) = (Vec::new(), Vec::new());
    for _ in 0..PASSES {
        let before = limit();
        let passes = [rate(), rate(), rate()];
        let after = limit();
        let rate = passes.into_iter().fold(0.0, f64::max);
        rates.push(rate);
        shares.push(rate / before.max(after));
    }
    [rates, shares].map(|mut values| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    })
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Checks products against sums in double precision.
fn check(w: &PackedMatrix, x: &[f32], y: &[f32]) {
    let mut row = vec![0.0; w.cols()];
    for r in (0..w.rows()).step_by(97) {
        w.dequantize_row(r, &mut row);
        for (i, x) in x.chunks_exact(w.cols()).enumerate().step_by(61) {
            let products = x.iter().zip(&row).map(|(x, w)| f64::from(*x) * f64::from(*w));
            let exact: f64 = products.clone().sum();
            let magnitude: f64 = products.map(f64::abs).sum();
            let error = (f64::from(y[i * w.rows() + r]) - exact).abs();
            assert!(error < 1e-2 * magnitude, "{}: row {r} is off by {error}", w.format());
        }
    }
}
