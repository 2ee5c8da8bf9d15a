//! GGUF models: metadata as the files of a Hugging Face folder, tensors under the names of the model; and their writing.

mod architectures;
mod config;
mod description;
mod model;
mod names;
mod rope;
mod texts;
mod unused;
mod write;

pub(crate) use self::model::GgufModel;
pub(crate) use self::write::{NewFile, NewHead, Texts};
