//! Group-wise integers of AutoAWQ, GPTQ or compressed-tensors: several tensors that form one matrix.

use lm_kernels::GgmlType;
use safetensors::Dtype;

use super::gptq_awq_groups::{StoredGroups, bytes_of};
use super::{Checkpoint, StoredCoding, StoredTensor, TensorType};
use crate::config::{CodePacking, GroupFormat, unsupported};
use crate::error::{Error, Result};

/// Names of a matrix's tensors.
struct GroupTensors {
    codes: String,
    zeros: String,
    scales: String,
    /// Group index of each input.
    order: String,
    /// Shape of the matrix, which compressed-tensors stores beside the codes.
    shape: String,
    /// Name of the matrix in the model.
    weight: String,
}

impl GroupTensors {
    /// Returns the names for the codes of this name; `None` for other names.
    fn of(codes: &str, packing: CodePacking) -> Option<Self> {
        let names = packing.names();
        let module = codes.strip_suffix(names.codes)?.strip_suffix('.')?;
        let part = |end: &str| format!("{module}.{end}");
        Some(Self {
            codes: codes.to_owned(),
            zeros: part(names.zeros),
            scales: part(names.scales),
            order: part(names.order),
            shape: part("weight_shape"),
            weight: part("weight"),
        })
    }
}

impl Checkpoint {
    /// Combines codes with their scales, and zero points and input order if present, to the matrix
    /// `….weight`.
    pub(super) fn attach_groups(&mut self, name: &str, format: GroupFormat) -> Result<()> {
        let parts = GroupTensors::of(name, format.packing).filter(|_| self.has_codes(name, format));
        let Some(parts) = parts else { return Ok(()) };
        let groups = self.stored_groups(&parts, format)?;
        let ty = self.lossless_type(&parts, &groups)?;
        self.check_order(&parts.order, format.packing.names().order_key, &groups)?;
        self.check_written_shape(&parts.shape, [groups.outputs, groups.inputs])?;
        if let Some(other) = self.tensors.get(&parts.weight).filter(|_| parts.weight != parts.codes) {
            let (first, second) = (self.file_of(other), self.file_of(self.stored(name)?));
            return Err(Error::DuplicateTensor { tensor: parts.weight, first, second });
        }
        let codes = self.tensors.remove(name);
        for part in [&parts.zeros, &parts.scales, &parts.order, &parts.shape] {
            self.tensors.remove(part);
        }
        if let Some(codes) = codes {
            let (ty, shape) = (TensorType::Grouped(ty), vec![groups.outputs, groups.inputs]);
            let coding = StoredCoding::Groups(Box::new(groups));
            self.tensors.insert(parts.weight, StoredTensor { ty, shape, coding, ..codes });
        }
        Ok(())
    }

    /// Returns true if a tensor with the name of codes contains codes: codes in bytes have the name of float
    /// matrices.
    fn has_codes(&self, name: &str, format: GroupFormat) -> bool {
        let is_integer = |stored: &StoredTensor| stored.ty == TensorType::Plain(format.packing.dtype());
        format.packing != CodePacking::Bytes || self.tensors.get(name).is_some_and(is_integer)
    }

    /// Returns the places of a matrix's tensors, with types and shapes checked.
    fn stored_groups(&self, parts: &GroupTensors, format: GroupFormat) -> Result<StoredGroups> {
        let (codes, scales) = (self.stored(&parts.codes)?, self.stored(&parts.scales)?);
        let float = scales.ty.float();
        let scale_dtype =
            float.ok_or_else(|| self.unsupported_type(&parts.scales, scales, "F16, BF16, F32"))?;
        let matrix = format.matrix(&codes.shape);
        let shapes = matrix.and_then(|[inputs, outputs]| format.shapes(inputs, outputs));
        let (Some([inputs, outputs]), Some([_, zero_shape, scale_shape])) = (matrix, shapes) else {
            let known = format!("a form of {}, whose codes are {:?}", parts.codes, codes.shape);
            let group = format.group.map_or(-1, |group| group as i64);
            return Err(unsupported(format.packing.names().group_key, group, known).into());
        };
        self.check_integers(&parts.codes, format)?;
        self.check_shape(&parts.scales, scales, &scale_shape)?;
        let has_zeros = format.packing.needs_zeros() || self.tensors.contains_key(&parts.zeros);
        if has_zeros {
            self.check_integers(&parts.zeros, format)?;
            self.check_shape(&parts.zeros, self.stored(&parts.zeros)?, &zero_shape)?;
        }
        let place = |name: &str| self.stored(name).map(|stored| (stored.file, stored.range.clone()));
        let zeros = has_zeros.then(|| place(&parts.zeros)).transpose()?;
        Ok(StoredGroups { format, inputs, outputs, zeros, scales: place(&parts.scales)?, scale_dtype })
    }

    fn check_integers(&self, name: &str, format: GroupFormat) -> Result<()> {
        let (stored, dtype) = (self.stored(name)?, format.packing.dtype());
        if stored.ty == TensorType::Plain(dtype) {
            return Ok(());
        }
        Err(self.unsupported_type(name, stored, &dtype.to_string()))
    }

    /// Block type that represents a matrix losslessly.
    fn lossless_type(&self, parts: &GroupTensors, groups: &StoredGroups) -> Result<GgmlType> {
        let is_half = |value: f32| value.is_finite() && half::f16::from_f32(value).to_f32() == value;
        self.check_values(&parts.scales, groups.scale_dtype, "numbers that F16 has", is_half)?;
        let zeros = groups.zeros.as_ref().map(|place| bytes_of(&self.files, place));
        match groups.block_type(zeros) {
            Some(ty) => Ok(ty),
            None => {
                let stored = self.stored(&parts.zeros)?;
                Err(self.unsupported_type(&parts.zeros, stored, "8-bit codes around 128"))
            }
        }
    }

    /// Checks the shape that compressed-tensors stores beside the codes.
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

    /// Checks that the inputs of each group are contiguous, if a tensor gives their groups.
    fn check_order(&self, name: &str, key: &str, groups: &StoredGroups) -> Result<()> {
        let (inputs, group) = (groups.inputs, groups.format.group(groups.inputs));
        let Some(stored) = self.tensors.get(name) else { return Ok(()) };
        if stored.ty != TensorType::Plain(Dtype::I32) {
            return Err(self.unsupported_type(name, stored, "I32"));
        }
        self.check_shape(name, stored, &[inputs])?;
        let bytes = bytes_of(&self.files, &(stored.file, stored.range.clone()));
        let (words, _) = bytes.as_chunks::<4>();
        if words.iter().enumerate().any(|(input, word)| u32::from_le_bytes(*word) as usize != input / group) {
            return Err(unsupported(key, format!("an order in {name}"), "inputs in their order").into());
        }
        Ok(())
    }
}
