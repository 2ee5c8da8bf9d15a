//! Keys between prompts: systems without POSIX terminals keep them by themselves.

/// Does nothing.
pub fn restore_terminal() {}

/// Called for the key Esc.
pub type OnEscape = std::sync::Arc<dyn Fn() + Send + Sync>;

/// Reader that reads nothing.
pub struct TypeAhead;

impl TypeAhead {
    /// Creates the reader.
    pub fn new(_: OnEscape) -> Self {
        Self
    }

    /// Does nothing.
    pub fn start(&mut self) {}

    /// Does nothing.
    pub fn stop(&mut self) {}

    /// Returns no text.
    pub fn take(&mut self) -> String {
        String::new()
    }

    /// Returns no line.
    pub fn take_line(&mut self) -> Option<String> {
        None
    }
}
