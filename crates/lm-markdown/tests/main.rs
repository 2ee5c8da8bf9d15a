//! Replies of language models in both outputs, whole and in pieces, and hostile ones.
#![allow(missing_docs, reason = "tests")]

mod hostile;
mod incremental;
mod rendered;
mod replies;
