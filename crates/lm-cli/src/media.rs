//! Images and audio of messages: files that the user names.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, ensure};
use lm_media::{Audio, AudioLimits, DecodeLimits, Image};
use lm_model::ModelFolder;
use lm_session::{Engine, MediaKind};
use lm_template::{Content, Media, Message, Part};

use crate::file_url;

/// Ends of the names of files of a kind.
const fn extensions(kind: MediaKind) -> &'static [&'static str] {
    match kind {
        MediaKind::Image => &["png", "jpg", "jpeg", "webp", "gif", "bmp"],
        MediaKind::Audio => &["wav", "flac", "mp3", "ogg", "oga"],
    }
}

/// An image or an audio clip, and its file.
#[derive(Clone)]
pub struct MediaFile {
    pub path: PathBuf,
    pub part: Part,
}

/// Reads the file of an image or an audio clip, and checks that it can be decoded. The path may be a `file:`
/// URL.
///
/// # Errors
/// When it cannot be read, is too large, damaged or of another kind; the error names the file, and its causes
/// are text.
pub fn read(path: &Path, kind: MediaKind) -> Result<MediaFile> {
    let read = file_url::local(path).and_then(|path| Ok(MediaFile { part: checked(&path, kind)?, path }));
    read.with_context(|| path.display().to_string())
}

/// Reads the file of an image or an audio clip for a model.
///
/// # Errors
/// Same errors as [`read`]; also when the model does not read files of this kind.
pub fn read_for(engine: &Engine, path: &Path, kind: MediaKind) -> Result<MediaFile> {
    check_kind(engine.reads(kind), engine.name(), kind).with_context(|| path.display().to_string())?;
    read(path, kind)
}

/// Error of a model that does not read files of this kind.
fn check_kind(is_read: bool, model: &str, kind: MediaKind) -> Result<()> {
    ensure!(is_read, "the model `{model}` reads no {}", kind.plural());
    Ok(())
}

/// Checks that a model reads these files, before it is loaded.
///
/// # Errors
/// When it does not, the error names a file and the model; those of the headers of the model's files.
pub fn check_all(model: &ModelFolder, files: &[MediaFile]) -> Result<()> {
    for kind in MediaKind::ALL {
        let Some(file) = files.iter().find(|file| is(&file.part, kind)) else { continue };
        let is_read = match kind {
            MediaKind::Image => model.reads_images()?,
            MediaKind::Audio => model.reads_audio()?,
        };
        check_kind(is_read, model.name(), kind).with_context(|| file.path.display().to_string())?;
    }
    Ok(())
}

fn checked(path: &Path, kind: MediaKind) -> Result<Part> {
    let (images, audios) = (DecodeLimits::default(), AudioLimits::default());
    let most = match kind {
        MediaKind::Image => images.max_bytes,
        MediaKind::Audio => audios.max_bytes,
    };
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| anyhow!("{error}"))?;
    ensure!(bytes.len() <= most, "it has more than {most} bytes");
    match kind {
        MediaKind::Image => drop(Image::decode(&bytes, &images)?),
        MediaKind::Audio => drop(Audio::decode(&bytes, &audios)?),
    }
    let media = Media::from_bytes(bytes);
    Ok(match kind {
        MediaKind::Image => Part::Image(media),
        MediaKind::Audio => Part::Audio(media),
    })
}

/// Reads several files: images, then audio clips.
pub fn read_all(images: &[PathBuf], audios: &[PathBuf]) -> Result<Vec<MediaFile>> {
    let images = images.iter().map(|path| read(path, MediaKind::Image));
    images.chain(audios.iter().map(|path| read(path, MediaKind::Audio))).collect()
}

/// Returns true if a part is of this kind.
pub fn is(part: &Part, kind: MediaKind) -> bool {
    match part {
        Part::Image(_) => kind == MediaKind::Image,
        Part::Audio(_) => kind == MediaKind::Audio,
        _ => false,
    }
}

/// The images and audio that a line names and nothing else: terminals type the paths of files that are
/// dropped on them.
pub fn dropped(line: &str) -> Option<Vec<(PathBuf, MediaKind)>> {
    let words = shlex::split(line)?;
    let files: Vec<_> = words.iter().map(|word| named(word)).collect::<Option<_>>()?;
    Some(files).filter(|files| !files.is_empty())
}

/// The image or the audio of a path or a `file:` URL.
fn named(word: &str) -> Option<(PathBuf, MediaKind)> {
    let path = file_url::local(Path::new(word)).ok()?;
    let kind = kind_of(&path)?;
    path.is_file().then_some((path, kind))
}

