//! Prompts as ids, with real chat templates and real tokenizers: the ids of the reference, and added tokens that only the
//! template can spell.

mod injection;
mod reference;
mod support;
