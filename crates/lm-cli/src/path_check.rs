//! Paths that are not models, recognised with advice before anything is loaded.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// First bytes of a file that holds a reference to a file in Git LFS.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// Bytes that are looked at.
const HEAD_BYTES: u64 = 64;
/// Maximum number of entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Checks that a path can be a model: a GGUF file, or a folder with weights in a known format.
///
/// # Errors
/// Names what the path is instead, and what to do.
pub fn check(path: &Path) -> Result<()> {
    if path.is_dir() { check_folder(path) } else { check_file(path) }
}

fn check_file(path: &Path) -> Result<()> {
    let shown = path.display();
    let head = head(path).with_context(|| format!("`{shown}` cannot be read"))?;
    if head.starts_with(b"GGUF") {
        return Ok(());
    }
    let is = |what: &str| format!("`{shown}` is neither a model folder nor a GGUF file: {what}");
    if head.is_empty() {
        bail!("{}", is("it is empty"));
    }
    if head.starts_with(LFS_POINTER) {
        bail!("{}", is("it is a Git LFS pointer; `git lfs pull` in its repository fetches the file"));
    }
    if is_pickle(&head) {
        bail!("{}", is("it is a PyTorch file; save the model as safetensors, and give the folder"));
    }
    if head.len() > 8 && head[8] == b'{' {
        bail!(
            "{}",
            is("it is a safetensors file; give the folder, which has config.json and tokenizer.json too")
        );
    }
    if head[0] == b'{' {
        bail!("{}", is(&format!("it is JSON; requests are read from standard input, `lm batch < {shown}`")));
    }
    let first = &head[..head.len().min(8)];
    bail!("{}", is(&format!("its first bytes are \"{}\"", first.escape_ascii())));
}

/// Checks the weights of a folder with `config.json`.
fn check_folder(folder: &Path) -> Result<()> {
    let (mut has_weights, mut pickle) = (false, None);
    for entry in folder.read_dir().with_context(|| folder.display().to_string())?.take(MAX_ENTRIES).flatten()
    {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let is_weights = name.ends_with(".safetensors") || name.ends_with(".gguf");
        let is_text = name == "config.json" || name == "tokenizer.json";
        if (is_weights || is_text) && head(&path).is_ok_and(|head| head.starts_with(LFS_POINTER)) {
            bail!(
                "`{}` is a Git LFS pointer: `git lfs pull` in `{}` fetches the files",
                path.display(),
                folder.display()
            );
        }
        has_weights |= is_weights;
        if [".bin", ".pt", ".pth"].iter().any(|ending| name.ends_with(ending))
            && head(&path).is_ok_and(|head| is_pickle(&head))
        {
            pickle = Some(path);
        }
    }
    if let (false, Some(pickle)) = (has_weights, pickle) {
        bail!(
            "`{}` has PyTorch files such as `{}` only; save the model as safetensors \
             (`save_pretrained(.., safe_serialization=True)`)",
            folder.display(),
            pickle.file_name().unwrap_or_default().to_string_lossy()
        );
    }
    Ok(())
}

/// Returns true for a pickle, or for the ZIP archive around one.
fn is_pickle(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || matches!(head, [0x80, 2..=5, ..])
}

/// Reads the first bytes of a regular file: opening a pipe would wait for its writer.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_model_files_are_distinguished() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("m.gguf");
        for (bytes, expected) in [
            (&b""[..], "it is empty"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
            (b"PK\x03\x04rest", "PyTorch"),
            (b"\x80\x02ctorch", "PyTorch"),
            (b"\x10\0\0\0\0\0\0\0{\"a\":", "safetensors"),
            (b"{\"messages\": []}", "it is JSON; requests are read from standard input, `lm batch < "),
            (b"12345678", "its first bytes are \"12345678\""),
            (b"\x7fELF\x02\x01\x01\0more", "\"\\x7fELF\\x02\\x01\\x01\\x00\""),
        ] {
            std::fs::write(&path, bytes).expect("can be written");
            let error = check(&path).expect_err("is refused").to_string();
            assert!(
                error.contains("neither a model folder nor a GGUF file") && error.contains(expected),
                "{error}"
            );
        }
        std::fs::write(&path, b"GGUF....").expect("can be written");
        assert!(check(&path).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn device_is_not_opened() {
        let error = format!("{:#}", check(Path::new("/dev/zero")).expect_err("is refused"));
        assert_eq!(error, "`/dev/zero` cannot be read: it is not a regular file");
    }

    #[test]
    fn folders_are_classified_by_file_names_and_contents() {
        for (files, expected) in [
            (&[("PYTORCH_MODEL.BIN", &b"PK\x03\x04"[..])][..], Some("PYTORCH_MODEL.BIN")),
            (&[("consolidated.00.pth", b"PK\x03\x04")], Some("consolidated.00.pth")),
            (&[("model.pt", b"\x80\x02c")], Some("model.pt")),
            (&[("imatrix.bin", b"\x01\0\0\0")], None),
            (&[("pytorch_model.bin", b"PK\x03\x04"), ("model.gguf", b"GGUF")], None),
            (&[("config.json", LFS_POINTER)], Some("git lfs pull")),
            (&[("tokenizer.json", LFS_POINTER)], Some("git lfs pull")),
        ] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            for (name, bytes) in files {
                std::fs::write(folder.path().join(name), bytes).expect("can be written");
            }
            let error = check(folder.path()).err().map(|error| error.to_string());
            match expected {
                Some(part) => {
                    assert!(error.as_deref().unwrap_or_default().contains(part), "{files:?}: {error:?}")
                }
                None => assert_eq!(error, None, "{files:?}"),
            }
        }
    }

    #[test]
    fn folders_with_unusable_weights_are_distinguished() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).expect("can be written")
        };
        let refusal = || check(folder.path()).expect_err("is refused").to_string();
        write("config.json", b"{}");
        assert!(check(folder.path()).is_ok(), "missing files are reported by their readers");
        write("pytorch_model.bin", b"PK\x03\x04");
        assert!(refusal().contains("pytorch_model.bin"));
        write("model.safetensors", LFS_POINTER);
        assert!(refusal().contains("git lfs pull"));
        write("model.safetensors", b"\x10\0\0\0\0\0\0\0{}");
        assert!(check(folder.path()).is_ok(), "the PyTorch file is not read");
    }
}
