//! ggml's block-quantised types (GGUF), re-packed without loss: a generic layout with a data description of
//! each type.
//!
//! A weight is `step · quant`, in some types plus an offset. A quant is an unsigned *code* minus the type's
//! zero point, or the entry of a 16-entry table for the code; steps and offsets belong to groups of 16 or 32
//! columns and are floats, or integers times a super-block float for 256 columns ([`Scales`]).
//!
//! A tile of 16 rows is a sequence of *records*, one per 256 columns: the scales of the 16 rows, then for
//! each 32 columns as many lines of codes as a code has bits ([`planes`]). A tile is read sequentially, and
//! has the size of the blocks in the file; only Q3_K, Q6_K and IQ4_XS need more, 32 to 64 padding bytes in a
//! record of 16 blocks, and the types with a [`codebook`], whose codes are larger than their grid indices.

mod codebook;
mod grids;
mod planes;
mod quantize;
mod scales;
mod tile;

use std::fmt;
use std::str::FromStr;

use super::integer::GROUP;
use crate::error::{Error, Result, find_named};

pub(in crate::host) use planes::{EXPANDED_LINES, code};
use quantize::QuantizeBlock;
pub(in crate::host) use scales::Scales;
use scales::{
    E8M0Scales, F16Scales, F16ScalesAndOffsets, FourBitScalesAndMins, Int8Scales, RowScales, SixBitScales,
    SixBitScalesAndMins,
};
pub(super) use tile::PackBlocks;
pub(in crate::host) use tile::{Record, RecordTile};

/// Columns of a record.
pub(in crate::host) const RECORD: usize = 256;

/// Description of a block type.
pub(in crate::host) trait BlockFormat: Sized + 'static {
    /// Columns per block in a file: 32 or 256.
    const BLOCK: usize;
    /// Bytes per block in a file.
    const BYTES: usize;
    /// Bits of a code: 8 or less.
    const BITS: usize;
    /// Zero point of the codes: 128 if codes or table entries use the full range of a byte, otherwise they
    /// are below 128.
    const ZERO: u8;
    /// Lookup table from codes to quants plus the zero point; `None` if the code is the quant plus the zero
    /// point.
    const TABLE: Option<[u8; 16]> = None;
    /// Quantises floats to a block; `None` for types that are only read.
    const QUANTIZE: Option<QuantizeBlock> = None;
    /// Scales of a record.
    type Scales: Scales;

    /// Unpacks a block of a row from a file: the codes of its columns, and its scales.
    ///
    /// # Errors
    /// A scale that is not finite.
    fn read(
        block: &[u8],
        codes: &mut [u8],
        scales: RowScales<'_, Self::Scales>,
    ) -> std::result::Result<(), f32>;
}

/// Work that is generic over the block type.
pub(in crate::host) trait ForBlocks {
    /// Result of the work.
    type Output;
    /// Runs the work for the type `F`.
    fn run<F: BlockFormat>(self) -> Self::Output;
}

