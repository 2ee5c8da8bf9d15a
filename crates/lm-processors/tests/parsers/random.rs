//! Reproducible random numbers.

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// Seeds from `LM_SEED`, else from a fixed seed; prints the seed.
    pub fn seeded(what: &str) -> Self {
        let given = std::env::var("LM_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or(20_251_121);
        println!("{what}: seed {seed} (LM_SEED)");
        Self(seed)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) % end as u64) as usize
    }
}
