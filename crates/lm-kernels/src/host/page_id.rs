//! Ids of KV cache pages.

/// Slots (tokens) per page.
pub const PAGE_LEN: usize = 32;

/// Index of a page in its pool.
pub type PageId = u32;

/// Block-table entry of a freed page, none of whose slots is visible any more.
pub const NO_PAGE: PageId = PageId::MAX;
