//! Turns of a conversation: with scripted replies, and with the embedded model.

mod calls;
mod constraints;
mod failures;
mod fixture;
mod hostile;
mod owned;
mod pocket;
mod prompts;
mod text;
