//! Logits and greedy tokens of the tiny checkpoints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use lm_model::{
    ALL_ARCHITECTURES, CausalLm, Device, Embeddings, Input, KvDtype, LoadOptions, LogitRows, ModelFolder,
    WeightFormat,
};
use lm_tokenizer::TokenId;

use crate::common::{alone, devices, first, is_thorough};
use crate::goldens::run::{Cache, greedy, slice};
use crate::goldens::{load, root};

/// Reference results for one folder of `testdata/models`.
struct Golden {
    architecture: &'static str,
    name: String,
    /// True if it is the architecture's first checkpoint.
    is_first: bool,
    path: PathBuf,
    /// Maximum absolute difference of a logit that passes.
    tolerance: f32,
    prompts: Vec<Prompt>,
    embeddings: Embeddings,
    embeddings_logits: Vec<Vec<f32>>,
    /// True if an embedding row fully represents an id.
    rows_stand_for_ids: bool,
}

struct Prompt {
    ids: Vec<TokenId>,
    /// The rows whose logits are kept, and these logits.
    rows: Vec<usize>,
    logits: Vec<Vec<f32>>,
    greedy: Vec<TokenId>,
}

impl Golden {
    /// Goldens of every architecture, in the order of the registry.
    fn all() -> anyhow::Result<Vec<Self>> {
        let mut goldens = Vec::new();
        for architecture in ALL_ARCHITECTURES {
            for (number, folder) in architecture.goldens.iter().enumerate() {
                let path = root().join("testdata/models").join(folder);
                let golden = Self::read(architecture.model_types[0], path)?;
                goldens.push(Self { is_first: number == 0, ..golden });
            }
        }
        Ok(goldens)
    }

    fn read(architecture: &'static str, path: PathBuf) -> anyhow::Result<Self> {
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path.join("golden.json"))?)?;
        let bytes = std::fs::read(path.join("golden.safetensors"))?;
        let mut tensors = read_tensors(&bytes)?;
        let mut take = |name: &str| tensors.remove(name).with_context(|| format!("no tensor {name}"));
        let mut prompts = Vec::new();
        for (i, prompt) in json["prompts"].as_array().into_iter().flatten().enumerate() {
            prompts.push(Prompt {
                ids: serde_json::from_value(prompt["ids"].clone())?,
                rows: serde_json::from_value(prompt["rows"].clone())?,
                logits: take(&format!("prompts.{i}.logits"))?,
                greedy: serde_json::from_value(prompt["greedy"].clone())?,
            });
        }
        ensure!(!prompts.is_empty(), "{} has no prompts", path.display());
        let rows = take("embeddings")?;
        let holds = |key: &str| json[key].as_bool().unwrap_or(true);
        let hidden_size = rows[0].len();
        Ok(Self {
            architecture,
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            is_first: false,
            tolerance: json["tolerance"].as_f64().context("no tolerance")? as f32,
            prompts,
            embeddings: Embeddings { values: rows.concat(), hidden_size },
            embeddings_logits: take("embeddings.logits")?,
            rows_stand_for_ids: holds("rows_stand_for_ids"),
            path,
        })
    }

    /// Prints a line that `cargo xtask golden --check --models` turns into a cell.
    fn report(&self, device: Device, found: std::fmt::Arguments<'_>) {
        println!("golden: {} {} on {device}: {found}", self.architecture, self.name);
    }

    fn max_len(&self) -> usize {
        self.prompts.iter().map(|prompt| prompt.ids.len()).max().unwrap_or(0)
    }

    /// Runs each prompt on its own, `piece` tokens per call; returns the maximum difference of a logit.
    fn difference_in_pieces(&self, model: &dyn CausalLm, piece: usize) -> anyhow::Result<f32> {
        let mut worst = 0.0;
        for prompt in &self.prompts {
            let mut cache = Cache::new(model, 1, prompt.ids.len())?;
            cache.set_final_len(0, prompt.ids.len());
            let mut logits = Vec::new();
            for part in prompt.ids.chunks(piece) {
                logits.extend(cache.push(Input::Ids(part.to_vec()), LogitRows::All)?);
            }
            let kept: Vec<_> = prompt.rows.iter().map(|&row| logits[row].clone()).collect();
            worst = f32::max(worst, difference(&kept, &prompt.logits));
        }
        Ok(worst)
    }

    /// Runs all prompts twice in one ragged batch: first the part before the last `tail` tokens, then those.
    fn difference_in_batch(&self, model: &dyn CausalLm, tail: usize) -> anyhow::Result<f32> {
        let count = 2 * self.prompts.len();
        let prompts: Vec<_> = self.prompts.iter().cycle().take(count).collect();
        let mut cache = Cache::new(model, count, self.max_len())?;
        prompts.iter().enumerate().for_each(|(i, prompt)| cache.set_final_len(i, prompt.ids.len()));
        let split = |prompt: &Prompt| prompt.ids.len().saturating_sub(tail);
        let ids = |part: &[TokenId]| Input::Ids(part.to_vec());
        let heads = prompts.iter().enumerate().filter(|(_, prompt)| split(prompt) > 0);
        let heads = heads.map(|(i, prompt)| (i, ids(&prompt.ids[..split(prompt)]), LogitRows::None));
        cache.forward(heads.collect())?;
        let tails = prompts.iter().enumerate().map(|(i, prompt)| {
            let kept = prompt.rows.iter().filter(|&&row| row >= split(prompt));
            let rows = kept.map(|row| row - split(prompt)).collect();
            (i, ids(&prompt.ids[split(prompt)..]), LogitRows::Rows(rows))
        });
        let found = cache.forward(tails.collect())?;
        let pairs = prompts.iter().zip(&found);
        Ok(pairs.fold(0.0, |worst, (prompt, found)| {
            let wanted = &prompt.logits[prompt.logits.len() - found.len()..];
            f32::max(worst, difference(found, wanted))
        }))
    }

    /// Runs a prompt of embedding rows in two calls, and the rows of ids in place of the ids.
    fn difference_of_embeddings(&self, model: &dyn CausalLm) -> anyhow::Result<f32> {
        let (middle, end) = (self.embeddings.rows() / 2, self.embeddings.rows());
        let mut cache = Cache::new(model, 1, end)?;
        let mut logits = Vec::new();
        for (from, to) in [(0, middle), (middle, end)] {
            let rows = Input::Embeddings(slice(&self.embeddings, from, to));
            logits.extend(cache.push(rows, LogitRows::All)?);
        }
        let mut worst = difference(&logits, &self.embeddings_logits);
        for prompt in self.prompts.iter().filter(|_| self.rows_stand_for_ids) {
            let mut cache = Cache::new(model, 1, prompt.ids.len())?;
            let rows = Input::Embeddings(model.embed(&prompt.ids)?);
            let logits = cache.push(rows, LogitRows::Rows(prompt.rows.clone()))?;
            worst = f32::max(worst, difference(&logits, &prompt.logits));
        }
        Ok(worst)
    }
}