macro_rules! block_types {
    ($($(#[$doc:meta])* $variant:ident $name:literal in $module:ident,)+) => {
        $(
            mod $module;

            /// Type parameter of code for this block type, described in its module.
            pub(in crate::host) struct $variant;
        )+

        /// A block-quantised type of ggml, as in GGUF files.
        ///
        /// # Source
        /// The GGUF specification and the package `gguf` (`gguf.quants`); each type dequantises to the same
        /// bits.
        ///
        /// # Examples
        /// ```
        /// use lm_kernels::GgmlType;
        /// let format: GgmlType = "q4_k".parse()?;
        /// assert_eq!((format.block_len(), format.row_bytes(512)), (256, Some(288)));
        /// # Ok::<(), lm_kernels::Error>(())
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum GgmlType {
            $($(#[$doc])* $variant,)+
        }

        impl GgmlType {
            /// All types.
            pub const ALL: &[GgmlType] = &[$(GgmlType::$variant,)+];

            /// Name, which [`FromStr`] reads.
            pub fn name(self) -> &'static str {
                match self {
                    $(GgmlType::$variant => $name,)+
                }
            }

            /// Runs `work` for this type.
            #[inline(always)]
            pub(in crate::host) fn run<W: ForBlocks>(self, work: W) -> W::Output {
                match self {
                    $(GgmlType::$variant => work.run::<$variant>(),)+
                }
            }
        }
    };
}

block_types! {
    /// 8-bit integers, f16 scale per 32 columns: 8.5 bits per weight.
    Q8_0 "q8_0" in q8_0,
    /// 4-bit integers, f16 scale per 32 columns: 4.5 bits.
    Q4_0 "q4_0" in q4_0,
    /// Unsigned 4-bit quants, f16 scale and offset (min) per 32 columns: 5 bits.
    Q4_1 "q4_1" in q4_1,
    /// 5-bit integers, f16 scale per 32 columns: 5.5 bits.
    Q5_0 "q5_0" in q5_0,
    /// Unsigned 5-bit quants, f16 scale and offset (min) per 32 columns: 6 bits.
    Q5_1 "q5_1" in q5_1,
    /// Unsigned 2-bit quants, 4-bit scale and min per 16 columns, two f16 super-block scales per 256: 2.63
    /// bits.
    Q2K "q2_k" in q2_k,
    /// 3-bit integers, 6-bit scale per 16 columns, f16 super-block scale per 256: 3.44 bits (3.5 in memory).
    Q3K "q3_k" in q3_k,
    /// Unsigned 4-bit quants, 6-bit scale and min per 32 columns, two f16 super-block scales per 256: 4.5
    /// bits.
    Q4K "q4_k" in q4_k,
    /// Unsigned 5-bit quants, 6-bit scale and min per 32 columns, two f16 super-block scales per 256: 5.5
    /// bits.
    Q5K "q5_k" in q5_k,
    /// 6-bit integers, 8-bit scale per 16 columns, f16 super-block scale per 256: 6.56 bits (6.63 in memory).
    Q6K "q6_k" in q6_k,
    /// A non-linear table of 16 integers, denser near zero, f16 scale per 32 columns: 4.5 bits.
    Iq4Nl "iq4_nl" in iq4_nl,
    /// The table of IQ4_NL, 6-bit scale per 32 columns, f16 super-block scale per 256: 4.25 bits (4.38 in
    /// memory).
    Iq4Xs "iq4_xs" in iq4_xs,
    /// Codebook (grid) entries of 4 magnitudes with signs, 4-bit scale per 32 columns, f16 super-block scale
    /// per 256: 3.44 bits (4.38 in memory).
    Iq3S "iq3_s" in iq3_s,
    /// As IQ3_S with a smaller codebook and an even number of signs per eight columns: 3.06 bits (4.38 in
    /// memory).
    Iq3Xxs "iq3_xxs" in iq3_xxs,
    /// Codebook (grid) entries of 8 magnitudes with signs, 4-bit scale per 16 columns, f16 super-block scale
    /// per 256: 2.56 bits (3.63 in memory).
    Iq2S "iq2_s" in iq2_s,
    /// As IQ2_S with a smaller codebook and an even number of signs per eight columns: 2.31 bits (3.63 in
    /// memory).
    Iq2Xs "iq2_xs" in iq2_xs,
    /// As IQ2_XS with a still smaller codebook, 4-bit scale per 32 columns: 2.06 bits (3.38 in memory).
    Iq2Xxs "iq2_xxs" in iq2_xxs,
    /// Codebook (grid) entries of 8 ternary values (-1, 0, 1), a delta, 3-bit scale per 16 columns, f16
    /// super-block scale per 256: 1.75 bits (3.63 in memory).
    Iq1M "iq1_m" in iq1_m,
    /// As IQ1_M with a 3-bit scale per 32 columns: 1.56 bits (3.38 in memory).
    Iq1S "iq1_s" in iq1_s,
    /// Microscaling FP4 (E2M1), power-of-two scale per 32 columns: 4.25 bits.
    Mxfp4 "mxfp4" in mxfp4,
}

impl GgmlType {
    /// Columns per block in a file; a row is a whole number of blocks.
    pub fn block_len(self) -> usize {
        self.run(Block).0
    }

    /// Bytes per block in a file.
    pub fn block_bytes(self) -> usize {
        self.run(Block).1
    }

    /// Bytes of a row in a file; `None` if `cols` is not a multiple of the block length, or on overflow.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        let (len, bytes) = self.run(Block);
        if cols.is_multiple_of(len) { (cols / len).checked_mul(bytes) } else { None }
    }

    /// Bytes of a packed tile; `None` on overflow.
    pub(super) fn tile_bytes(self, cols: usize) -> Option<usize> {
        self.run(tile::TileBytes(cols))
    }

    /// Activation columns per scale for products with this type.
    pub(in crate::host) fn activation_block(self) -> usize {
        if self.block_len() == RECORD { RECORD } else { GROUP }
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for GgmlType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        find_named("block type", name, GgmlType::ALL, GgmlType::name)
    }
}

/// Columns and bytes of a block.
struct Block;

impl ForBlocks for Block {
    type Output = (usize, usize);

    fn run<F: BlockFormat>(self) -> (usize, usize) {
        (F::BLOCK, F::BYTES)
    }
}

/// Unpacks bytes of two codes. Of each `columns` columns, the first half is in the low nibbles, the second in
/// the high ones.
fn split_nibbles(columns: usize, bytes: &[u8], codes: &mut [u8]) {
    for (bytes, codes) in bytes.chunks(columns / 2).zip(codes.chunks_mut(columns)) {
        let (low, high) = codes.split_at_mut(columns / 2);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
            *low = byte & 15;
            *high = byte >> 4;
        }
    }
}

/// Unpacks bytes of four codes: byte `i` of each 32 has those of columns `i`, `32 + i`, `64 + i` and
/// `96 + i`.
fn split_pairs(bytes: &[u8], codes: &mut [u8]) {
    for (bytes, codes) in bytes.chunks(GROUP).zip(codes.chunks_mut(4 * GROUP)) {
        for (part, codes) in codes.chunks_mut(GROUP).enumerate() {
            for (code, byte) in codes.iter_mut().zip(bytes) {
                *code = byte >> (2 * part) & 3;
            }
        }
    }
}

/// Adds the fifth bits of 32 codes, stored one bit each.
fn add_fifth_bits(bits: &[u8], codes: &mut [u8]) {
    for (column, code) in codes.iter_mut().enumerate() {
        *code |= (bits[column / 8] >> (column % 8) & 1) << 4;
    }
}

/// Adds bit `at` of 256 codes: bit `j` of byte `i` is that of column `32 j + i`.
fn add_bits(at: u32, bits: &[u8], codes: &mut [u8]) {
    for (group, codes) in codes.chunks_mut(GROUP).enumerate() {
        for (code, bits) in codes.iter_mut().zip(bits) {
            *code |= (bits >> group & 1) << at;
        }
    }
}
