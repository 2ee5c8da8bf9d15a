//! GGUF files converted to GGUF files of other types, and to folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use lm_formats::{FileBytes, GgufFile, GgufTensor};
use lm_kernels::{FloatDtype, GgmlType, PackedMatrix, Source};
use lm_model::{Error, ModelFolder, WeightFormat};
use lm_tokenizer::TokenId;

use crate::goldens::gguf::{files, load};
use crate::goldens::root;

/// Files with blocks; the matrices of the last have all types.
const QUANTISED: [&str; 4] =
    ["gpt-oss-tiny-bf16.gguf", "llama-tiny-q8_0.gguf", "qwen3-tiny-q8_0.gguf", "mixed.gguf"];
const TARGETS: [WeightFormat; 5] = [
    WeightFormat::F32,
    WeightFormat::F16,
    WeightFormat::Bf16,
    WeightFormat::Ggml(GgmlType::Q8_0),
    WeightFormat::Ggml(GgmlType::Q4_0),
];

/// Tensors of a file with their bytes, by name, and its other contents.
type Tensors = BTreeMap<String, (GgufTensor, Vec<u8>)>;

fn read(path: &Path) -> anyhow::Result<(GgufFile, Tensors)> {
    let bytes = fs::read(path)?;
    let file = GgufFile::read("file", FileBytes::Owned(bytes.clone().into()))?;
    let tensors = file.tensors().iter();
    let tensors =
        tensors.map(|tensor| (tensor.name.clone(), (tensor.clone(), bytes[tensor.range.clone()].to_vec())));
    let tensors = tensors.collect();
    Ok((file, tensors))
}

/// Values of a matrix, dequantised if it is stored in blocks.
fn values(tensor: &GgufTensor, bytes: &[u8]) -> anyhow::Result<Vec<f32>> {
    let cols = *tensor.shape.last().context("a dimension")?;
    let rows = tensor.shape.iter().product::<usize>() / cols;
    let float = match tensor.ty.name() {
        "F32" => Some(FloatDtype::F32),
        "F16" => Some(FloatDtype::F16),
        "BF16" => Some(FloatDtype::Bf16),
        _ => None,
    };
    let mut values = vec![0.0; rows * cols];
    match float {
        Some(float) => Source::from_le_bytes(float, bytes)?.read(0, &mut values),
        None => {
            let ty: GgmlType = tensor.ty.name().to_lowercase().parse()?;
            let packed = PackedMatrix::from_blocks(ty, rows, cols, bytes)?;
            for (row, out) in values.chunks_exact_mut(cols).enumerate() {
                packed.dequantize_row(row, out);
            }
        }
    }
    Ok(values)
}

/// Bytes of values in a format, as the file of that type has them.
fn encoded(values: &[f32], cols: usize, format: WeightFormat) -> anyhow::Result<Vec<u8>> {
    let source = Source::F32(values);
    Ok(match format {
        WeightFormat::F16 => FloatDtype::F16.encode(cols, source)?,
        WeightFormat::Bf16 => FloatDtype::Bf16.encode(cols, source)?,
        WeightFormat::Ggml(ty) => ty.quantize(cols, source)?,
        _ => FloatDtype::F32.encode(cols, source)?,
    })
}

/// Every matrix has the bytes of its dequantised values in the format; those in it already are copied.
#[test]
fn blocks_are_encoded_anew() -> anyhow::Result<()> {
    let out = tempfile::tempdir()?;
    for name in QUANTISED {
        let path = root().join("testdata/gguf").join(name);
        let (_, source) = read(&path)?;
        for format in TARGETS {
            let target = out.path().join(format!("{format}-{name}"));
            ModelFolder::open(&path)?.convert_to_gguf(&target, format, &mut |_| {})?;
            let (file, written) = read(&target)?;
            ensure!(written.keys().eq(source.keys()), "{name}: other tensors");
            let mut matrices = 0;
            for (tensor, (before, bytes)) in &source {
                let (after, written) = &written[tensor];
                let cols = *before.shape.last().context("a dimension")?;
                let format = format.for_rows_of(cols);
                let is_f32 = before.ty.name() == "F32" && after.ty.name() == "F32";
                let format = if is_f32 { WeightFormat::F32 } else { format };
                ensure!(after.ty.name() == format.to_string().to_uppercase(), "{tensor} is {}", after.ty);
                let expected = match before.ty == after.ty {
                    true => bytes.clone(),
                    false => encoded(&values(before, bytes)?, cols, format)?,
                };
                ensure!(*written == expected, "{name} to {format}: {tensor} in {}", before.ty);
                matrices += usize::from(!is_f32);
            }
            ensure!(matrices > 4, "{name}: {matrices} matrices");
            println!(
                "{name} to {format}: {matrices} matrices, file type {:?}",
                file.metadata().size("general.file_type")?
            );
        }
    }
    Ok(())
}

