//! The pack cache: entries give bit-identical results, stale or corrupt ones are replaced, and writers
//! exclude each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::common::{Random, TinyModel, for_each_thorough_device, load_with, logits_of};
use lm_model::{Device, KvDtype, LoadOptions, LoadProgress, ModelFolder, WeightFormat};
use tempfile::TempDir;

fn options(cache: Option<&Path>, format: WeightFormat) -> LoadOptions {
    LoadOptions {
        quantization: Some(format),
        kv_dtype: KvDtype::F32,
        pack_cache: cache.map(Path::to_owned),
        ..LoadOptions::default()
    }
}

/// A cache and how to use it.
struct Cache(TempDir);

/// Result of a load.
#[derive(PartialEq, Debug)]
struct Loaded {
    logits: Vec<Vec<f32>>,
    /// Maximum bytes that the load's progress reported: those of the source if it was read.
    most_bytes: u64,
}

impl Cache {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn load(&self, model: &Path) -> Loaded {
        load(model, Some(self.0.path()))
    }

    /// Path of the single entry.
    fn entry(&self) -> PathBuf {
        let entries: Vec<_> =
            self.files().into_iter().filter(|name| name.ends_with(".safetensors")).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        self.0.path().join(&entries[0])
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(self.0.path()).expect("is there");
        files.map(|file| file.expect("can be read").file_name().to_string_lossy().into_owned()).collect()
    }
}

fn load(model: &Path, cache: Option<&Path>) -> Loaded {
    let mut most_bytes = 0;
    let mut see = |step: LoadProgress| most_bytes = most_bytes.max(step.total_bytes);
    let folder = ModelFolder::open(model).expect("is there");
    let loaded = folder.load(&options(cache, WeightFormat::Q4), &mut see).expect("loads");
    Loaded { logits: logits_of(&*loaded.model, &Random(4).ids(20)), most_bytes }
}

#[test]
fn source_converted_and_cached_models_are_equal() {
    for model in [TinyModel::qwen3(), TinyModel::llama()] {
        let (source, parent, cache) = (model.write(), Cache::new(), Cache::new());
        for format in [WeightFormat::Q8, WeightFormat::Q4] {
            let converted = parent.0.path().join(format.to_string());
            let folder = ModelFolder::open(source.path()).expect("is there");
            folder.convert(&converted, format, &mut |_| {}).expect("it can be converted");
            for_each_thorough_device(|device| {
                let logits = |path: &Path, cache: Option<&Path>| {
                    let loaded = load_with(path, &LoadOptions { device, ..options(cache, format) });
                    assert_eq!(loaded.model.info().format, format);
                    logits_of(&*loaded.model, &Random(5).ids(20))
                };
                let expected = logits(source.path(), None);
                assert_eq!(logits(&converted, None), expected, "{device} {format}: converted");
                for time in ["first", "second"] {
                    let cached = logits(source.path(), Some(cache.0.path()));
                    assert_eq!(cached, expected, "{device} {format}: {time} load with a cache");
                }
            });
        }
        assert_eq!(cache.files().len(), 4, "an entry and a lock for each format: {:?}", cache.files());
    }
}

#[test]
fn second_load_reads_only_the_cache() {
    let (source, cache) = (TinyModel::qwen3().write_sharded(), Cache::new());
    let without = load(source.path(), None);
    let first = cache.load(source.path());
    assert_eq!(first, without);
    let written = fs::metadata(cache.entry()).and_then(|entry| entry.modified()).expect("a time");
    let second = cache.load(source.path());
    assert_eq!(second.logits, without.logits);
    assert!(second.most_bytes < without.most_bytes / 3, "{} of {}", second.most_bytes, without.most_bytes);
    assert_eq!(fs::metadata(cache.entry()).and_then(|entry| entry.modified()).expect("a time"), written);
}

#[test]
fn damaged_entry_is_replaced() {
    let (source, cache) = (TinyModel::qwen3().write(), Cache::new());
    let expected = cache.load(source.path());
    let entry = cache.entry();
    let good = fs::read(&entry).expect("was written");
    let damage = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        // By renaming: no reader may see a mapped file change.
        fs::write(entry.with_extension("damaged"), bytes).expect("can be written");
        fs::rename(entry.with_extension("damaged"), &entry).expect("can be renamed");
        assert_eq!(cache.load(source.path()), expected, "the source was read again");
        assert_eq!(fs::read(&entry).expect("was written again"), good);
    };
    damage(&|bytes| bytes.clear());
    damage(&|bytes| bytes.truncate(bytes.len() - 1));
    damage(&|bytes| bytes[..200].fill(b'x'));
    // Zeros are valid quants and scales: only the checksum detects them.
    damage(&|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0);
    });
    damage(&|bytes| *bytes.last_mut().expect("not empty") ^= 1);
}

