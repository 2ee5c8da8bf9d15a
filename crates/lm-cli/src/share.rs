//! Shares of the context.

use std::str::FromStr;

/// Largest share of the context that something may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// No limit.
    Off,
    /// In percent.
    Percent(u8),
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent = || text.trim_end_matches('%').parse().ok().filter(|percent| *percent <= 100);
        match text {
            "off" => Ok(Self::Off),
            _ => percent()
                .map(Self::Percent)
                .ok_or_else(|| "expected an integer in 0..=100, or `off`".to_owned()),
        }
    }
}

impl Share {
    /// Tokens of the share of a context.
    pub fn of(self, context_tokens: usize) -> usize {
        match self {
            Self::Off => usize::MAX,
            Self::Percent(percent) => context_tokens * usize::from(percent) / 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_a_percentage_or_off() {
        for (text, expected) in [
            ("off", Some(Share::Off)),
            ("25", Some(Share::Percent(25))),
            ("100%", Some(Share::Percent(100))),
            ("0", Some(Share::Percent(0))),
            ("101", None),
            ("-1", None),
            ("half", None),
        ] {
            assert_eq!(text.parse::<Share>().ok(), expected, "{text}");
        }
    }
}
