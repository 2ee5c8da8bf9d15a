//! Filters and tests by name: the parser refuses unknown names, and `map` and `select` take names.

/// Index of a filter in the table of filters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterId(pub(crate) usize);

/// Index of a test in the table of tests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestId(pub(crate) usize);

/// Lookups in the tables of filters and tests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Builtins {
    pub(crate) find_filter: fn(&str) -> Option<FilterId>,
    pub(crate) find_test: fn(&str) -> Option<TestId>,
}

impl Builtins {
    /// Looks up a filter by name; the error is its message.
    pub(crate) fn filter(&self, name: &str) -> Result<FilterId, String> {
        (self.find_filter)(name).ok_or_else(|| format!("No filter named '{name}'."))
    }

    /// Looks up a test by name; the error is its message.
    pub(crate) fn test(&self, name: &str) -> Result<TestId, String> {
        (self.find_test)(name).ok_or_else(|| format!("No test named '{name}'."))
    }
}