#[test]
fn types_are_kept_without_a_format() -> anyhow::Result<()> {
    let out = tempfile::tempdir()?;
    for name in QUANTISED {
        let path = root().join("testdata/gguf").join(name);
        let target = out.path().join(name);
        let model = ModelFolder::open(&path)?;
        model.check_conversion(None)?;
        model.convert_to_gguf(&target, None, &mut |_| {})?;
        let ((before, source), (after, written)) = (read(&path)?, read(&target)?);
        ensure!(source.keys().eq(written.keys()), "{name}: other tensors");
        for (tensor, (before, bytes)) in &source {
            let (after, written) = &written[tensor];
            ensure!(
                (before.ty, bytes) == (after.ty, written),
                "{name}: {tensor}: {} {}",
                before.ty,
                after.ty
            );
        }
        for (key, _) in before.metadata().keys().filter(|(key, _)| !key.starts_with("split.")) {
            let raw = |file: &GgufFile| {
                anyhow::Ok(file.metadata().raw(key)?.map(|(ty, bytes)| (ty, bytes.to_vec())))
            };
            ensure!(raw(&before)? == raw(&after)?, "{name}: {key}");
        }
    }
    Ok(())
}

/// The folder has the weights of the file quantised on load, its tokenizer, template and settings.
#[test]
fn folders_equal_their_files() -> anyhow::Result<()> {
    let (out, mut count) = (tempfile::tempdir()?, 0);
    for path in files()? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let model = ModelFolder::open(&path)?;
        for format in [WeightFormat::Q8, WeightFormat::Q4] {
            let copy = out.path().join(format!("{name}-{format}"));
            model.check_conversion(format).with_context(|| name.clone())?;
            model.convert(&copy, format, &mut |_| {}).with_context(|| name.clone())?;
            same_texts(&model, &ModelFolder::open(&copy)?).with_context(|| name.clone())?;
            let ids: Vec<TokenId> = (0..24).map(|i| i * 37 % 250).collect();
            let [loaded, read] = [load(&path, Some(format))?, load(&copy, None)?];
            ensure!(
                crate::common::logits_of(&*loaded, &ids) == crate::common::logits_of(&*read, &ids),
                "{name} as {format}: other logits"
            );
            count += 1;
        }
    }
    ensure!(count > 60, "{count} conversions");
    Ok(())
}

/// A `tokenizer.json` has one of two tokens with the same text; the reply may have the other.
#[test]
fn repeated_tokens_have_no_folder() -> anyhow::Result<()> {
    let out = tempfile::tempdir()?;
    let path = root().join("testdata/gguf/qwen3-tiny-q8_0.gguf");
    let (file, _) = read(&path)?;
    let texts = |key: &str| -> anyhow::Result<Vec<String>> {
        let texts = file.metadata().strings(key)?.context("a list")?;
        texts.map(|text| Ok(text?.to_owned())).collect()
    };
    let (tokens, merges) = (texts("tokenizer.ggml.tokens")?, texts("tokenizer.ggml.merges")?);
    let is_merged = |token: &String| merges.iter().any(|merge| merge.contains(token.as_str()));
    let mut alone = tokens.iter().filter(|token| token.chars().count() == 1 && !is_merged(token));
    let one = alone.next().context("a token without merges")?;
    let other = alone.find(|token| token.len() == one.len()).context("another one")?;
    let stored = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let (mut bytes, wanted) = (fs::read(&path)?, stored(one));
    let at = bytes.windows(wanted.len()).position(|window| window == wanted).context("in the file")?;
    bytes[at..at + wanted.len()].copy_from_slice(&stored(other));
    let repeated = out.path().join("repeated.gguf");
    fs::write(&repeated, bytes)?;

    let model = ModelFolder::open(&repeated)?;
    let copy = out.path().join("copy");
    let refused = model.convert(&copy, WeightFormat::Q8, &mut |_| {}).expect_err("is refused");
    ensure!(matches!(refused, Error::NoTokenizerJson { .. }) && !copy.exists(), "{refused}");
    ensure!(refused.to_string().contains("a tokenizer.json cannot say so"), "{refused}");
    model.convert_to_gguf(out.path().join("copy.gguf"), None, &mut |_| {})?;
    Ok(())
}

fn same_texts(file: &ModelFolder, folder: &ModelFolder) -> anyhow::Result<()> {
    let [a, b] = [file.tokenizer()?, folder.tokenizer()?];
    ensure!(a.vocab_size() == b.vocab_size() && a.logits_width() == b.logits_width(), "sizes");
    ensure!(a.end_ids() == b.end_ids() && a.prefix_ids()? == b.prefix_ids()?, "special ids");
    let added: String =
        a.added_tokens().map(|id| String::from_utf8_lossy(a.token_bytes(id)).into_owned()).collect();
    for text in ["", "On the line 12345  of Zürich,\n\t it's \u{1f600}.", added.as_str()] {
        ensure!(a.encode(text)? == b.encode(text)?, "ids of {text:?}");
        ensure!(a.encode_prompt(text)? == b.encode_prompt(text)?, "ids of the prompt {text:?}");
    }
    ensure!(file.chat_template()? == folder.chat_template()?, "chat template");
    let [mut before, after] = [file.generation_config()?, folder.generation_config()?];
    // Files name up to three of the ids that end a reply.
    before.eos_token_ids = a.end_ids().to_vec();
    ensure!(before == after, "generation config: {before:?} {after:?}");
    // All settings decide about the logits; these are shown to users too.
    let shown = |folder: &ModelFolder| -> anyhow::Result<_> {
        let config = folder.config()?;
        let sizes = [config.hidden_size, config.num_hidden_layers, config.max_position_embeddings];
        Ok((config.model_type, sizes, config.head_dim, folder.parameters()?))
    };
    ensure!(shown(file)? == shown(folder)?, "config.json");
    ensure!(file.licence()? == folder.licence()?, "licence");
    Ok(())
}