/// Reads the tensors of a safetensors file of f32 matrices, by rows.
fn read_tensors(bytes: &[u8]) -> anyhow::Result<BTreeMap<String, Vec<Vec<f32>>>> {
    let mut tensors = BTreeMap::new();
    for (name, view) in safetensors::SafeTensors::deserialize(bytes)?.tensors() {
        ensure!(
            view.dtype() == safetensors::Dtype::F32 && view.shape().len() == 2,
            "{name} is not an f32 matrix"
        );
        let values: Vec<f32> =
            view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        tensors.insert(name, values.chunks_exact(view.shape()[1]).map(<[f32]>::to_vec).collect());
    }
    Ok(tensors)
}

/// Maximum absolute difference; infinite if a value is NaN.
fn difference(found: &[Vec<f32>], wanted: &[Vec<f32>]) -> f32 {
    assert_eq!(found.len(), wanted.len(), "rows of logits");
    let mut worst = 0.0;
    for (found, wanted) in found.iter().zip(wanted) {
        assert_eq!(found.len(), wanted.len(), "width of the logits");
        for (a, b) in found.iter().zip(wanted) {
            let apart = (a - b).abs();
            worst = if apart.is_nan() { f32::INFINITY } else { f32::max(worst, apart) };
        }
    }
    worst
}

#[test]
fn logits_equal_the_reference_for_every_split() -> anyhow::Result<()> {
    for_each_golden(|golden, device| {
        let model = load(&golden.path, device)?.model;
        let model = model.as_ref();
        let mut ways = vec![
            ("at once", golden.difference_in_pieces(model, usize::MAX)?),
            ("as a batch, last tokens apart", golden.difference_in_batch(model, 1)?),
        ];
        if is_thorough(device) {
            ways.extend([
                ("token by token", golden.difference_in_pieces(model, 1)?),
                ("in fives", golden.difference_in_pieces(model, 5)?),
                ("as a batch", golden.difference_in_batch(model, usize::MAX)?),
                ("as embedding rows", golden.difference_of_embeddings(model)?),
            ]);
        }
        let worst = ways.iter().fold(0.0, |worst, (_, difference)| f32::max(worst, *difference));
        golden.report(device, format_args!("logits {worst:.1e}"));
        for (way, difference) in ways {
            ensure!(difference <= golden.tolerance, "{way}: {difference:e}");
        }
        Ok(())
    })
}

