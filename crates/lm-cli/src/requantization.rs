//! Warning about weights of few bits that are quantised again.

use std::path::Path;

use anyhow::Result;
use lm_kernels::GgmlType;
use lm_model::{ModelFolder, WeightFormat};

/// Formats of about 4 bits.
const FOUR_BITS: [WeightFormat; 2] = [WeightFormat::Q4, WeightFormat::Ggml(GgmlType::Q4_0)];
/// Maximum bits per weight of stored blocks whose quantisation to [`FOUR_BITS`] is warned about. Formats of
/// 8 bits lose little.
const FEW_BITS: f64 = 6.0;

/// Prints a warning if most weights of the model at `path` are stored in blocks of few bits, and are to be
/// quantised to another format of 4 bits.
///
/// # Errors
/// When the model's headers cannot be read.
pub fn warn(folder: &ModelFolder, path: Option<&Path>, requested: Option<WeightFormat>) -> Result<()> {
    let Some(requested) = requested.filter(|format| FOUR_BITS.contains(format)) else { return Ok(()) };
    if let Some(warning) = warning(folder, path, requested)? {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

fn warning(folder: &ModelFolder, path: Option<&Path>, requested: WeightFormat) -> Result<Option<String>> {
    let footprint = folder.footprint()?;
    let formats = footprint.quantizable_formats();
    let Some(WeightFormat::Ggml(main)) = formats.first().copied().filter(|format| *format != requested)
    else {
        return Ok(None);
    };
    if 8.0 * main.block_bytes() as f64 / main.block_len() as f64 > FEW_BITS {
        return Ok(None);
    }
    let names = formats.iter().map(WeightFormat::to_string).collect::<Vec<_>>().join(", ");
    let [stored, new] = [None, Some(requested)].map(|format| footprint.bits_per_weight(format));
    let name = path.map_or_else(|| folder.name().into(), |path| path.display().to_string());
    let name = shlex::try_quote(&name).map(Into::into).unwrap_or(name.clone());
    Ok(Some(format!(
        "the weights have {stored:.1} bits each already ({names}), and quantising them again to {new:.1} ({requested}) can \
         cost much accuracy: `lm eval {name} TEXT --quantize {requested} --against {name}` measures it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q4_0: WeightFormat = WeightFormat::Ggml(GgmlType::Q4_0);

    fn warned(folder: &ModelFolder, requested: WeightFormat) -> Option<String> {
        warning(folder, Some(Path::new("a b.gguf")), requested).expect("its headers can be read")
    }

    #[test]
    fn few_bits_quantised_again_are_warned_about() {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        let open = |path: &Path| ModelFolder::open(path).expect("a model");
        let out = tempfile::tempdir().expect("a temporary folder");
        let of_floats = open(&testdata.join("models/qwen3-tiny"));
        assert_eq!(warned(&of_floats, WeightFormat::Q4), None);
        assert_eq!(warned(&open(&testdata.join("gguf/qwen3-tiny-q8_0.gguf")), WeightFormat::Q4), None);

        let path = out.path().join("q4_0.gguf");
        of_floats.convert_to_gguf(&path, Q4_0, &mut |_| {}).expect("it can be converted");
        let of_blocks = open(&path);
        assert_eq!(warned(&of_blocks, Q4_0), None, "it stays as it is");
        let warning = warned(&of_blocks, WeightFormat::Q4).expect("a warning");
        for part in [
            "4.5 bits each already (q4_0)",
            "(q4) can",
            "lm eval 'a b.gguf' TEXT --quantize q4 --against 'a b.gguf'",
        ] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
    }
}
