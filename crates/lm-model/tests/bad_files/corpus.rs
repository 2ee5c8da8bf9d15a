//! Common parts of the tables: the files of a good model, one defect, and the expected error.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use lm_formats::FileBytes;
use lm_model::{Error, LoadOptions, LoadedModel, ModelFolder, Result};
use serde_json::Value;

use crate::memory::bounded;

/// File with one defect.
pub struct Bad {
    /// Description of the defect.
    pub what: &'static str,
    pub spoil: fn(&mut Files),
    /// Name of the variant of [`Error`].
    pub error: &'static str,
    /// Texts that the error and its causes contain.
    pub says: &'static [&'static str],
}

/// The files of a model.
#[derive(Clone)]
pub struct Files(pub BTreeMap<String, Vec<u8>>);

pub const TENSORS: &str = "model.safetensors";
/// Size of the length prefix of a safetensors header.
const LENGTH: usize = 8;

pub fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

impl Files {
    /// Reads a folder of `testdata`, without goldens.
    pub fn of(folder: &str) -> Self {
        let entries = fs::read_dir(testdata(folder)).unwrap().map(|entry| entry.unwrap());
        let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
        let files = entries.filter(|entry| !name(entry).starts_with("golden"));
        Self(files.map(|entry| (name(&entry), fs::read(entry.path()).unwrap())).collect())
    }

    pub fn bytes(&mut self, file: &str) -> &mut Vec<u8> {
        self.0.entry(file.to_owned()).or_default()
    }

    /// Changes a JSON file.
    pub fn json(&mut self, file: &str, change: impl FnOnce(&mut Value)) {
        let mut value = self.0.get(file).map_or(Value::Null, |bytes| serde_json::from_slice(bytes).unwrap());
        change(&mut value);
        self.0.insert(file.to_owned(), value.to_string().into_bytes());
    }

    /// Sets a key of `config.json`.
    pub fn set(&mut self, key: &str, value: Value) {
        self.json("config.json", |config| config[key] = value);
    }

    /// Changes the header of a safetensors file; the bytes after it stay.
    pub fn header(&mut self, file: &str, change: impl FnOnce(&mut Value)) {
        let header = header(&self.0[file]);
        let data = self.0[file][header.end..].to_vec();
        let mut value = serde_json::from_slice(&self.0[file][header]).unwrap();
        change(&mut value);
        self.header_text(file, &value.to_string(), &data);
    }

    /// Writes a safetensors file with this header and these bytes.
    pub fn header_text(&mut self, file: &str, header: &str, data: &[u8]) {
        let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat();
        self.0.insert(file.to_owned(), bytes);
    }

    /// Returns the bytes of a tensor.
    pub fn tensor(&mut self, file: &str, name: &str) -> &mut [u8] {
        let bytes = self.bytes(file);
        let header = header(bytes);
        let value: Value = serde_json::from_slice(&bytes[header.clone()]).unwrap();
        let offset = |index: usize| value[name]["data_offsets"][index].as_u64().unwrap() as usize;
        &mut bytes[header.end + offset(0)..header.end + offset(1)]
    }

    pub fn folder(self) -> Result<ModelFolder> {
        let files = self.0.into_iter().map(|(name, bytes)| (name, FileBytes::Owned(bytes.into())));
        ModelFolder::in_memory("bad", files.collect())
    }

    /// Requests everything that a folder provides, and the model last.
    pub fn load(self) -> Result<LoadedModel> {
        let folder = self.folder()?;
        drop((folder.config(), folder.parameters(), folder.footprint(), folder.tensors()));
        drop((folder.tokenizer(), folder.chat_template(), folder.generation_config()));
        folder.load(&LoadOptions::default(), &mut |_| {})
    }
}

fn header(bytes: &[u8]) -> Range<usize> {
    let length = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    LENGTH..LENGTH + length as usize
}

/// Formats an error and its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Expects each row of a table to be rejected as described, and the files to be good without the defect.
pub fn check(good: &Files, table: &[Bad]) {
    good.clone().load().expect("the files that the others are made of are good");
    check_with(good, table, |files| files.load().map(drop));
}

/// The same with another way of loading.
pub fn check_with(good: &Files, table: &[Bad], load: impl Fn(Files) -> Result<()>) {
    let row = |bad: &Bad| {
        let mut files = good.clone();
        (bad.spoil)(&mut files);
        unlike(bad.what, bounded(bad.what, || load(files)), bad.error, bad.says)
    };
    let wrong: Vec<String> = table.iter().filter_map(row).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub fn expect(what: &str, rejected: Error, error: &str, says: &[&str]) {
    let wrong = unlike(what, Err(rejected), error, says);
    assert!(wrong.is_none(), "{wrong:?}");
}

/// Describes how a result differs from the expected error.
fn unlike(what: &str, result: Result<()>, error: &str, says: &[&str]) -> Option<String> {
    let Err(rejected) = result else { return Some(format!("{what}: it loads")) };
    let debug = format!("{rejected:?}");
    // Errors of the crates below have a wrapper each.
    let debug = debug.trim_start_matches("Tokenizer(").trim_start_matches("Format(");
    let variant = debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let message: String = chain(&rejected).chars().take(1000).collect();
    if variant != error {
        return Some(format!("{what}: {variant}, expected {error}: {message}"));
    }
    let unsaid: Vec<_> = says.iter().filter(|word| !message.contains(**word)).collect();
    (!unsaid.is_empty()).then(|| format!("{what}: {message:?} does not say {unsaid:?}"))
}
