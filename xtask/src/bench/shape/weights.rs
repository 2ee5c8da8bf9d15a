//! A safetensors file with random weights.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::tensors::Tensor;

/// Contents of a tensor.
#[derive(Clone, Copy)]
enum Content {
    /// Random MXFP4 codes.
    Codes,
    /// MXFP4 exponents: 2^-7.
    Exponents,
    /// Norms, biases, sinks: ones.
    Ones,
    /// Approximately normal, with standard deviation 0.02.
    Normal,
}

impl Content {
    fn of((name, shape): &Tensor) -> Self {
        match shape[..] {
            _ if name.ends_with("_blocks") => Self::Codes,
            _ if name.ends_with("_scales") => Self::Exponents,
            [_] => Self::Ones,
            _ => Self::Normal,
        }
    }

    /// Element type and its size in bytes.
    fn dtype(self) -> (&'static str, usize) {
        match self {
            Self::Codes | Self::Exponents => ("U8", 1),
            Self::Ones | Self::Normal => ("BF16", 2),
        }
    }

    fn write(self, out: &mut impl Write, state: &mut u64) -> io::Result<()> {
        match self {
            Self::Codes => out.write_all(&normal(state).to_bits().to_le_bytes()[1..2]),
            Self::Exponents => out.write_all(&[127 - 7]),
            Self::Ones => out.write_all(&bf16(1.0)),
            Self::Normal => out.write_all(&bf16(0.02 * normal(state))),
        }
    }
}

pub(super) fn write(tensors: &[Tensor], path: &Path) -> Result<()> {
    let mut header = Map::new();
    let mut end = 0;
    for tensor in tensors {
        let (start, (dtype, size)) = (end, Content::of(tensor).dtype());
        let (name, shape) = tensor;
        end += size * shape.iter().product::<usize>();
        header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}));
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    let mut state = 1;
    for tensor in tensors {
        let (content, elements) = (Content::of(tensor), tensor.1.iter().product::<usize>());
        (0..elements).try_for_each(|_| content.write(&mut file, &mut state))?;
    }
    Ok(file.into_inner()?.sync_all()?)
}

/// Truncates a float to bf16.
fn bf16(x: f32) -> [u8; 2] {
    ((x.to_bits() >> 16) as u16).to_le_bytes()
}

/// Approximately normal with variance 1: the sum of four uniform numbers.
fn normal(state: &mut u64) -> f32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let bits = *state ^ (*state >> 29);
    let sum: i64 = (0..4).map(|i| (bits >> (16 * i) & 0xffff) as i64).sum();
    (sum - 2 * 0xffff) as f32 * (1.732_050_8 / 65_536.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_approximately_normal() {
        let mut state = 1;
        let values: Vec<f32> = (0..100_000).map(|_| normal(&mut state)).collect();
        let mean = values.iter().sum::<f32>() / 1e5;
        let variance = values.iter().map(|x| x * x).sum::<f32>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
