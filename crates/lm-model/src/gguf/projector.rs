//! Rules between `mmproj` files and the settings and tensors of a vision family, for the rows of
//! [`crate::vision`].
//!
//! Source: `MmprojModel` and its subclasses in the converter of llama.cpp (`conversion/` of release 0.3.36 of
//! the package `llama-cpp-python`); `tools/mtmd/clip.cpp` there for values that files omit.

use lm_formats::Result;
use serde_json::{Map, Value};

use super::{Clip, TensorNames};
use crate::checkpoint::StoredValues;

/// Reading rules for the `mmproj` files of one vision family.
#[derive(Debug)]
pub(crate) struct GgufProjector {
    /// `clip.projector_type`, or `clip.vision.projector_type` of files with audio, too.
    pub(crate) projector_type: &'static str,
    /// `general.architecture` of the matching text models.
    pub(crate) text_models: &'static [&'static str],
    /// Settings that are renamed: key without `clip.vision.`, key of `vision_config`.
    pub(crate) keys: TensorNames,
    /// Keys without `clip.vision.` that have no effect here, with the reason.
    pub(crate) harmless: &'static [(&'static str, &'static str)],
    /// Key of `vision_config` for the activation, by `clip.use_gelu` and `clip.use_silu`; `None` if the
    /// family has only one.
    pub(crate) activation: Option<&'static str>,
    /// Settings that are not just renamed.
    pub(crate) read: fn(&Clip<'_>, &mut ProjectorConfig) -> Result<()>,
    /// Tensors outside of lists: name in the file, name in the checkpoint. A row without suffix (`.weight`,
    /// `.bias`) is for all of them.
    pub(crate) tensors: TensorNames,
    /// Tensors of layers, and other lists of modules.
    pub(crate) lists: &'static [TensorList],
    /// Tensors whose stored values are transformed, by their names in the file.
    pub(crate) values: &'static [(&'static str, StoredValues)],
    /// Name and form of the patch embedding in the checkpoint.
    pub(crate) patches: (&'static str, PatchOrder),
}

/// Tensors with a number in their names: `PREFIX` number `.` and a name.
#[derive(Debug)]
pub(crate) struct TensorList {
    /// Prefix in the file.
    pub(crate) file: &'static str,
    /// Prefix in the checkpoint.
    pub(crate) model: &'static str,
    pub(crate) numbering: Numbering,
    /// Names after the number: in the file, in the checkpoint.
    pub(crate) names: TensorNames,
    /// A module of the checkpoint stored in parts in the file: its name, and the names of its parts in the
    /// file.
    pub(crate) joined: Option<(&'static str, [&'static str; 3])>,
}

/// Numbers of a list in the checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// Those of the file.
    Same,
    /// Places of the file's numbers, which are layers, in their order.
    Places,
}

/// Order of a patch's numbers in the checkpoint. Files have convolutions, `[hidden, channel, y, x]`, one for
/// each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchOrder {
    /// As in the file.
    Same,
    /// `[hidden, y * x * channel]`.
    ChannelsLast,
    /// `[hidden, channel, frame, y, x]` of two frames.
    Frames,
}

/// Settings of a vision part: the objects that a family reads.
#[derive(Default)]
pub(crate) struct ProjectorConfig {
    /// `vision_config`.
    pub(crate) vision: Map<String, Value>,
    /// The outer `config.json`.
    pub(crate) outer: Map<String, Value>,
    /// `preprocessor_config.json`.
    pub(crate) preprocessor: Map<String, Value>,
}
