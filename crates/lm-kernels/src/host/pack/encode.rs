//! Conversion of floats to little-endian bytes of a file.

use half::{bf16, f16};

use super::{FloatDtype, Source, WeightFormat};
use crate::error::{Error, Result};

impl FloatDtype {
    /// Encodes rows of floats as little-endian elements of this type, rounded to nearest.
    ///
    /// # Errors
    /// [`Error::NotRepresentable`] for the first finite value that would become infinite.
    ///
    /// # Panics
    /// When `cols` is 0 and there are elements.
    ///
    /// # Examples
    /// ```
    /// use lm_kernels::{FloatDtype, Source};
    /// assert_eq!(FloatDtype::F16.encode(1, Source::F32(&[1.0]))?, [0x00, 0x3c]);
    /// # Ok::<(), lm_kernels::Error>(())
    /// ```
    pub fn encode(self, cols: usize, source: Source<'_>) -> Result<Vec<u8>> {
        match source {
            Source::LeBytes { dtype, bytes } if dtype == self => Ok(bytes.to_vec()),
            _ => self.convert(cols, source),
        }
    }

    fn convert(self, cols: usize, source: Source<'_>) -> Result<Vec<u8>> {
        const PIECE: usize = 1024;
        let mut values = [0.0_f32; PIECE];
        let mut bytes = Vec::with_capacity(source.len() * self.bytes());
        for first in (0..source.len()).step_by(PIECE) {
            let values = &mut values[..PIECE.min(source.len() - first)];
            source.read(first, values);
            match self {
                FloatDtype::F32 => bytes.extend(values.iter().flat_map(|x| x.to_le_bytes())),
                FloatDtype::F16 => bytes.extend(values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes())),
                FloatDtype::Bf16 => {
                    bytes.extend(values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()));
                }
            }
            if let Some(index) = values.iter().position(|&value| self.overflows(value)) {
                let (at, value, format) = (first + index, values[index], self.format());
                return Err(Error::NotRepresentable {
                    row: at / cols,
                    col: at % cols,
                    value,
                    format: format.name(),
                });
            }
        }
        Ok(bytes)
    }

    /// Returns true if a finite value becomes infinite.
    fn overflows(self, value: f32) -> bool {
        value.is_finite()
            && match self {
                FloatDtype::F32 => false,
                FloatDtype::F16 => f16::from_f32(value).is_infinite(),
                FloatDtype::Bf16 => bf16::from_f32(value).is_infinite(),
            }
    }

    fn format(self) -> WeightFormat {
        match self {
            FloatDtype::F32 => WeightFormat::F32,
            FloatDtype::F16 => WeightFormat::F16,
            FloatDtype::Bf16 => WeightFormat::Bf16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_to_infinity_is_reported() {
        let mut values = vec![0.5; 3000];
        (values[1500], values[2000]) = (f32::INFINITY, -65_520.0);
        let error = FloatDtype::F16.encode(1000, Source::F32(&values)).unwrap_err();
        assert!(matches!(error, Error::NotRepresentable { row: 2, col: 0, value: -65_520.0, .. }), "{error}");
        assert_eq!(FloatDtype::Bf16.encode(1000, Source::F32(&values)).unwrap().len(), 6000);
        let bytes = FloatDtype::F32.encode(1000, Source::F32(&values)).unwrap();
        let file = Source::from_le_bytes(FloatDtype::F32, &bytes).unwrap();
        assert_eq!(FloatDtype::F32.encode(1000, file).unwrap(), bytes);
    }
}
