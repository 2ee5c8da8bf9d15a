//! Parts of messages that are images or audio.

use lm_session::MediaKind;
use lm_template::Part;

/// The image or the audio of a part.
pub(crate) fn medium(part: &Part) -> Option<(MediaKind, &lm_template::Media)> {
    match part {
        Part::Image(media) => Some((MediaKind::Image, media)),
        Part::Audio(media) => Some((MediaKind::Audio, media)),
        _ => None,
    }
}

/// Type of the parts of a kind.
pub(crate) const fn part_type(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
    }
}
