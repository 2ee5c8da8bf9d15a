//! Argument that names a model.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A model given by position or by `--model`.
#[derive(Debug, clap::Args)]
pub struct ModelPath {
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model]
    #[arg(value_name = "MODEL")]
    path: Option<PathBuf>,
    /// The same, by name
    #[arg(long = "model", short = 'm', value_name = "MODEL", conflicts_with = "path")]
    named: Option<PathBuf>,
}

impl ModelPath {
    pub fn get(&self) -> Option<&Path> {
        self.path.as_deref().or(self.named.as_deref())
    }
}

/// Returns true if a text in the position of a prompt is the path of a model: a folder with `config.json` or GGUF files, or a
/// GGUF file.
pub fn takes_model(text: &str) -> bool {
    let path = Path::new(text);
    if path.is_dir() {
        let is_gguf =
            |path: PathBuf| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
        let mut entries = path.read_dir().into_iter().flatten().flatten();
        return path.join("config.json").exists() || entries.any(|entry| is_gguf(entry.path()));
    }
    let mut magic = [0; 4];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == *b"GGUF"
}
