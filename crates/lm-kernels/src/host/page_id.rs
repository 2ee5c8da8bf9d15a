//! Ids of KV cache pages.

/// Slots (tokens) per page.
pub const PAGE_LEN: usize = 32;

/// Index of a page in its pool.
pub type PageId = u32;

/// Block-table entry of a freed page, whose slots are no longer visible.
pub const NO_PAGE: PageId = PageId::MAX;
