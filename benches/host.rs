//! The kernels of `lm_kernels::host`: `cargo bench -p lm-benches --bench host [substring of the case's name]`.
//!
//! Decode shapes are compared with this machine's memory bandwidth, and use so many copies that caches do not help;
//! prefill shapes with its rate of single-precision multiply-adds, which the 8-bit products of Q8 and Q4 may
//! exceed. Both are measured at the start of the same run: on a machine under other load they, and the results,
//! vary. Every result is checked before it is timed.

use std::time::Duration;

use lm_benches::{Limit, median_time, random_weight};
use lm_kernels::{
    Activation, Arena, AttentionSpec, CausalConv, DeltaNet, DeltaNetSpec, FloatDtype, GgmlType, HeadOrder,
    Isa, KvDtype, PackedMatrix, PagedLayer, Pool, RaggedLayout, SequenceLayout, Source, StatePages,
    WeightFormat, host,
};

const BUDGET: Duration = Duration::from_millis(300);
/// Bytes that exceed any cache.
const COLD: usize = 256 << 20;
/// Formats that floats are packed to.
const FORMATS: [WeightFormat; 5] =
    [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16, WeightFormat::Q8, WeightFormat::Q4];

fn main() -> Result<(), lm_kernels::Error> {
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    let pool = Pool::global();
    let memory =
        Limit { unit: "GB/s", rate: host::limits::BandwidthProbe::new()?.read_bandwidth(pool) / 1e9 };
    let arithmetic = Limit { unit: "GFLOP/s", rate: host::limits::multiply_add_rate(pool) / 1e9 };
    println!(
        "{} threads, {} kernels, reads {:.1} GB/s, multiply-adds {:.0} GFLOP/s, products of bytes {:.0} GOP/s",
        pool.threads(),
        Isa::current(),
        memory.rate,
        arithmetic.rate,
        host::limits::int8_rate(pool) / 1e9
    );
    for format in FORMATS.into_iter().chain(GgmlType::ALL.iter().map(|&ggml| WeightFormat::Ggml(ggml))) {
        for (rows, cols, m) in
            [(6144, 1024, 1), (1024, 3072, 1), (6144, 1024, 4), (6144, 1024, 8), (6144, 1024, 512)]
        {
            let case = format!("linear {format} [{m}, {cols}] x [{rows}, {cols}]");
            if case.contains(&word) {
                linear(pool, format, rows, cols, m, &case, if m <= 8 { memory } else { arithmetic })?;
            }
        }
    }
    for dtype in [KvDtype::F16, KvDtype::Q8, KvDtype::F32] {
        for (cached, rows) in [(512, 1), (4096, 1), (0, 512), (1536, 512), (4096, 512)] {
            let case = format!("attention {dtype} {rows} rows after {cached}");
            if case.contains(&word) {
                attention(pool, dtype, cached, rows, &case, if rows == 1 { memory } else { arithmetic })?;
            }
        }
    }
    for rows in [1, 512] {
        let case = format!("short_conv of 1024 channels, {rows} rows");
        if case.contains(&word) {
            short_conv(pool, rows, &case, memory)?;
        }
        let case = format!("delta_net of 16 heads [128, 128], {rows} rows");
        if case.contains(&word) {
            delta_net(pool, rows, &case, if rows == 1 { memory } else { arithmetic })?;
        }
    }
    for (rows, width) in [(1, 1024), (8192, 1024)] {
        let case = format!("rms_norm [{rows}, {width}]");
        if case.contains(&word) {
            rms_norm(pool, rows, width, &case, memory);
        }
        let case = format!("glu [{rows}, {width}]");
        if case.contains(&word) {
            glu(pool, rows * width, &case, memory);
        }
    }
    for format in FORMATS {
        let case = format!("pack bf16 [6144, 1024] to {format}");
        if case.contains(&word) {
            pack(format, &case, memory)?;
        }
    }
    for &ggml in GgmlType::ALL {
        let case = format!("pack blocks [6144, 1024] of {ggml}");
        if case.contains(&word) {
            pack_blocks(ggml, &case, memory)?;
        }
    }
    Ok(())
}

/// Times one linear layer with several copies of its weight, so that they are read from memory as in a model.
fn linear(
    pool: &Pool,
    format: WeightFormat,
    rows: usize,
    cols: usize,
    m: usize,
    case: &str,
    limit: Limit,
) -> Result<(), lm_kernels::Error> {
    let x = noise(2, m * cols);
    let packed = random_weight(&Arena::default(), format, rows, cols)?;
    let mut y = vec![0.0; m * rows];
    host::linear(pool, &packed, &x, m, &mut y);
    check_linear(&packed, &x, &y);
    let copies = if m <= 8 { COLD / packed.bytes() + 1 } else { 1 };
    let copies = vec![packed; copies];
    let mut next = copies.iter().cycle();
    let time = median_time(BUDGET, || {
        if let Some(w) = next.next() {
            host::linear(pool, w, &x, m, &mut y);
        }
    });
    let amount = if m <= 8 { copies[0].bytes() } else { 2 * m * rows * cols };
    println!("{}", limit.line(case, amount as f64, time));
    Ok(())
}

