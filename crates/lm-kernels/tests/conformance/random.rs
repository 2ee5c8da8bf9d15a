//! Random numbers from a seed, the same on every machine.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From `low..high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low) as u64) as usize
    }

    /// Uniform in `-size..size`.
    pub fn value(&mut self, size: f32) -> f32 {
        let unit = (self.next() >> 40) as f32 / (1 << 24) as f32;
        (2.0 * unit - 1.0) * size
    }

    pub fn values(&mut self, count: usize, size: f32) -> Vec<f32> {
        (0..count).map(|_| self.value(size)).collect()
    }

    pub fn shuffled(&mut self, count: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count as u32).collect();
        for last in (1..count).rev() {
            order.swap(last, self.between(0, last + 1));
        }
        order
    }
}
