//! Prompts as ids, with real chat templates and real tokenizers: the ids equal the reference, and only the
//! template can spell added tokens.

mod injection;
mod reference;
mod support;