#[test]
fn entry_of_other_weights_is_replaced() {
    let cache = Cache::new();
    let mut model = TinyModel::qwen3();
    let source = model.write();
    let before = cache.load(source.path());
    let weights = source.path().join("model.safetensors");
    let age = fs::metadata(&weights).and_then(|file| file.modified()).expect("a time");
    for tensor in model.tensors.values_mut().filter(|tensor| tensor.shape.len() == 2) {
        tensor.values.reverse();
    }
    model.write_tensors(&weights, |_| true);
    // At any resolution of the file system's clock.
    let file = fs::File::options().write(true).open(&weights).expect("was written");
    file.set_modified(age + std::time::Duration::from_secs(2)).expect("can be set");
    let after = cache.load(source.path());
    assert_ne!(after.logits, before.logits);
    assert_eq!(after, load(source.path(), None));
    assert_eq!(cache.load(source.path()).logits, after.logits);
    cache.entry();
}

#[test]
fn folders_of_equal_name_have_separate_entries() {
    let (cache, parents) = (Cache::new(), [Cache::new(), Cache::new()]);
    let mut model = TinyModel::qwen3();
    for parent in &parents {
        let folder = parent.0.path().join("model");
        fs::create_dir(&folder).expect("can be made");
        model.write_without_tensors(&folder);
        model.write_tensors(&folder.join("model.safetensors"), |_| true);
        assert_eq!(cache.load(&folder), load(&folder, None));
        model = TinyModel::from_config(model.config);
        model.tensors.values_mut().for_each(|tensor| tensor.values.reverse());
    }
    assert_eq!(cache.files().len(), 4, "{:?}", cache.files());
}

#[test]
fn concurrent_writers_do_not_interfere() {
    let (source, cache) = (TinyModel::qwen3().write(), Cache::new());
    let expected = load(source.path(), None).logits;
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(cache.load(source.path()).logits, expected));
        }
    });
    assert_eq!(cache.files().len(), 2, "an entry and its lock: {:?}", cache.files());
    assert!(cache.load(source.path()).most_bytes < load(source.path(), None).most_bytes);
}

#[test]
fn killed_writer_is_replaced_and_held_lock_is_skipped() {
    let (source, cache) = (TinyModel::qwen3().write(), Cache::new());
    let expected = cache.load(source.path());
    let entry = cache.entry();
    fs::remove_file(&entry).expect("was written");
    fs::write(entry.with_extension("unfinished"), vec![1; 1 << 20]).expect("can be written");
    let lock = fs::File::open(entry.with_extension("lock")).expect("was written");
    lock.lock().expect("it is free");
    assert_eq!(cache.load(source.path()), expected);
    assert!(!entry.exists(), "the one who has the lock writes it");
    drop(lock);
    assert_eq!(cache.load(source.path()), expected);
    assert_eq!(cache.load(source.path()).logits, expected.logits);
    assert_eq!(cache.files().len(), 2, "{:?}", cache.files());
}

#[test]
fn unwritable_cache_is_skipped() {
    let source = TinyModel::qwen3().write();
    let file = source.path().join("config.json");
    assert_eq!(load(source.path(), Some(&file)), load(source.path(), None));
    let embedded = ModelFolder::embedded("none", &[]);
    assert!(embedded.load(&options(Some(&file), WeightFormat::Q4), &mut |_| {}).is_err(), "it has no files");
}

#[test]
fn unquantised_load_writes_no_cache() {
    let (source, cache) = (TinyModel::qwen3().write(), Cache::new());
    for quantization in [None, Some(WeightFormat::F16)] {
        load_with(
            source.path(),
            &LoadOptions { quantization, ..options(Some(cache.0.path()), WeightFormat::Q4) },
        );
    }
    assert_eq!(cache.files(), Vec::<String>::new());
    assert_eq!(LoadOptions::default().pack_cache, None);
    assert_eq!(LoadOptions::default().device, Device::Cpu);
}