fn check_linear(w: &PackedMatrix, x: &[f32], y: &[f32]) {
    let mut row = vec![0.0; w.cols()];
    for r in (0..w.rows()).step_by(97) {
        w.dequantize_row(r, &mut row);
        for (i, x) in x.chunks_exact(w.cols()).enumerate() {
            let products = x.iter().zip(&row).map(|(x, w)| f64::from(*x) * f64::from(*w));
            let exact: f64 = products.clone().sum();
            let magnitude: f64 = products.map(f64::abs).sum();
            let error = (f64::from(y[i * w.rows() + r]) - exact).abs();
            assert!(error < 1e-2 * magnitude, "row {r} is off by {error}");
        }
    }
}

/// A layer of LFM2-350M: input, output and state are transferred from and to memory.
fn short_conv(pool: &Pool, rows: usize, case: &str, limit: Limit) -> Result<(), lm_kernels::Error> {
    let channels = 1024;
    let conv = CausalConv::new(3, channels, &noise(7, 3 * channels), None);
    let (layout, pages) = one_sequence(rows);
    let mut states = StatePages::new(pages, conv.state_len())?;
    let (x, mut out) = (noise(8, 3 * rows * channels), vec![0.0; rows * channels]);
    host::short_conv(pool, &x, &conv, &mut states, &layout, &mut out);
    let tap = noise(7, 3 * channels)[2];
    assert!((out[0] - x[channels] * tap * x[0] * x[2 * channels]).abs() < 1e-6, "the first row has no past");
    let time = median_time(BUDGET, || {
        host::short_conv(pool, &x, &conv, &mut states, &layout, &mut out);
    });
    println!("{}", limit.line(case, (4 * (x.len() + out.len() + conv.state_len())) as f64, time));
    Ok(())
}

/// A layer of Qwen3.5's smaller models. A single row reads and writes the heads' matrices; many rows take three
/// multiply-adds and a product per element of them.
fn delta_net(pool: &Pool, rows: usize, case: &str, limit: Limit) -> Result<(), lm_kernels::Error> {
    let order = HeadOrder::Grouped;
    let spec = DeltaNetSpec { num_key_heads: 16, num_value_heads: 16, key_dim: 128, value_dim: 128, order };
    let (heads, width) = (spec.num_value_heads, spec.width());
    let conv = CausalConv::new(4, width, &noise(9, 4 * width), None);
    let net = DeltaNet::new(spec, conv, vec![0.5; heads], vec![0.0; heads]);
    let (layout, pages) = one_sequence(rows);
    let copies = if rows == 1 { COLD / (4 * net.state_len()) + 1 } else { 1 };
    let mut states = vec![StatePages::new(pages, net.state_len())?; copies];
    let (qkv, gates) = (noise(10, rows * width), noise(11, rows * heads));
    let inputs = host::DeltaNetRows { qkv: &qkv, dt: &gates, beta: &gates };
    let mut out = vec![0.0; rows * heads * spec.value_dim];
    host::delta_net(pool, inputs, &net, &mut states[0], &layout, &mut out);
    assert!(out.iter().all(|out| out.is_finite()) && out.iter().any(|&out| out != 0.0), "something is read");
    let mut next = 0;
    let time = median_time(BUDGET, || {
        host::delta_net(pool, inputs, &net, &mut states[next], &layout, &mut out);
        next = (next + 1) % copies;
    });
    let matrices = heads * spec.key_dim * spec.value_dim;
    let amount = if rows == 1 { 2 * 4 * matrices } else { rows * matrices * 7 };
    println!("{}", limit.line(case, amount as f64, time));
    Ok(())
}

/// A layout with the rows of one sequence, a single one after 30 tokens, and its number of pages.
fn one_sequence(rows: usize) -> (RaggedLayout, usize) {
    let cached_len = if rows == 1 { 30 } else { 0 };
    let pages = (cached_len + rows).div_ceil(lm_kernels::PAGE_LEN);
    let block_table = (0..pages as u32).collect();
    let sequence = SequenceLayout { rows: 0..rows, cached_len, block_table, ..Default::default() };
    (RaggedLayout { sequences: vec![sequence] }, pages)
}

