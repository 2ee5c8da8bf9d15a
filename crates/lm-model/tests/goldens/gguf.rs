//! GGUF files written by llama.cpp's converter from the tiny checkpoints.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use lm_model::{CausalLm, Device, Input, KvDtype, LoadOptions, LogitRows, ModelFolder, WeightFormat};
use lm_tokenizer::TokenId;
use serde::Deserialize;

use crate::goldens::root;
use crate::goldens::run::Cache;

/// Tolerance of the root mean square difference of logits, whose standard deviation is about 2, from those of
/// float products.
const ROUNDING: f32 = 0.12;

/// Number of tokens of the tiny checkpoints, whose logits are wider.
const TOKENS: usize = 300;

/// Reference results for a file whose values differ from the checkpoint's.
#[derive(Deserialize)]
struct Twin {
    tolerance: f32,
    prompts: Vec<TwinPrompt>,
}

#[derive(Deserialize)]
struct TwinPrompt {
    ids: Vec<TokenId>,
    logits: Vec<f32>,
}

/// Files; of split models, the first shard only.
pub fn files() -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in root().join("testdata/gguf").read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let later = name.contains("-of-") && !name.contains("-00001-of-");
        if name.ends_with(".gguf") && !later {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "no GGUF files");
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn twin(path: &Path) -> anyhow::Result<Option<Twin>> {
    let path = path.with_file_name(format!("{}.golden.json", stem(path)));
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&std::fs::read(path)?)?))
}

pub fn load(path: &Path, quantization: Option<WeightFormat>) -> anyhow::Result<std::sync::Arc<dyn CausalLm>> {
    let options =
        LoadOptions { device: Device::Cpu, kv_dtype: KvDtype::F32, quantization, ..LoadOptions::default() };
    let folder = ModelFolder::open(path)?;
    Ok(folder.load(&options, &mut |_| {}).with_context(|| path.display().to_string())?.model)
}

/// Prints a line that `cargo xtask golden --check --models` turns into a cell.
fn report(path: &Path, difference: f32) -> anyhow::Result<()> {
    let architecture = ModelFolder::open(path)?.config()?.model_type;
    println!("golden: {architecture} {}.gguf on {}: logits {difference:.1e}", stem(path), Device::Cpu);
    Ok(())
}

/// Returns true if some of the file's tensors are quantised.
fn has_blocks(path: &Path) -> anyhow::Result<bool> {
    let floats = ["F32", "F16", "BF16"];
    Ok(ModelFolder::open(path)?.tensors()?.iter().any(|tensor| !floats.contains(&tensor.dtype.as_str())))
}

/// The logits of the last row.
pub fn logits(model: &dyn CausalLm, ids: &[TokenId]) -> anyhow::Result<Vec<f32>> {
    let mut cache = Cache::new(model, 1, ids.len())?;
    Ok(cache.push(Input::Ids(ids.to_vec()), LogitRows::Last)?.remove(0))
}

/// Maximum difference of a logit. Gemma 3's converter omits embedding rows without a token.
pub fn difference(from_gguf: &[f32], expected: &[f32]) -> f32 {
    assert!(from_gguf.len() == expected.len() || from_gguf.len() == TOKENS, "{} logits", from_gguf.len());
    from_gguf.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Root mean square difference.
fn rms_difference(stored: &[f32], expected: &[f32]) -> f32 {
    let squares = stored.iter().zip(expected).map(|(a, b)| (a - b).powi(2));
    (squares.sum::<f32>() / stored.len() as f32).sqrt()
}

/// Files with the checkpoint's values give bit-identical logits.
#[test]
fn float_files_equal_their_checkpoints() -> anyhow::Result<()> {
    let prompt: Vec<TokenId> = (0..40).map(|i| i * 37 % 284).collect();
    let mut differ = Vec::new();
    for path in files()? {
        if twin(&path)?.is_some() {
            continue;
        }
        let name = stem(&path);
        let checkpoint = ["-f16", "-bf16", "-f32"].iter().find_map(|kind| Some(name.split_once(kind)?.0));
        let checkpoint = root().join("testdata/models").join(checkpoint.context("a checkpoint and a type")?);
        let from_folder = logits(&*load(&checkpoint, None)?, &prompt)?;
        let from_gguf = load(&path, None).and_then(|model| logits(&*model, &prompt));
        match from_gguf.map(|logits| difference(&logits, &from_folder)) {
            Ok(0.0) => report(&path, 0.0)?,
            Ok(difference) => differ.push(format!("{name}: logits differ by {difference:e}")),
            Err(error) => differ.push(format!("{name}: {error:#}")),
        }
    }
    ensure!(differ.is_empty(), "{}", differ.join("\n"));
    Ok(())
}

/// Files with other values than the checkpoint's give the reference's logits for these values.
#[test]
fn quantised_files_equal_their_values() -> anyhow::Result<()> {
    for path in files()? {
        let Some(twin) = twin(&path)? else { continue };
        let (exact, stored) = (load(&path, Some(WeightFormat::F32))?, load(&path, None)?);
        let mut worst_of_all = 0.0;
        for (i, prompt) in twin.prompts.iter().enumerate() {
            let worst = difference(&logits(&*exact, &prompt.ids)?, &prompt.logits);
            let of_stored = logits(&*stored, &prompt.ids)?;
            let rms = rms_difference(&of_stored, &prompt.logits);
            println!("{} prompt {i}: {worst:e} in f32, {rms:e} (rms) as stored", stem(&path));
            ensure!(worst <= twin.tolerance, "{} prompt {i}: logits differ by {worst:e}", stem(&path));
            // Integer products round the other factor to 8 bits.
            let bound = if has_blocks(&path)? { ROUNDING } else { twin.tolerance };
            ensure!(rms <= bound, "{} prompt {i}: logits differ by {rms:e} (rms)", stem(&path));
            worst_of_all = worst.max(worst_of_all);
        }
        report(&path, worst_of_all)?;
    }
    Ok(())
}
