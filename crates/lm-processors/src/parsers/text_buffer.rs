//! FIFO buffer of text.

/// The undecided part of a reply.
#[derive(Debug, Default)]
pub(crate) struct TextBuffer {
    text: String,
    taken: usize,
}

impl TextBuffer {
    pub(crate) fn push(&mut self, text: &str) {
        // Moving the rest only if it is the smaller half keeps the work linear.
        if self.taken * 2 >= self.text.len() {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
        self.text.push_str(text);
    }

    pub(crate) fn rest(&self) -> &str {
        &self.text[self.taken..]
    }

    pub(crate) fn take(&mut self, len: usize) -> &str {
        self.taken += len;
        &self.text[self.taken - len..self.taken]
    }
}
