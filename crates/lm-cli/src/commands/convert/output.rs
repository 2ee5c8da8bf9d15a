//! Outputs of a conversion: folders and GGUF files, and their formats.

use std::path::Path;

use anyhow::Result;
use lm_kernels::GgmlType;
use lm_model::WeightFormat;

use super::Conversion;
use crate::args::usage;

/// Matrix formats of folders; the first is the default.
pub const OF_FOLDERS: [WeightFormat; 2] = [WeightFormat::Q8, WeightFormat::Q4];
/// Matrix formats of GGUF files; the first is the default.
pub const OF_GGUF: [WeightFormat; 5] = [
    WeightFormat::Ggml(GgmlType::Q8_0),
    WeightFormat::Ggml(GgmlType::Q4_0),
    WeightFormat::F16,
    WeightFormat::Bf16,
    WeightFormat::F32,
];

/// Formats of folders and of GGUF files with about the same number of bits.
const ALIKE: [(WeightFormat, WeightFormat); 2] = [
    (WeightFormat::Q8, WeightFormat::Ggml(GgmlType::Q8_0)),
    (WeightFormat::Q4, WeightFormat::Ggml(GgmlType::Q4_0)),
];

/// Kind of output, by the file name's extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Folder,
    Gguf,
}

impl Output {
    pub fn of(path: &Path) -> Self {
        let is_gguf = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf"));
        if is_gguf { Self::Gguf } else { Self::Folder }
    }

    /// Name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Folder => "a folder",
            Self::Gguf => "a GGUF file",
        }
    }

    /// Ending of its name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Folder => "",
            Self::Gguf => ".gguf",
        }
    }

    /// The other kind.
    pub fn other(self) -> Self {
        match self {
            Self::Folder => Self::Gguf,
            Self::Gguf => Self::Folder,
        }
    }

    /// Formats of its matrices; the first is the default.
    pub fn formats(self) -> &'static [WeightFormat] {
        match self {
            Self::Folder => &OF_FOLDERS,
            Self::Gguf => &OF_GGUF,
        }
    }

    /// Format of such outputs with about as many bits as a format of the other ones.
    pub fn format_like(self, format: WeightFormat) -> Option<WeightFormat> {
        ALIKE.iter().find_map(|&(folder, gguf)| match self {
            Self::Folder => (gguf == format).then_some(folder),
            Self::Gguf => (folder == format).then_some(gguf),
        })
    }

    /// Returns the wanted format of a conversion if it is supported, or the default one.
    ///
    /// # Errors
    /// A usage error, with the commands that write the format.
    pub fn format(self, wanted: Option<WeightFormat>, conversion: &Conversion<'_>) -> Result<WeightFormat> {
        let format = wanted.unwrap_or(self.formats()[0]);
        if self.formats().contains(&format) {
            return Ok(format);
        }
        let names: Vec<_> = self.formats().iter().map(WeightFormat::to_string).collect();
        let other = self.other();
        let alike = self.format_like(format).map(|alike| (self, alike));
        let elsewhere = other.formats().contains(&format).then_some((other, format));
        let commands = alike.into_iter().chain(elsewhere);
        let commands: Vec<_> = commands
            .map(|(output, format)| {
                format!("`{}` writes {}", conversion.command(output, format), output.name())
            })
            .collect();
        let way_out = if commands.is_empty() { String::new() } else { format!("; {}", commands.join(", ")) };
        Err(usage(format!(
            "{} is not written in {format}, only in {}{way_out}",
            self.name(),
            names.join(", ")
        )))
    }
}
