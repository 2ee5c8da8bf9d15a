//! Tensors that make one matrix together: codes with their scales and zero points.

use lm_kernels::{FloatDtype, Source};
use safetensors::Dtype;

use super::super::groups::{StoredGroups, bytes_of};
use super::super::scales::{MXFP4_BYTES, MXFP4_COLUMNS, ScaleKind, StoredScales};
use super::super::{CodePacking, GroupFormat, Quantization, TensorType};
use super::{Checkpoint, StoredCoding, StoredTensor};
use crate::config::unsupported;
use crate::{Error, Result};

impl Checkpoint {
    /// Puts tensors of codes together with those of their scales, as a `quantization_config` says; the latter are then no tensors of
    /// their own.
    pub(crate) fn attach_scales(&mut self, quantization: Quantization) -> Result<()> {
        let names: Vec<String> = self.tensors.keys().cloned().collect();
        match quantization {
            Quantization::Blocks(_) => Ok(()),
            Quantization::Groups(format) => {
                self.drop_scales_of_activations();
                names.iter().try_for_each(|name| self.attach_groups(name, format))
            }
            Quantization::Mxfp4 => names.iter().try_for_each(|name| self.attach_exponents(name)),
            Quantization::Fp8 { block } => {
                self.drop_scales_of_activations();
                names.iter().try_for_each(|name| self.attach_factors(name, block))
            }
        }
    }

    /// They say how other programs round what is multiplied, not what the weights are.
    fn drop_scales_of_activations(&mut self) {
        const ENDS: [&str; 3] = [".activation_scale", ".input_scale", ".input_zero_point"];
        self.tensors.retain(|name, _| !ENDS.iter().any(|end| name.ends_with(end)));
    }

    /// `…_blocks` `[…, blocks, 16]` with `…_scales` `[…, blocks]`.
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

    /// A matrix of 8-bit floats with `…_scale_inv` or `…_scale`, if there is one.
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

    /// Codes with their scales and perhaps zero points and an order of the inputs: the matrix `….weight`.
    fn attach_groups(&mut self, name: &str, format: GroupFormat) -> Result<()> {
        let parts = format.packing.names();
        let module = name.strip_suffix(parts.codes).and_then(|module| module.strip_suffix('.'));
        let Some(module) = module.filter(|_| self.has_codes(name, format)) else { return Ok(()) };
        let [zeros, scales, order] =
            [parts.zeros, parts.scales, parts.order].map(|part| format!("{module}.{part}"));
        let scale_tensor = self.stored(&scales)?;
        let scale_dtype = scale_tensor
            .ty
            .float()
            .ok_or_else(|| self.unsupported_type(&scales, scale_tensor, "F16, BF16, F32"))?;
        let codes = self.stored(name)?;
        let matrix = format.matrix(&codes.shape);
        let shapes = matrix.and_then(|[inputs, outputs]| format.shapes(inputs, outputs));
        let (Some([inputs, outputs]), Some(shapes)) = (matrix, shapes) else {
            let known = format!("a form of {name}, whose codes are {:?}", codes.shape);
            let group = format.group.map_or(-1, |group| group as i64);
            return Err(unsupported(parts.group_key, group, known));
        };
        let has_zeros = self.tensors.contains_key(&zeros) || format.packing.needs_zeros();
        for (part, expected) in [name, &zeros, &scales].into_iter().zip(shapes) {
            if part == zeros && !has_zeros {
                continue;
            }
            let stored = self.stored(part)?;
            if part != scales && stored.ty != TensorType::Plain(format.packing.dtype()) {
                return Err(self.unsupported_type(part, stored, &format.packing.dtype().to_string()));
            }
            self.check_shape(part, stored, &expected)?;
        }
        let place = |name: &str| self.stored(name).map(|stored| (stored.file, stored.range.clone()));
        let groups = StoredGroups {
            format,
            inputs,
            outputs,
            zeros: has_zeros.then(|| place(&zeros)).transpose()?,
            scales: place(&scales)?,
            scale_dtype,
        };
        let Some(ty) = groups.block_type(groups.zeros.as_ref().map(|place| bytes_of(&self.files, place)))
        else {
            return Err(self.unsupported_type(&zeros, self.stored(&zeros)?, "8-bit codes around 128"));
        };
        let is_half = |value: f32| value.is_finite() && half::f16::from_f32(value).to_f32() == value;
        self.check_values(&scales, scale_dtype, "numbers that F16 has", is_half)?;
        self.check_order(&order, parts.order_key, inputs, format.group(inputs))?;
        let shape = format!("{module}.weight_shape");
        self.check_written_shape(&shape, [outputs, inputs])?;
        let weight = format!("{module}.weight");
        if let Some(other) = self.tensors.get(&weight).filter(|_| weight != name) {
            let (first, second) = (self.file_of(other), self.file_of(self.stored(name)?));
            return Err(Error::DuplicateTensor { tensor: weight, first, second });
        }
        let codes = self.tensors.remove(name);
        [&zeros, &scales, &order, &shape].into_iter().for_each(|part| drop(self.tensors.remove(part)));
        if let Some(codes) = codes {
            let (ty, shape) = (TensorType::Grouped(ty), vec![outputs, inputs]);
            let coding = StoredCoding::Groups(Box::new(groups));
            self.tensors.insert(weight, StoredTensor { ty, shape, coding, ..codes });
        }
        Ok(())
    }

