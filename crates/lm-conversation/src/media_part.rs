//! Parts of messages that are pictures or sounds.

use lm_session::MediaKind;
use lm_template::Part;

/// The picture or the sound that a part is.
pub(crate) fn medium(part: &Part) -> Option<(MediaKind, &lm_template::Media)> {
    match part {
        Part::Image(media) => Some((MediaKind::Picture, media)),
        Part::Audio(media) => Some((MediaKind::Sound, media)),
        _ => None,
    }
}

/// Type of the parts of a kind.
pub(crate) const fn part_type(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Picture => "image",
        MediaKind::Sound => "audio",
    }
}