/// Kind of the medium that a file has by its name.
pub fn kind_of(path: &Path) -> Option<MediaKind> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    MediaKind::ALL.into_iter().find(|kind| extensions(*kind).contains(&extension.as_str()))
}

/// A message of the user, images and audio before the text, and the files of its first parts.
pub fn message(media: Vec<MediaFile>, text: &str) -> (Message, Vec<PathBuf>) {
    if media.is_empty() {
        return (Message::user(text), Vec::new());
    }
    let (files, mut parts): (Vec<_>, Vec<_>) = media.into_iter().map(|file| (file.path, file.part)).unzip();
    parts.push(Part::Text(text.to_owned()));
    (Message::user(Content::Parts(parts)), files)
}

/// Number of the medium of message `index` that the model cannot take, in the error of a turn.
pub fn refused(error: &Error, index: usize) -> Option<usize> {
    error.chain().find_map(place).filter(|(message, _)| *message == index).map(|(_, part)| part)
}

/// Adds the file to the error of a turn whose model cannot take an image or an audio clip of message `index`,
/// which has these files.
pub fn with_file(error: Error, index: usize, files: &[PathBuf]) -> Error {
    match refused(&error, index).and_then(|part| files.get(part)) {
        Some(file) => error.context(file.display().to_string()),
        None => error,
    }
}

/// Message and part of an image or an audio clip that the model cannot take.
fn place(cause: &(dyn std::error::Error + 'static)) -> Option<(usize, usize)> {
    use lm_conversation::Error::{Medium, UnreadMedium};
    let error = match cause.downcast_ref() {
        Some(lm_tools::Error::Conversation(error)) => error,
        _ => cause.downcast_ref()?,
    };
    match error {
        Medium { message, part, .. } | UnreadMedium { message, part, .. } => Some((*message, *part)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn line_of_paths_names_the_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "x").expect("can be written");
            path
        };
        let (cat, purr) = (file("a cat.PNG"), file("a purr.WAV"));
        named_by_lines(&cat, MediaKind::Image);
        named_by_lines(&purr, MediaKind::Audio);
        let both = vec![(cat.clone(), MediaKind::Image), (purr.clone(), MediaKind::Audio)];
        let (cat, purr) = (cat.display().to_string(), purr.display().to_string());
        for line in [
            format!("'{cat}' '{purr}' "),
            format!("{}  '{purr}'", cat.replace(' ', "\\ ")),
            format!("file://{}\nfile://{}", cat.replace(' ', "%20"), purr.replace(' ', "%20")),
        ] {
            assert_eq!(dropped(&line).as_ref(), Some(&both), "{line}");
        }
        assert_eq!(dropped(&format!("'{cat}' '{purr}' what is it?")), None);
    }

    /// Checks the lines that name `path`, and those that do not.
    fn named_by_lines(path: &Path, kind: MediaKind) {
        let shown = path.display().to_string();
        let escaped = shown.replace(' ', "\\ ");
        let url = format!("file://{}", shown.replace(' ', "%20"));
        for line in [format!("'{shown}'"), format!("file://{escaped}"), escaped, url] {
            assert_eq!(dropped(&line), Some(vec![(path.to_owned(), kind)]), "{line}");
        }
        for line in
            [shown.as_str(), &format!("'{shown}' what is it?"), "'/nowhere/cat.png'", "cat.png", "", "'"]
        {
            assert_eq!(dropped(line), None, "{line}");
        }
    }

    #[test]
    fn images_precede_audio_and_audio_precedes_text() {
        let data = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
        let (image, audio) = (data("media/rgb_1x1.png"), data("sound/one_sample.wav"));
        let files = read_all(from_ref(&image), from_ref(&audio)).expect("are read");
        let (message, files) = message(files, "What is it?");
        let kinds: Vec<_> = message.content.parts().iter().map(Part::kind).collect();
        assert_eq!(kinds, ["image", "audio", "text"]);
        assert_eq!(files, [image, audio]);
        assert_eq!(super::message(Vec::new(), "Hello"), (Message::user("Hello"), Vec::new()));
    }

    #[test]
    fn non_media_file_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "Hello").expect("can be written");
        for kind in MediaKind::ALL {
            let error = format!("{:#}", read(file.path(), kind).err().expect("not a media file"));
            assert!(error.starts_with(&file.path().display().to_string()), "{error}");
            assert!(error.contains(&format!("not {kind} data")), "{error}");
        }
    }
}
