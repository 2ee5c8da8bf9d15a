//! Tensors that form one matrix: codes with their scales and zero points.

use lm_kernels::{FloatDtype, Source};
use safetensors::Dtype;

use super::fp8_mxfp4_scales::{MXFP4_BYTES, MXFP4_COLUMNS, ScaleKind, StoredScales};
use super::gptq_awq_groups::bytes_of;
use super::{Checkpoint, StoredCoding, StoredTensor, TensorType};
use crate::config::Quantization;
use crate::error::{Error, Result};

impl Checkpoint {
    /// Attaches scales to their codes as a `quantization_config` describes; scales are then no longer
    /// separate tensors.
    pub(crate) fn attach_scales(&mut self, quantization: Quantization) -> Result<()> {
        let names: Vec<String> = self.tensors.keys().cloned().collect();
        match quantization {
            Quantization::Blocks(_) => Ok(()),
            Quantization::Groups(format) => {
                self.drop_activation_scales();
                names.iter().try_for_each(|name| self.attach_groups(name, format))
            }
            Quantization::Mxfp4 => names.iter().try_for_each(|name| self.attach_exponents(name)),
            Quantization::Fp8 { block } => {
                self.drop_activation_scales();
                names.iter().try_for_each(|name| self.attach_factors(name, block))
            }
        }
    }

    /// Drops the scales of quantised activations: activations are not quantised by them here.
    fn drop_activation_scales(&mut self) {
        const SUFFIXES: [&str; 3] = [".activation_scale", ".input_scale", ".input_zero_point"];
        self.tensors.retain(|name, _| !SUFFIXES.iter().any(|suffix| name.ends_with(suffix)));
    }

    /// Attaches `…_scales` `[…, blocks]` to `…_blocks` `[…, blocks, 16]`.
    fn attach_exponents(&mut self, name: &str) -> Result<()> {
        let Some(stem) = name.strip_suffix("_blocks") else { return Ok(()) };
        let scales = format!("{stem}_scales");
        let (codes, exponents) = (self.stored(name)?, self.stored(&scales)?);
        for (name, stored) in [(name, codes), (&scales, exponents)] {
            if stored.ty != TensorType::Plain(Dtype::U8) {
                return Err(self.unsupported_type(name, stored, "U8"));
            }
        }
        let expected = [exponents.shape.as_slice(), &[MXFP4_BYTES]].concat();
        let Some((blocks, rows)) = exponents.shape.split_last().filter(|_| codes.shape == expected) else {
            return Err(self.wrong_shape(name, codes, expected));
        };
        let Some(columns) = blocks.checked_mul(MXFP4_COLUMNS) else {
            return Err(self.wrong_shape(name, codes, expected));
        };
        let shape = [rows, &[columns]].concat();
        self.attach(name, &scales, TensorType::Mxfp4, shape, ScaleKind::Exponents)
    }

    /// Attaches `…_scale_inv` or `…_scale`, if present, to a matrix of 8-bit floats.
    fn attach_factors(&mut self, name: &str, block: Option<[usize; 2]>) -> Result<()> {
        let Some(codes) = self.tensors.get(name) else { return Ok(()) };
        let (TensorType::Plain(Dtype::F8_E4M3), &[rows, cols]) = (codes.ty, codes.shape.as_slice()) else {
            return Ok(());
        };
        let scales = ["_scale_inv", "_scale"].map(|suffix| format!("{name}{suffix}"));
        let Some(scales) = scales.iter().find(|name| self.tensors.contains_key(*name)) else { return Ok(()) };
        let factors = self.stored(scales)?;
        let dtype =
            factors.ty.float().ok_or_else(|| self.unsupported_type(scales, factors, "F32, F16, BF16"))?;
        let one_for_all = factors.range.len() == dtype.bytes();
        let block = block.filter(|_| !one_for_all).unwrap_or([rows.max(1), cols.max(1)]);
        let expected = vec![rows.div_ceil(block[0]), cols.div_ceil(block[1])];
        if factors.shape != expected && !one_for_all {
            return Err(self.wrong_shape(scales, factors, expected));
        }
        self.check_values(scales, dtype, "finite factors", f32::is_finite)?;
        let kind = ScaleKind::Factors { dtype, block, per_row: expected[1] };
        let (scales, shape) = (scales.clone(), vec![rows, cols]);
        self.attach(name, &scales, TensorType::ScaledF8, shape, kind)
    }

    /// Checks the values of a tensor.
    pub(super) fn check_values(
        &self,
        name: &str,
        dtype: FloatDtype,
        expected: &str,
        is_valid: impl Fn(f32) -> bool,
    ) -> Result<()> {
        let stored = self.stored(name)?;
        let bytes = bytes_of(&self.files, &(stored.file, stored.range.clone()));
        let mut values = vec![0.0; bytes.len() / dtype.bytes()];
        Source::LeBytes { dtype, bytes }.read(0, &mut values);
        match values.into_iter().find(|&value| !is_valid(value)) {
            None => Ok(()),
            Some(value) => Err(Error::TensorValue {
                file: self.file_of(stored),
                tensor: name.into(),
                value,
                expected: expected.into(),
            }),
        }
    }

    fn attach(
        &mut self,
        name: &str,
        scales: &str,
        ty: TensorType,
        shape: Vec<usize>,
        kind: ScaleKind,
    ) -> Result<()> {
        let Some(StoredTensor { file, range, .. }) = self.tensors.remove(scales) else { return Ok(()) };
        if let Some(codes) = self.tensors.get_mut(name) {
            (codes.ty, codes.shape) = (ty, shape);
            codes.coding = StoredCoding::Scaled(StoredScales { file, range, kind });
        }
        Ok(())
    }
}