    /// Whether a tensor whose name says so holds codes: one of bytes has the name of one of floats.
    fn has_codes(&self, name: &str, format: GroupFormat) -> bool {
        let is_integer = |stored: &StoredTensor| stored.ty == TensorType::Plain(format.packing.dtype());
        format.packing != CodePacking::Bytes || self.tensors.get(name).is_some_and(is_integer)
    }

    /// Checks the shape that a checkpoint of compressed-tensors has beside the codes.
    fn check_written_shape(&self, name: &str, shape: [usize; 2]) -> Result<()> {
        let Some(stored) = self.tensors.get(name) else { return Ok(()) };
        let bytes = bytes_of(&self.files, &(stored.file, stored.range.clone()));
        let written: Vec<i64> = match stored.ty {
            TensorType::Plain(Dtype::I64) => {
                bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
            }
            TensorType::Plain(Dtype::I32) => {
                bytes.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes).into()).collect()
            }
            _ => return Err(self.unsupported_type(name, stored, "I64, I32")),
        };
        let expected = shape.map(|len| len as i64);
        match written.iter().zip(expected).find(|(got, expected)| *got != expected) {
            None if written.len() == expected.len() => Ok(()),
            None => Err(self.wrong_shape(name, stored, vec![expected.len()])),
            Some((&got, _)) => Err(Error::TensorValue {
                file: self.file_of(stored),
                tensor: name.into(),
                value: got as f32,
                expected: format!("{shape:?}, which the codes have"),
            }),
        }
    }

    /// Checks that the inputs of a group, where a tensor says which they are, follow each other.
    fn check_order(&self, name: &str, key: &str, inputs: usize, group: usize) -> Result<()> {
        let Some(stored) = self.tensors.get(name) else { return Ok(()) };
        if stored.ty != TensorType::Plain(Dtype::I32) {
            return Err(self.unsupported_type(name, stored, "I32"));
        }
        self.check_shape(name, stored, &[inputs])?;
        let bytes = bytes_of(&self.files, &(stored.file, stored.range.clone()));
        let (words, _) = bytes.as_chunks::<4>();
        if words.iter().enumerate().any(|(input, word)| u32::from_le_bytes(*word) as usize != input / group) {
            return Err(unsupported(key, format!("an order in {name}"), "inputs in their order"));
        }
        Ok(())
    }

    /// Checks the numbers of a tensor.
    fn check_values(
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
