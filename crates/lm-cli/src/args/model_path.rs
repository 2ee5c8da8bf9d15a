//! Argument that names a model.

use std::path::{Path, PathBuf};

use lm_hub::ModelName;
use lm_model::GgufFile;

use crate::locate::{Located, locate};

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

/// Returns true if a text in the position of a prompt is the path of a model: a folder with `config.json` or
/// GGUF files, or a GGUF file.
pub fn takes_model(text: &str) -> bool {
    let path = Path::new(text);
    if path.is_dir() {
        let is_gguf =
            |path: PathBuf| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
        let mut entries = path.read_dir().into_iter().flatten().flatten();
        return path.join("config.json").exists() || entries.any(|entry| is_gguf(entry.path()));
    }
    GgufFile::has_magic(path)
}

/// Returns true if a text in the position of a prompt is the name of a model on this machine, or is spelled
/// like the path or the name of one: a single word such as `./model`, `model.gguf` or `OWNER/NAME`.
pub fn names_model(text: &str) -> bool {
    if text.contains(char::is_whitespace) {
        return false;
    }
    let is_path = ["./", "../", "/", "~/"].iter().any(|start| text.starts_with(start));
    let ending = Path::new(text).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_weights = ["gguf", "safetensors"].iter().any(|known| ending.eq_ignore_ascii_case(known));
    let has_owner = text.parse::<ModelName>().is_ok_and(|name| name.repo.owner().is_some());
    let is_stored = || matches!(locate(Path::new(text)), Ok(Located { name: Some(_), .. }));
    is_path || is_weights || has_owner || is_stored()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_like_word_is_not_a_prompt() {
        for text in [
            "./m",
            "../m",
            "/m/smol",
            "~/m",
            "m/smol",
            "Qwen/Qwen3-0.6B:Q4_K_M",
            "m.gguf",
            "M.GGUF",
            "model.safetensors",
        ] {
            assert!(names_model(text), "{text}");
        }
        for text in ["Hello", "Hello, a/b", "1.5", "a/b/c?", "https://example.org/a", "", "TCP/IP?"] {
            assert!(!names_model(text), "{text}");
        }
    }

    #[test]
    fn gguf_file_or_folder_is_a_model() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let takes = |name: &str| takes_model(folder.path().join(name).to_str().expect("is UTF-8"));
        assert!(!takes(""), "an empty folder");
        for (name, bytes) in [("M.GGUF", "GGUF"), ("blob", "GGUF...."), ("text.txt", "Hello")] {
            std::fs::write(folder.path().join(name), bytes).expect("can be written");
        }
        assert!(takes("") && takes("blob") && !takes("text.txt") && !takes("nothing"));
    }

    #[cfg(unix)]
    #[test]
    fn pipe_is_not_opened() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("starts").success());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(takes_model(pipe.to_str().expect("is UTF-8"))));
        assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(20)), Ok(false));
    }
}
