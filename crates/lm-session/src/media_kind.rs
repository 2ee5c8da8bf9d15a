//! Kinds of media in prompts.

use std::fmt;

/// Kind of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// A picture.
    Picture,
    /// A sound.
    Sound,
}

impl MediaKind {
    /// All kinds, in the order of the enum.
    pub const ALL: [Self; 2] = [Self::Picture, Self::Sound];

    /// The kind in words: `picture`, `sound`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Picture => "picture",
            Self::Sound => "sound",
        }
    }
}

impl fmt::Display for MediaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
