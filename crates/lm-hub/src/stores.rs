//! Lookup of models by name in the model stores of several programs.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::cache::{snapshot_files, walk};
use crate::selection::{Weights, gguf_choices};
use crate::settings::{cache_folder, home, path};
use crate::{Cache, Error, ModelName, RepoPath, Result, ollama};

/// A program that stores models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Store {
    /// The cache of `huggingface_hub`, which this crate shares.
    HuggingFace,
    /// LM Studio.
    LmStudio,
    /// Ollama.
    Ollama,
}

/// The folders in which models are looked up. They are only read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelStores {
    /// The Hugging Face cache.
    pub hugging_face: Cache,
    /// LM Studio's folders: `OWNER/NAME/*.gguf` in each.
    pub lm_studio: Vec<PathBuf>,
    /// Ollama's folders: `manifests` and `blobs` in each.
    pub ollama: Vec<PathBuf>,
}

/// A model on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredModel {
    /// The name under which [`ModelStores::find`] finds it.
    pub name: String,
    /// The program that stores it.
    pub store: Store,
    /// The path to load: a folder with safetensors files, or a GGUF file (the first one of a split model).
    pub path: PathBuf,
    /// GGUF file with the model's vision tower (`mmproj`), if the store keeps it apart from the model.
    pub projector: Option<PathBuf>,
    /// Bytes of its files, without an `mmproj` file.
    pub bytes: u64,
}

impl Store {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::HuggingFace => "Hugging Face",
            Self::LmStudio => "LM Studio",
            Self::Ollama => "Ollama",
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ModelStores {
    /// The default folders of this user: `HF_HUB_CACHE` or `HF_HOME`, `OLLAMA_MODELS` or `~/.ollama/models`,
    /// `~/.lmstudio/models` and `~/.cache/lm-studio/models`.
    ///
    /// # Errors
    /// [`Error::NoCacheFolder`].
    pub fn from_env() -> Result<Self> {
        let variable = |name: &str| -> Option<OsString> { env::var_os(name) };
        let hugging_face = Cache::new(cache_folder(&variable).ok_or(Error::NoCacheFolder)?);
        let at_home = |below: &str| home(&variable).map(|home| home.join(below));
        let ollama = match path(&variable, "OLLAMA_MODELS") {
            Some(folder) => vec![folder],
            // The second is the folder of the Linux system service.
            None => at_home(".ollama/models")
                .into_iter()
                .chain([PathBuf::from("/usr/share/ollama/.ollama/models")])
                .collect(),
        };
        let lm_studio = [".lmstudio/models", ".cache/lm-studio/models"].into_iter().filter_map(at_home);
        Ok(Self { hugging_face, lm_studio: lm_studio.collect(), ollama })
    }

    /// Finds a model by name: in the Hugging Face cache, else in LM Studio's folders, else in Ollama's.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no store has it; [`Error::SeveralModels`] or [`Error::NoSuchFile`] when it
    /// has several GGUF files and the name selects none; [`Error::NoWeightsHere`] when its weights were not
    /// downloaded; [`Error::Io`] and [`Error::Damaged`].
    pub fn find(&self, name: &ModelName) -> Result<StoredModel> {
        let found = match self.in_cache(name)? {
            Some(found) => Some(found),
            None => self.in_lm_studio(name)?,
        };
        let found = match found {
            Some(found) => Some(found),
            None => self.in_ollama(name)?,
        };
        found.ok_or_else(|| Error::NotFound { name: name.to_string(), search_path: self.search_path() })
    }

    /// All folders, in search order.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let cache = self.hugging_face.root().to_owned();
        [cache].into_iter().chain(self.lm_studio.iter().cloned()).chain(self.ollama.iter().cloned()).collect()
    }

    /// Lists every model of every store, sorted by store and name. Each GGUF model of a repository is an
    /// entry.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Damaged`].
    pub fn list(&self) -> Result<Vec<StoredModel>> {
        let mut models = Vec::new();
        for model in self.hugging_face.models()? {
            for snapshot in &model.snapshots {
                let sizes: Vec<_> =
                    snapshot.files.iter().map(|file| (file.path.clone(), file.bytes)).collect();
                let revision = if snapshot.revisions.iter().any(|known| known == "main") {
                    None
                } else {
                    Some(snapshot.revisions.first().unwrap_or(&snapshot.commit).clone())
                };
                let name = ModelName { repo: model.repo.clone(), file: None, revision };
                models.extend(models_of(Store::HuggingFace, &name, &snapshot.folder, &sizes));
            }
        }
        for root in &self.lm_studio {
            models.extend(lm_studio_models(root)?);
        }
        for root in &self.ollama {
            models.extend(ollama::models(root)?);
        }
        models.sort_by(|a, b| (a.store, &a.name).cmp(&(b.store, &b.name)));
        Ok(models)
    }

