//! The block types of ggml, re-packed without loss: one frame that all of them fit as data.
//!
//! A weight is `step · quant`, for some types plus an offset. A quant is an unsigned *code* less the type's zero, or what a table
//! of 16 entries has for it; steps and offsets belong to groups of 16 or 32 columns and are floats, or integers times a float for
//! 256 columns ([`Scales`]).
//!
//! A tile of 16 rows is a row of *records*, one for each 256 columns: the scales of the 16 rows, then for each 32 columns as many
//! lines of codes as a code has bits ([`planes`]). It is one stream of memory, with a byte for each byte of the file; only Q3_K, Q6_K
//! and IQ4_XS have some more, 32 to 64 bytes in a record of 16 blocks, which fill up lines, and the types with a [`codebook`] as
//! much as their codes take.

mod codebook;
mod grids;
mod planes;
mod quantize;
mod scales;
mod tile;

use std::fmt;
use std::str::FromStr;

use super::integer::GROUP;
use crate::{Error, Result};

pub(in crate::host) use planes::{EXPANDED_LINES, code};
use quantize::QuantizeBlock;
pub(in crate::host) use scales::Scales;
use scales::{ByteFactors, Exponents, FactorsAndMins, Halves, HalvesAndOffsets, NibblePairs, ShortFactors};
pub(super) use tile::PackBlocks;
pub(in crate::host) use tile::RecordTile;
#[cfg(feature = "burn")]
pub(super) use {q4_0::Q4_0, q8_0::Q8_0};

/// Columns of a record.
pub(in crate::host) const RECORD: usize = 256;

/// A block type as data.
pub(in crate::host) trait BlockFormat: Sized + 'static {
    /// Columns of a block in a file: 32 or 256.
    const BLOCK: usize;
    /// Bytes of a block in a file.
    const BYTES: usize;
    /// Bits of a code: 8 or less than 8.
    const BITS: usize;
    /// What a code has too much; 128 where codes, or the table's entries, use all of a byte, otherwise they are below 128.
    const ZERO: u8;
    /// What a code stands for, plus the zero, where it is not the code itself.
    const TABLE: Option<[u8; 16]> = None;
    /// Makes a block of floats, where that is more than reading.
    const QUANTIZE: Option<QuantizeBlock> = None;
    /// The scales of a record.
    type Scales: Scales;

    /// Takes a file's block of a row apart: the codes of its columns, and its scales as those of the row `lane` from the group of 32
    /// columns `group` on.
    ///
    /// # Errors
    /// A scale that is not finite.
    fn read(
        block: &[u8],
        lane: usize,
        group: usize,
        scales: &mut Self::Scales,
        codes: &mut [u8],
    ) -> std::result::Result<(), f32>;
}

/// Work that is compiled for each block type.
pub(in crate::host) trait ForBlocks {
    /// What it yields.
    type Output;
    /// Does it.
    fn run<F: BlockFormat>(self) -> Self::Output;
}

macro_rules! join_names {
    ($first:literal $($name:literal)*) => { concat!($first $(, ", ", $name)*) };
}

macro_rules! block_types {
    ($($(#[$doc:meta])* $variant:ident $name:literal in $module:ident,)+) => {
        $(mod $module;)+

        /// A block type of ggml: how GGUF files hold quantised weights.
        ///
        /// # Source
        /// The GGUF specification and the package `gguf` (`gguf.quants`), to whose floats each type is equal bit for bit.
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
            /// All of them.
            pub const ALL: &[GgmlType] = &[$(GgmlType::$variant,)+];

            /// Runs `work` for the type.
            #[inline(always)]
            pub(in crate::host) fn run<W: ForBlocks>(self, work: W) -> W::Output {
                match self {
                    $(GgmlType::$variant => work.run::<$module::$variant>(),)+
                }
            }
        }

        impl fmt::Display for GgmlType {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(GgmlType::$variant => $name,)+
                })
            }
        }

        impl FromStr for GgmlType {
            type Err = Error;

            fn from_str(name: &str) -> Result<Self> {
                match name {
                    $($name => Ok(GgmlType::$variant),)+
                    _ => Err(Error::UnknownName {
                        what: "block type",
                        name: name.to_owned(),
                        known: join_names!($($name)+),
                    }),
                }
            }
        }
    };
}

