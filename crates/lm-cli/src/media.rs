//! Pictures and sounds of messages: files that the user names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use lm_media::{DecodeLimits, SoundLimits, picture_size, sound_length};
use lm_session::MediaKind;
use lm_template::{Content, Media, Message, Part};

/// Ends of the names of files of a kind.
const fn extensions(kind: MediaKind) -> &'static [&'static str] {
    match kind {
        MediaKind::Picture => &["png", "jpg", "jpeg", "webp", "gif", "bmp"],
        MediaKind::Sound => &["wav", "flac", "mp3", "ogg", "oga"],
    }
}

/// Reads the file of a picture or a sound, and checks its header.
///
/// # Errors
/// When it cannot be read, is too large or of another kind; the error names the file, and its causes are text.
pub fn read(path: &Path, kind: MediaKind) -> Result<Part> {
    checked(path, kind).with_context(|| path.display().to_string())
}

fn checked(path: &Path, kind: MediaKind) -> Result<Part> {
    let (pictures, sounds) = (DecodeLimits::default(), SoundLimits::default());
    let most = match kind {
        MediaKind::Picture => pictures.max_bytes,
        MediaKind::Sound => sounds.max_bytes,
    };
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| anyhow!("{error}"))?;
    ensure!(bytes.len() <= most, "it has more than {most} bytes");
    match kind {
        MediaKind::Picture => drop(picture_size(&bytes, &pictures)?),
        MediaKind::Sound => drop(sound_length(&bytes, &sounds)?),
    }
    let media = Media::from_bytes(bytes);
    Ok(match kind {
        MediaKind::Picture => Part::Image(media),
        MediaKind::Sound => Part::Audio(media),
    })
}

/// Reads several files: pictures, then sounds.
pub fn read_all(pictures: &[PathBuf], sounds: &[PathBuf]) -> Result<Vec<Part>> {
    let pictures = pictures.iter().map(|path| read(path, MediaKind::Picture));
    pictures.chain(sounds.iter().map(|path| read(path, MediaKind::Sound))).collect()
}

/// Returns true if a part is of this kind.
pub fn is(part: &Part, kind: MediaKind) -> bool {
    match part {
        Part::Image(_) => kind == MediaKind::Picture,
        Part::Audio(_) => kind == MediaKind::Sound,
        _ => false,
    }
}

/// The picture or the sound that a line names and nothing else: terminals type the path of a file that is dropped on them.
pub fn dropped(line: &str) -> Option<(PathBuf, MediaKind)> {
    let words = shlex::split(line.strip_prefix("file://").unwrap_or(line))?;
    let [path] = &words[..] else { return None };
    let path = PathBuf::from(path);
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let mut kinds = MediaKind::ALL.into_iter();
    let kind = kinds.find(|kind| extensions(*kind).contains(&extension.as_str()))?;
    path.is_file().then_some((path, kind))
}

/// A message of the user: pictures and sounds before the text.
pub fn message(mut media: Vec<Part>, text: &str) -> Message {
    if media.is_empty() {
        return Message::user(text);
    }
    media.push(Part::Text(text.to_owned()));
    Message::user(Content::Parts(media))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_the_path_of_a_medium_names_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, kind) in [("a cat.PNG", MediaKind::Picture), ("a cat.WAV", MediaKind::Sound)] {
            let path = folder.path().join(name);
            std::fs::write(&path, "x").expect("can be written");
            named(&path, kind);
        }
    }

    /// Checks the lines that name `path`, and those that do not.
    fn named(path: &Path, kind: MediaKind) {
        let shown = path.display().to_string();
        for line in
            [format!("'{shown}'"), shown.replace(' ', "\\ "), format!("file://{}", shown.replace(' ', "\\ "))]
        {
            assert_eq!(dropped(&line), Some((path.to_owned(), kind)), "{line}");
        }
        for line in
            [shown.as_str(), &format!("'{shown}' what is it?"), "'/nowhere/cat.png'", "cat.png", "", "'"]
        {
            assert_eq!(dropped(line), None, "{line}");
        }
    }

    #[test]
    fn a_file_that_is_no_medium_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "Hello").expect("can be written");
        for kind in MediaKind::ALL {
            let error = format!("{:#}", read(file.path(), kind).expect_err("is no medium"));
            assert!(error.starts_with(&file.path().display().to_string()), "{error}");
            assert!(error.contains(&format!("no {kind}")), "{error}");
        }
    }
}
