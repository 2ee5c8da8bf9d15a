//! Turns of a conversation: with scripted replies, and with the embedded model.

mod calls;
mod constraints;
mod continued;
mod detached;
mod failures;
mod fixture;
mod hostile;
mod model_calls;
mod overflow;
mod owned;
mod pocket;
mod prompts;
mod scores;
mod settings;
mod text;
mod window;
