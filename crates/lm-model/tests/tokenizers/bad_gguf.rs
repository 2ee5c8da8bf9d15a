//! Vocabularies of GGUF files that cannot be: typed errors that name the key.
