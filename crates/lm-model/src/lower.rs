//! Local stand-ins for the types of `lm-kernels` until its face lands.

/// Length of a page in tokens.
pub const PAGE_LEN: usize = 32;
/// Index of a page in a pool.
pub type PageId = u32;

/// Where a model runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Device {
    /// CPU.
    #[default]
    Cpu,
    /// CPU by NdArray.
    NdArray,
    /// GPU.
    Gpu,
}

/// Format of linear weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightFormat {
    /// f32.
    F32,
    /// f16.
    F16,
    /// bf16.
    Bf16,
    /// 8 bit.
    Q8,
    /// 4 bit.
    Q4,
}

/// Storage of keys and values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KvDtype {
    /// f16.
    #[default]
    F16,
    /// f32.
    F32,
}

/// Pages of keys and values.
#[derive(Debug)]
pub struct KvPool {
    num_pages: usize,
}

impl KvPool {
    /// A pool without layers.
    pub fn empty(num_pages: usize) -> Self {
        Self { num_pages }
    }
    /// Number of pages.
    pub fn num_pages(&self) -> usize {
        self.num_pages
    }
    /// Copies a page.
    pub fn copy_page(&mut self, _from: PageId, _to: PageId) {}
}