fn attention(
    pool: &Pool,
    dtype: KvDtype,
    cached: usize,
    rows: usize,
    case: &str,
    limit: Limit,
) -> Result<(), lm_kernels::Error> {
    let spec = AttentionSpec {
        num_heads: 16,
        num_kv_heads: 8,
        head_dim: 128,
        scale: 0.1,
        window: None,
        soft_cap: None,
        sinks: None,
    };
    let slots = cached + rows;
    let pages: Vec<u32> = (0..slots.div_ceil(lm_kernels::PAGE_LEN) as u32).collect();
    let mut layer = PagedLayer::new(dtype, pages.len(), spec.num_kv_heads, spec.head_dim)?;
    let layout = |cached_len, rows| RaggedLayout {
        sequences: vec![SequenceLayout {
            rows: 0..rows,
            cached_len,
            block_table: pages.clone(),
            ..Default::default()
        }],
    };
    let width = spec.num_kv_heads * spec.head_dim;
    layer.write(&layout(0, slots), &noise(3, slots * width), &vec![0.25; slots * width]);
    let q = noise(4, rows * spec.num_heads * spec.head_dim);
    let mut out = vec![0.0; q.len()];
    let layout = layout(cached, rows);
    host::attention(pool, &q, &layer, &layout, &spec, &mut out);
    assert!(out.iter().all(|out| (out - 0.25).abs() < 2e-3), "an average of equal values is that value");
    let bytes = pages.len() * layer.bytes_per_page();
    let layers = vec![layer; if rows == 1 { COLD / bytes + 1 } else { 1 }];
    let mut next = layers.iter().cycle();
    let time = median_time(BUDGET, || {
        if let Some(layer) = next.next() {
            host::attention(pool, &q, layer, &layout, &spec, &mut out);
        }
    });
    let seen: usize = (cached + 1..=slots).sum();
    let amount = if rows == 1 { bytes } else { 4 * seen * spec.num_heads * spec.head_dim };
    println!("{}", limit.line(case, amount as f64, time));
    Ok(())
}

fn rms_norm(pool: &Pool, rows: usize, width: usize, case: &str, limit: Limit) {
    let (x, weight) = (noise(5, rows * width), vec![2.0; width]);
    let mut y = vec![0.0; x.len()];
    host::rms_norm(pool, &x, &weight, 0.0, &mut y);
    for y in y.chunks_exact(width) {
        let mean_square = y.iter().map(|y| f64::from(*y).powi(2)).sum::<f64>() / width as f64;
        assert!((mean_square - 4.0).abs() < 1e-4, "{mean_square}");
    }
    let time = median_time(BUDGET, || host::rms_norm(pool, &x, &weight, 0.0, &mut y));
    println!("{}", limit.line(case, (8 * x.len()) as f64, time));
}

fn glu(pool: &Pool, len: usize, case: &str, limit: Limit) {
    let (gate, up) = (noise(6, len), noise(7, len));
    let mut y = vec![0.0; len];
    host::glu(pool, &gate, &up, Activation::Silu, &mut y);
    for ((gate, up), y) in gate.iter().zip(&up).zip(&y) {
        let exact = f64::from(*gate) / (1.0 + (-f64::from(*gate)).exp()) * f64::from(*up);
        assert!((f64::from(*y) - exact).abs() < 1e-6, "{y} is not {exact}");
    }
    let time = median_time(BUDGET, || host::glu(pool, &gate, &up, Activation::Silu, &mut y));
    println!("{}", limit.line(case, (12 * len) as f64, time));
}

/// Times packing by the bytes of the checkpoint that are read.
fn pack(format: WeightFormat, case: &str, limit: Limit) -> Result<(), lm_kernels::Error> {
    let (rows, cols) = (6144, 1024);
    let bytes: Vec<u8> = noise(8, rows * cols).iter().flat_map(|x| x.to_le_bytes()[2..].to_owned()).collect();
    let source = Source::from_le_bytes(FloatDtype::Bf16, &bytes)?;
    let packed = PackedMatrix::pack(format, rows, cols, source)?;
    let (mut row, mut values) = (vec![0.0; cols], vec![0.0; cols]);
    packed.dequantize_row(rows - 1, &mut row);
    source.read((rows - 1) * cols, &mut values);
    assert!(row.iter().zip(&values).all(|(x, y)| (x - y).abs() < 0.15), "the last row is kept");
    let mut failed = None;
    let time = median_time(BUDGET, || failed = PackedMatrix::pack(format, rows, cols, source).err());
    println!("{}", limit.line(case, bytes.len() as f64, time));
    failed.map_or(Ok(()), Err)
}

/// Times packing of blocks from a file, by their bytes.
fn pack_blocks(ggml: GgmlType, case: &str, limit: Limit) -> Result<(), lm_kernels::Error> {
    let (rows, cols) = (6144, 1024);
    let bytes: Vec<u8> = (0..rows * ggml.row_bytes(cols).unwrap_or(0)).map(|i| (i * 31 % 64) as u8).collect();
    let mut failed = PackedMatrix::from_blocks(ggml, rows, cols, &bytes).err();
    let time = median_time(BUDGET, || failed = PackedMatrix::from_blocks(ggml, rows, cols, &bytes).err());
    println!("{}", limit.line(case, bytes.len() as f64, time));
    failed.map_or(Ok(()), Err)
}

/// Pseudo-random numbers between -1 and 1.
fn noise(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}
