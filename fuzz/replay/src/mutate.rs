//! Mutations of seeds: bytes changed, removed, repeated, inserted, and parts of other seeds.

/// Bytes with a meaning in formats of text and numbers, and the ends of ranges.
const INTERESTING: &[u8] = b"\0\x01\x7f\x80\xff\"\\{}[]<>|%:,.-+0129eE\n \t";
/// Changes of one input.
const MOST_CHANGES: usize = 4;
/// Longest part that is removed, repeated or copied.
const LONGEST_PART: usize = 32;

/// Endless mutations of the seeds, the same for the same seeds.
pub fn mutations(seeds: &[Vec<u8>]) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Random(1);
    std::iter::from_fn(move || {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(MOST_CHANGES) {
            change(&mut input, &seeds[random.below(seeds.len())], &mut random);
        }
        Some(input)
    })
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let part = at..(at + random.below(LONGEST_PART)).min(input.len());
    match random.below(7) {
        0 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.byte()),
        2 => drop(input.drain(part)),
        3 => {
            let repeated = input[part.clone()].repeat(1 + random.below(8));
            input.splice(part, repeated).for_each(drop);
        }
        4 => input.insert(at, random.byte()),
        5 => {
            let from = random.below(other.len() + 1);
            let copied = &other[from..(from + random.below(LONGEST_PART)).min(other.len())];
            input.splice(at..at, copied.iter().copied()).for_each(drop);
        }
        _ => input.truncate(at),
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// An interesting byte, or any.
    fn byte(&mut self) -> u8 {
        match self.below(2) {
            0 => INTERESTING[self.below(INTERESTING.len())],
            _ => self.next() as u8,
        }
    }
}
