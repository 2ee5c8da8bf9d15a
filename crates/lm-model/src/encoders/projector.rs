//! Encoders of GGUF models, whose tensors are in an `mmproj` file.

use lm_formats::{Error as FormatError, file_names};

use super::settings::EncoderSettings;
use super::{EncoderFamily, EncoderPart, Modality};
use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::gguf::GgufProjector;
use crate::gguf_projector::Projector;

/// A family and its rules for `mmproj` files.
type Rules<E> = (&'static EncoderFamily<E>, &'static GgufProjector);

impl<E: ?Sized> EncoderPart<E> {
    /// Reads the `mmproj` file of a GGUF model with this `general.architecture`.
    ///
    /// Returns no encoder if the caller did not name the file and it belongs to another model; this is
    /// logged.
    ///
    /// # Errors
    /// When the file is not valid, or was named and belongs to another model.
    pub(crate) fn of_projector(
        modality: &Modality<E>,
        projector: &Projector,
        architecture: &str,
        config: &ModelConfig,
    ) -> Result<Option<Self>> {
        let suited = family_of(modality, projector).and_then(|(family, rules)| {
            projector.check_text_model(rules, architecture, config.hidden_size)?;
            Ok((family, rules))
        });
        let (family, rules) = match suited {
            Ok(suited) => suited,
            Err(error) if projector.is_named() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the mmproj file beside the model is not used: the model takes text only");
                return Ok(None);
            }
        };
        let checkpoint = projector.checkpoint(rules)?;
        let keys = projector.config(rules)?;
        let model_type = family.model_types[0];
        let settings = EncoderSettings::of_projector(projector.name(), model_type, config.hidden_size, keys);
        let stored_bytes = checkpoint.bytes_under(family.prefixes);
        Ok(Some(Self { family, settings, stored_bytes, own: Some((checkpoint, rules)) }))
    }
}

/// Finds the family of an `mmproj` file.
fn family_of<E: ?Sized>(modality: &Modality<E>, projector: &Projector) -> Result<Rules<E>> {
    let kind = projector.projector_type()?;
    let rows = || modality.families.iter().filter_map(|family| Some((*family, family.gguf?)));
    let known = || rows().map(|(_, rules)| rules.projector_type).collect::<Vec<_>>().join(", ");
    let unknown = || projector.unsupported_type(&kind, known());
    Ok(rows().find(|(_, rules)| rules.projector_type == kind).ok_or_else(unknown)?)
}

/// Converts an error about a key of `config.json` to one about the key of the `mmproj` file.
pub(super) fn of_file(error: Error, file: &str, rules: &GgufProjector) -> Error {
    let renamed = |key: String| {
        let own = key.strip_prefix("vision_config.");
        let row = own.and_then(|own| rules.keys.iter().find(|row| row.1 == own));
        row.map_or(key.clone(), |row| format!("clip.vision.{}", row.0))
    };
    match error {
        Error::Format(FormatError::InvalidValue { file: config, key, value, expected })
            if config == file_names::CONFIG =>
        {
            FormatError::InvalidValue { file: file.to_owned(), key: renamed(key), value, expected }.into()
        }
        Error::Format(FormatError::UnsupportedValue { file: config, key, value, known })
            if config == file_names::CONFIG =>
        {
            FormatError::UnsupportedValue { file: file.to_owned(), key: renamed(key), value, known }.into()
        }
        Error::Format(FormatError::Json { source, .. }) => {
            FormatError::Json { file: file.to_owned(), source }.into()
        }
        other => other,
    }
}