#[test]
fn greedy_tokens_equal_the_reference() -> anyhow::Result<()> {
    for_each_golden(|golden, device| {
        let model = load(&golden.path, device)?.model;
        let mut unlike = Vec::new();
        // On a GPU in software a few steps of one prompt: logits of all prompts are compared above.
        let prompts = if is_thorough(device) { usize::MAX } else { 1 };
        for prompt in golden.prompts.iter().take(prompts) {
            let expected = first(&prompt.greedy, device);
            let tokens = greedy(model.as_ref(), &prompt.ids, expected.len())?;
            if tokens != expected {
                unlike.push(format!("prompt of {}: {tokens:?}, expected {expected:?}", prompt.ids.len()));
            }
        }
        let count = golden.prompts.len().min(prompts);
        let alike = count - unlike.len();
        golden.report(device, format_args!("greedy {alike}/{count}"));
        ensure!(unlike.is_empty(), "{}", unlike.join("; "));
        Ok(())
    })
}

/// Runs a comparison on every golden and device; continues after a failure, so that all are reported.
fn for_each_golden(compare: impl Fn(&Golden, Device) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for device in devices() {
        let _alone = alone(device);
        // A GPU may be a software driver, which takes minutes for a checkpoint.
        let (run, left) = Golden::all()?
            .into_iter()
            .partition::<Vec<_>, _>(|golden| golden.is_first || is_thorough(device));
        if !left.is_empty() {
            println!(
                "{device}: one checkpoint of each architecture; `LM_GOLDENS=all` runs {} more",
                left.len()
            );
        }
        for golden in run {
            if let Err(error) = compare(&golden, device) {
                failed.push(format!("{} on {device}: {error:#}", golden.name));
            }
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Logits of a prompt are bit-identical for a copy that `convert` wrote and for the original quantised on
/// load.
#[test]
fn converted_copy_equals_quantised_load() -> anyhow::Result<()> {
    let format = WeightFormat::Q8;
    for golden in Golden::all()?.into_iter().filter(|golden| golden.name.starts_with("gemma")) {
        let parent = tempfile::tempdir()?;
        let copy = parent.path().join("copy");
        ModelFolder::open(&golden.path)?.convert(&copy, format, &mut |_| {})?;
        let logits = |path: &Path, quantization| -> anyhow::Result<_> {
            let options = LoadOptions { quantization, kv_dtype: KvDtype::F32, ..LoadOptions::default() };
            let loaded = ModelFolder::open(path)?.load(&options, &mut |_| {})?;
            let ids = &golden.prompts[1].ids;
            let mut cache = Cache::new(&*loaded.model, 1, ids.len())?;
            cache.push(Input::Ids(ids.clone()), LogitRows::All)
        };
        let same = logits(&copy, None)? == logits(&golden.path, Some(format))?;
        ensure!(same, "{}: the copy gives other logits", golden.name);
    }
    Ok(())
}

#[test]
fn every_architecture_has_three_goldens() {
    let encoders = encoder_types();
    for architecture in ALL_ARCHITECTURES {
        let is_own = |model_type: &&String| architecture.model_types.contains(&model_type.as_str());
        // Those of encoders are compared by lm-session; Nomic BERT has two settings that matter.
        let (goldens, least) = match architecture.goldens.len() {
            0 => (encoders.iter().filter(is_own).count(), 2),
            goldens => (goldens, 3),
        };
        assert!(goldens >= least, "{:?} has too few goldens", architecture.model_types);
    }
}

/// `model_type` of each folder of `testdata/encoders`.
fn encoder_types() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("testdata/encoders")).expect("is in the repository");
    let configs = folders.filter_map(|folder| std::fs::read(folder.ok()?.path().join("config.json")).ok());
    let model_type = |config: Vec<u8>| {
        let config: serde_json::Value = serde_json::from_slice(&config).expect("JSON");
        config["model_type"].as_str().expect("a text").to_owned()
    };
    configs.map(model_type).collect()
}
