// Methods and `impl` blocks that cannot be tools.
use lm_tools::{tool, tools};
use std::sync::Arc;

struct Notes(Vec<String>);

#[tools]
impl Notes {
    /// Adds a note.
    #[tool]
    fn add(&mut self, text: String) {}

    /// Closes the notes.
    #[tool]
    fn close(self) {}

    /// Shares the notes.
    #[tool]
    fn share(self: Arc<Self>) {}

    /// Lists the notes.
    #[tool(name = "search")]
    fn list(&self) {}

    /// Finds a note.
    #[tool(name = "search")]
    fn find(&self, text: String) {}
}

struct Store<T>(T);

#[tools]
impl<T> Store<T> {
    /// Reads.
    #[tool]
    fn read(&self) {}
}

#[tools]
impl Default for Notes {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct Empty;

#[tools]
impl Empty {
    fn read(&self) {}
}

struct Single;

impl Single {
    /// Reads.
    #[tool]
    fn read(&self) {}
}

fn calls(notes: &Arc<Notes>) {
    notes.list();
    notes.tools();
}