    fn in_cache(&self, name: &ModelName) -> Result<Option<StoredModel>> {
        let Some(folder) = self.hugging_face.snapshot(&name.repo, name.revision.as_deref())? else {
            return Ok(None);
        };
        let files = snapshot_files(&folder)?;
        // A link whose blob is missing is not a file.
        let present = files.into_iter().filter(|file| file.path.under(&folder).exists());
        chosen(
            Store::HuggingFace,
            name,
            &folder,
            &present.map(|file| (file.path, file.bytes)).collect::<Vec<_>>(),
        )
        .map(Some)
    }

    fn in_lm_studio(&self, name: &ModelName) -> Result<Option<StoredModel>> {
        let Some(owner) = name.repo.owner().filter(|_| name.revision.is_none()) else { return Ok(None) };
        for root in &self.lm_studio {
            let folder = root.join(owner).join(name.repo.name());
            if folder.is_dir() {
                return chosen(Store::LmStudio, name, &folder, &sizes(&folder)?).map(Some);
            }
        }
        Ok(None)
    }

    fn in_ollama(&self, name: &ModelName) -> Result<Option<StoredModel>> {
        if name.revision.is_some() {
            return Ok(None);
        }
        for root in &self.ollama {
            if let Some(found) = ollama::find(root, name)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Selects the one model that a name refers to among the files of a folder.
fn chosen(store: Store, name: &ModelName, folder: &Path, files: &[(RepoPath, u64)]) -> Result<StoredModel> {
    let paths: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
    let weights = Weights::select(name, &paths).map_err(|error| match error {
        Error::NoWeights { .. } => Error::NoWeightsHere { name: name.to_string(), place: folder.to_owned() },
        other => other,
    })?;
    let (path, parts) = match &weights {
        Weights::Safetensors(_) => (folder.to_owned(), weights.with_texts(&paths)),
        Weights::Gguf(choice) => (choice.file.under(folder), choice.parts.clone()),
    };
    Ok(StoredModel { name: name.to_string(), store, path, projector: None, bytes: sum(files, &parts) })
}

/// Lists the models among the files of a repository.
fn models_of(store: Store, name: &ModelName, folder: &Path, files: &[(RepoPath, u64)]) -> Vec<StoredModel> {
    let paths: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
    let choices = gguf_choices(&paths);
    let alone = chosen(store, name, folder, files).ok();
    // The only GGUF model needs no file in its name.
    let named = choices.iter().filter(|_| choices.len() > 1 || alone.is_none()).map(|choice| StoredModel {
        name: ModelName { file: Some(choice.file.to_string()), ..name.clone() }.to_string(),
        store,
        path: choice.file.under(folder),
        projector: None,
        bytes: sum(files, &choice.parts),
    });
    let named: Vec<_> = named.collect();
    alone.into_iter().chain(named).collect()
}

fn lm_studio_models(root: &Path) -> Result<Vec<StoredModel>> {
    let mut folders: Vec<(String, Vec<(RepoPath, u64)>)> = Vec::new();
    for (path, bytes) in sizes(root)? {
        let Some((repo, rest)) =
            path.as_str().match_indices('/').nth(1).map(|(at, _)| path.as_str().split_at(at))
        else {
            continue;
        };
        let Ok(rest) = RepoPath::parse(&rest[1..]) else { continue };
        match folders.last_mut().filter(|(last, _)| last == repo) {
            Some((_, files)) => files.push((rest, bytes)),
            None => folders.push((repo.to_owned(), vec![(rest, bytes)])),
        }
    }
    let models = folders.iter().filter_map(|(repo, files)| {
        let name = ModelName { repo: repo.parse().ok()?, file: None, revision: None };
        Some(models_of(Store::LmStudio, &name, &root.join(repo), files))
    });
    Ok(models.flatten().collect())
}

/// Lists the files below a folder with their sizes.
fn sizes(folder: &Path) -> Result<Vec<(RepoPath, u64)>> {
    let size = |path: &RepoPath| path.under(folder).metadata().map_or(0, |metadata| metadata.len());
    Ok(walk(folder)?.into_iter().map(|path| (path.clone(), size(&path))).collect())
}

fn sum(files: &[(RepoPath, u64)], parts: &[RepoPath]) -> u64 {
    let size = |part: &RepoPath| files.iter().find(|(path, _)| path == part).map_or(0, |(_, bytes)| *bytes);
    parts.iter().fold(0, |sum, part| sum.saturating_add(size(part)))
}