block_types! {
    /// 8-bit integers, a half for each 32 columns: 8.5 bits a weight.
    Q8_0 "q8_0" in q8_0,
    /// 4-bit integers, a half for each 32 columns: 4.5 bits.
    Q4_0 "q4_0" in q4_0,
    /// 4 bits without sign, a step and an offset for each 32 columns: 5 bits.
    Q4_1 "q4_1" in q4_1,
    /// 5-bit integers, a half for each 32 columns: 5.5 bits.
    Q5_0 "q5_0" in q5_0,
    /// 5 bits without sign, a step and an offset for each 32 columns: 6 bits.
    Q5_1 "q5_1" in q5_1,
    /// 2 bits without sign, 4-bit step and offset for each 16 columns, two halves for 256: 2.63 bits.
    Q2K "q2_k" in q2_k,
    /// 3-bit integers, a 6-bit step for each 16 columns, a half for 256: 3.44 bits (3.5 in memory).
    Q3K "q3_k" in q3_k,
    /// 4 bits without sign, 6-bit step and offset for each 32 columns, two halves for 256: 4.5 bits.
    Q4K "q4_k" in q4_k,
    /// 5 bits without sign, 6-bit step and offset for each 32 columns, two halves for 256: 5.5 bits.
    Q5K "q5_k" in q5_k,
    /// 6-bit integers, an 8-bit step for each 16 columns, a half for 256: 6.56 bits (6.63 in memory).
    Q6K "q6_k" in q6_k,
    /// A table of 16 integers, denser at zero, a half for each 32 columns: 4.5 bits.
    Iq4Nl "iq4_nl" in iq4_nl,
    /// The table of IQ4_NL, a 6-bit step for each 32 columns, a half for 256: 4.25 bits (4.38 in memory).
    Iq4Xs "iq4_xs" in iq4_xs,
    /// A codebook of fours and signs, a 4-bit step for each 32 columns, a half for 256: 3.44 bits (4.38 in memory).
    Iq3S "iq3_s" in iq3_s,
    /// The same with fewer fours, and an even number of signs in eight columns: 3.06 bits (4.38 in memory).
    Iq3Xxs "iq3_xxs" in iq3_xxs,
    /// A codebook of eights and signs, a 4-bit step for each 16 columns, a half for 256: 2.56 bits (3.63 in memory).
    Iq2S "iq2_s" in iq2_s,
    /// The same with fewer eights, and an even number of signs in eight columns: 2.31 bits (3.63 in memory).
    Iq2Xs "iq2_xs" in iq2_xs,
    /// The same with still fewer eights, a 4-bit step for each 32 columns: 2.06 bits (3.38 in memory).
    Iq2Xxs "iq2_xxs" in iq2_xxs,
    /// A codebook of eights of -1, 0 and 1, an offset, a 3-bit step for each 16 columns, a half for 256: 1.75 bits (3.63 in memory).
    Iq1M "iq1_m" in iq1_m,
    /// The same with a 3-bit step for each 32 columns: 1.56 bits (3.38 in memory).
    Iq1S "iq1_s" in iq1_s,
    /// The numbers of 4 bits of the microscaling formats, a power of two for each 32 columns: 4.25 bits.
    Mxfp4 "mxfp4" in mxfp4,
}

impl GgmlType {
    /// Columns of a block in a file; a row has whole blocks.
    pub fn block_len(self) -> usize {
        self.run(Block).0
    }

    /// Bytes of a block in a file.
    pub fn block_bytes(self) -> usize {
        self.run(Block).1
    }

    /// Bytes of a row in a file; `None` where `cols` is no whole number of blocks, or the row too large.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        let (len, bytes) = self.run(Block);
        if cols.is_multiple_of(len) { (cols / len).checked_mul(bytes) } else { None }
    }

    /// Bytes of a packed tile.
    pub(super) fn tile_bytes(self, cols: usize) -> Option<usize> {
        self.run(tile::TileBytes(cols))
    }

    /// Columns of a row of activations that share a scale when they are multiplied with the type.
    pub(in crate::host) fn activation_block(self) -> usize {
        // Where the weights' own scales are floats for each 32 columns, shorter blocks cost nothing.
        if self.block_len() == RECORD { RECORD } else { 2 * GROUP }
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

/// Codes from bytes that hold two: the first half of the columns in their low halves, the second in the high ones.
fn split_nibbles(bytes: &[u8], codes: &mut [u8]) {
    let (low, high) = codes.split_at_mut(codes.len() / 2);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
        *low = byte & 15;
        *high = byte >> 4;
    }
}

/// Codes from bytes that hold four: byte `i` of each 32 has those of columns `i`, `32 + i`, `64 + i` and `96 + i`.
fn split_pairs(bytes: &[u8], codes: &mut [u8]) {
    for (bytes, codes) in bytes.chunks(GROUP).zip(codes.chunks_mut(4 * GROUP)) {
        for (part, codes) in codes.chunks_mut(GROUP).enumerate() {
            for (code, byte) in codes.iter_mut().zip(bytes) {
                *code = byte >> (2 * part) & 3;
            }
        }
    }
}

/// The fifth bits of 32 codes, a bit each.
fn add_fifth_bits(bits: &[u8], codes: &mut [u8]) {
    for (column, code) in codes.iter_mut().enumerate() {
        *code |= (bits[column / 8] >> (column % 8) & 1) << 4;
    }
}
