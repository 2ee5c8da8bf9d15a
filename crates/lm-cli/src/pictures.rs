//! Pictures of messages: files that the user names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lm_media::{DecodeLimits, picture_size};
use lm_template::{Content, Media, Message, Part};

/// Ends of the names of files that are pictures.
const EXTENSIONS: [&str; 6] = ["png", "jpg", "jpeg", "webp", "gif", "bmp"];

/// Reads the file of a picture, and checks its header.
///
/// # Errors
/// When it cannot be read, is too large or no picture; the error names the file.
pub fn read(path: &Path) -> Result<Part> {
    checked(path).with_context(|| path.display().to_string())
}

fn checked(path: &Path) -> Result<Part> {
    let limits = DecodeLimits::default();
    let mut bytes = Vec::new();
    File::open(path)?.take(limits.max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() <= limits.max_bytes, "it has more than {} bytes", limits.max_bytes);
    picture_size(&bytes, &limits)?;
    Ok(Part::Image(Media::from_bytes(bytes)))
}

/// Reads several files.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Part>> {
    paths.iter().map(|path| read(path)).collect()
}

/// The picture that a line names and nothing else: terminals type the path of a file that is dropped on them.
pub fn dropped(line: &str) -> Option<PathBuf> {
    let words = shlex::split(line.strip_prefix("file://").unwrap_or(line))?;
    let [path] = &words[..] else { return None };
    let path = PathBuf::from(path);
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    (EXTENSIONS.contains(&extension.as_str()) && path.is_file()).then_some(path)
}

/// A message of the user: pictures before the text.
pub fn message(mut pictures: Vec<Part>, text: &str) -> Message {
    if pictures.is_empty() {
        return Message::user(text);
    }
    pictures.push(Part::Text(text.to_owned()));
    Message::user(Content::Parts(pictures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_the_path_of_a_picture_names_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a cat.PNG");
        std::fs::write(&path, "x").expect("can be written");
        let shown = path.display().to_string();
        for line in
            [format!("'{shown}'"), shown.replace(' ', "\\ "), format!("file://{}", shown.replace(' ', "\\ "))]
        {
            assert_eq!(dropped(&line), Some(path.clone()), "{line}");
        }
        for line in
            [shown.as_str(), &format!("'{shown}' what is it?"), "'/nowhere/cat.png'", "cat.png", "", "'"]
        {
            assert_eq!(dropped(line), None, "{line}");
        }
    }

    #[test]
    fn a_file_that_is_no_picture_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "Hello").expect("can be written");
        let error = format!("{:#}", read(file.path()).expect_err("is no picture"));
        assert!(
            error.starts_with(&file.path().display().to_string()) && error.contains("no picture"),
            "{error}"
        );
    }
}
