//! Checksum at memory bandwidth: detects corruption, not tampering.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use lm_kernels::Pool;

/// Bytes per task.
const PIECE: usize = 1 << 20;
/// Pieces per batch, after which their memory may be released.
const BATCH: usize = 16;
/// Odd multiplier with well-mixed bits: 2^64 over the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Computes the checksum on the threads of the global pool. Calls `done` with ranges that are not read again.
pub(crate) fn checksum(bytes: &[u8], mut done: impl FnMut(Range<usize>)) -> u64 {
    let mut sum = bytes.len() as u64;
    for (index, batch) in bytes.chunks(BATCH * PIECE).enumerate() {
        let pieces: Vec<&[u8]> = batch.chunks(PIECE).collect();
        let sums: Vec<AtomicU64> = pieces.iter().map(|_| AtomicU64::new(0)).collect();
        Pool::global()
            .run(pieces.len(), |piece| sums[piece].store(piece_sum(pieces[piece]), Ordering::Relaxed));
        sum = sums.iter().fold(sum, |sum, piece| mix(sum, piece.load(Ordering::Relaxed)));
        let start = index * BATCH * PIECE;
        done(start..start + batch.len());
    }
    sum
}

/// Sums a piece in four independent chains, to hide the latency of multiplications.
fn piece_sum(piece: &[u8]) -> u64 {
    let (words, rest) = piece.as_chunks::<8>();
    let (lines, tail) = words.as_chunks::<4>();
    let mut chains = [piece.len() as u64, 1, 2, 3];
    for line in lines {
        for (chain, word) in chains.iter_mut().zip(line) {
            *chain = mix(*chain, u64::from_le_bytes(*word));
        }
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let tail = tail.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    chains.into_iter().chain(tail).fold(0, mix)
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_covers_bytes_and_length() {
        let bytes: Vec<u8> = (0..2 * PIECE + 77).map(|i| (i * 7 % 253) as u8).collect();
        let good = checksum(&bytes, |_| {});
        assert_eq!(checksum(&bytes, |_| {}), good);
        for place in [0, 7, 8, 31, 32, PIECE - 1, PIECE, 2 * PIECE, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[place] ^= 1;
            assert_ne!(checksum(&other, |_| {}), good, "byte {place}");
        }
        assert_ne!(checksum(&bytes[..bytes.len() - 1], |_| {}), good);
        assert_ne!(checksum(&[0; 8], |_| {}), checksum(&[0; 9], |_| {}));
        assert_ne!(checksum(&[], |_| {}), checksum(&[0], |_| {}));
    }

    #[test]
    fn progress_covers_all_ranges() {
        let bytes = vec![1; BATCH * PIECE + 5];
        let mut end = 0;
        checksum(&bytes, |range| {
            assert_eq!(range.start, end);
            end = range.end;
        });
        assert_eq!(end, bytes.len());
    }
}
