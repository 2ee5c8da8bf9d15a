//! M-RoPE: the axis of the position that rotates each pair of a head.

use lm_formats::Result;

use super::RopeSpec;
use crate::config::{ModelConfig, RopeParameters, invalid};
use crate::spec::DecoderSpec;

/// Position that rotates each pair of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RopeAxes {
    /// The temporal one.
    Temporal,
    /// The first pairs the temporal one, the next the height, the others the width: these numbers of pairs.
    Sections([usize; 3]),
    /// Temporal, height and width in turn, as long as the last two have pairs left of these numbers; then the
    /// temporal one.
    Interleaved([usize; 3]),
}

impl RopeAxes {
    /// Axis of each of `pairs` pairs: 0, 1 or 2.
    pub(crate) fn of_pairs(self, pairs: usize) -> Vec<usize> {
        let axis = |pair: usize| match self {
            Self::Temporal => 0,
            Self::Sections([temporal, height, _]) => {
                usize::from(pair >= temporal) + usize::from(pair >= temporal + height)
            }
            Self::Interleaved(sections) => {
                if pair < 3 * sections[pair % 3] {
                    pair % 3
                } else {
                    0
                }
            }
        };
        (0..pairs).map(axis).collect()
    }

    /// Pairs of each axis; `None` without M-RoPE.
    pub(crate) fn sections(self) -> Option<[usize; 3]> {
        match self {
            Self::Temporal => None,
            Self::Sections(sections) | Self::Interleaved(sections) => Some(sections),
        }
    }
}

impl DecoderSpec {
    /// Builds the spec of a config with M-RoPE in all layers; `plain` builds it without. `mrope_section` has
    /// the value `default` where it is absent.
    pub(crate) fn with_mrope(
        config: &ModelConfig,
        plain: fn(&ModelConfig) -> Result<Self>,
        axes: fn([usize; 3]) -> RopeAxes,
        default: [usize; 3],
    ) -> Result<Self> {
        let (key, mut rope) = config.rope_parameters();
        let sections = rope.take_sections(key, default)?;
        let config = ModelConfig { rope_parameters: Some(rope), ..config.without_rope() };
        let mut spec = plain(&config)?;
        for rope in &mut spec.ropes {
            *rope = RopeSpec { axes: axes(sections), ..rope.clone() };
            rope.check_axes(key)?;
        }
        Ok(spec)
    }
}

impl RopeSpec {
    /// Checks that sections cover all pairs.
    fn check_axes(&self, key: &str) -> Result<()> {
        match self.axes {
            RopeAxes::Sections(sections) if 2 * sections.iter().sum::<usize>() != self.rotary_dim => {
                let expected = format!("numbers that add up to {}, half of head_dim", self.rotary_dim / 2);
                Err(invalid(&format!("{key}.mrope_section"), format!("{sections:?}"), expected))
            }
            _ => Ok(()),
        }
    }
}

impl RopeParameters {
    /// Removes the keys of M-RoPE and returns `mrope_section`, or the `default` where it is absent. `mrope`
    /// as the type of older files is the default scaling.
    pub(crate) fn take_sections(&mut self, key: &str, default: [usize; 3]) -> Result<[usize; 3]> {
        const MAX_PAIRS: u64 = 1 << 16;
        if self.kind() == "mrope" {
            (self.rope_type, self.legacy_type) = (None, None);
        }
        self.rest.remove("mrope_interleaved"); // The reference goes by the architecture.
        let Some(given) = self.rest.remove("mrope_section") else { return Ok(default) };
        let number =
            |value: &serde_json::Value| value.as_u64().filter(|&n| n <= MAX_PAIRS).map(|n| n as usize);
        let sections: Option<Vec<usize>> =
            given.as_array().and_then(|list| list.iter().map(number).collect());
        sections.and_then(|sections| sections.try_into().ok()).ok_or_else(|| {
            invalid(&format!("{key}.mrope_section"), given, format!("three numbers of at most {MAX_PAIRS}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_consecutive_or_interleaved() {
        assert_eq!(RopeAxes::Temporal.of_pairs(3), [0, 0, 0]);
        assert_eq!(RopeAxes::Sections([2, 1, 3]).of_pairs(6), [0, 0, 1, 2, 2, 2]);
        assert_eq!(RopeAxes::Interleaved([4, 2, 1]).of_pairs(8), [0, 1, 2, 0, 1, 0, 0, 0]);
        // More than there are pairs.
        assert_eq!(RopeAxes::Interleaved([11, 11, 10]).of_pairs(4), [0, 1, 2, 0]);
    }

    #[test]
    fn sections_are_three_numbers() {
        let parameters = |json: &str| serde_json::from_str::<RopeParameters>(json).unwrap();
        let mut given =
            parameters(r#"{"type": "mrope", "mrope_section": [1, 2, 3], "mrope_interleaved": true}"#);
        assert_eq!(given.take_sections("rope_scaling", [9; 3]).unwrap(), [1, 2, 3]);
        assert_eq!(given, RopeParameters::default());
        assert_eq!(given.take_sections("rope_scaling", [9; 3]).unwrap(), [9; 3]);
        for bad in ["[1, 2]", "[1, 2, -3]", "[1, 2, 3000000]", "7"] {
            let mut given = parameters(&format!(r#"{{"mrope_section": {bad}}}"#));
            let error = given.take_sections("rope_parameters", [9; 3]).unwrap_err().to_string();
            assert!(error.contains("rope_parameters.mrope_section"), "{error}");
        }
    }
}
