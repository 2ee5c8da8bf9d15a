//! Audio parts of models: encoders and projectors of audio, one file and one row per family.

mod gemma4;
mod granite_speech;

use crate::encoders::settings::SettingsKeys;
use crate::encoders::{EncoderFamily, Modality};
use crate::media::AudioEncoder;

/// Every audio family, in alphabetical order.
pub const ALL_AUDIO_FAMILIES: &[&AudioFamily] = &[&gemma4::FAMILY, &granite_speech::FAMILY];

/// Audio part of a model family: preprocessing, encoder and projector.
pub type AudioFamily = EncoderFamily<dyn AudioEncoder>;

/// Audio.
pub(crate) const AUDIO: Modality<dyn AudioEncoder> = Modality {
    name: "audio",
    keys: SettingsKeys {
        config: &["audio_config", "encoder_config"],
        processor: &["feature_extractor", "audio_processor"],
    },
    families: ALL_AUDIO_FAMILIES,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_sorted_and_have_goldens() {
        let names: Vec<_> = ALL_AUDIO_FAMILIES.iter().map(|family| family.model_types[0]).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(ALL_AUDIO_FAMILIES.iter().all(|family| !family.goldens.is_empty()));
    }
}
