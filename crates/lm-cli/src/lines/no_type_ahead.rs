//! Keys between prompts: systems without POSIX terminals keep them by themselves.

/// Does nothing.
pub fn restore_terminal() {}

/// Reader that reads nothing.
#[derive(Default)]
pub struct TypeAhead;

impl TypeAhead {
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
