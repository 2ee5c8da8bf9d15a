//! Kinds of media in prompts.

use std::fmt;

/// Kind of a media item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// An image.
    Image,
    /// An audio clip.
    Audio,
}

impl MediaKind {
    /// All kinds, in the order of the enum.
    pub const ALL: [Self; 2] = [Self::Image, Self::Audio];

    /// The kind in words: `image`, `audio`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
        }
    }
}

impl MediaKind {
    /// Any number of the kind in words: `images`, `audio`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::Audio => "audio",
        }
    }
}

impl fmt::Display for MediaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
