//! Ollama's model store: `manifests/HOST/OWNER/NAME/TAG` list the layers of a model, and `blobs/sha256-…`
//! contain them. The layer with the weights is a GGUF file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cache::{is_hex, walk};
use crate::settings::read_short;
use crate::{Error, ModelName, RepoPath, Result, Store, StoredModel};

const REGISTRY: &str = "registry.ollama.ai";
/// Owner of the models that are named without one.
const LIBRARY: &str = "library";
const LATEST: &str = "latest";
/// Hosts of models pulled from the Hugging Face hub.
const HUBS: [&str; 2] = ["hf.co", "huggingface.co"];
const WEIGHTS: &str = "application/vnd.ollama.image.model";
/// Vision tower and projector of a model (`mmproj`).
const PROJECTOR: &str = "application/vnd.ollama.image.projector";
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
struct Manifest {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

/// Finds a model by name in this folder.
pub(crate) fn find(root: &Path, name: &ModelName) -> Result<Option<StoredModel>> {
    let tag = name.file.as_deref().unwrap_or(LATEST);
    let hosts = match name.repo.owner() {
        Some(_) => [REGISTRY].iter().chain(&HUBS),
        None => [REGISTRY].iter().chain(&[]),
    };
    let owner = name.repo.owner().unwrap_or(LIBRARY);
    for host in hosts {
        let manifest = root.join("manifests").join(host).join(owner).join(name.repo.name()).join(tag);
        if manifest.is_file() {
            return read(root, &manifest, name.to_string()).map(Some);
        }
    }
    Ok(None)
}

/// Lists all models of the folder.
pub(crate) fn models(root: &Path) -> Result<Vec<StoredModel>> {
    let manifests = root.join("manifests");
    let mut models = Vec::new();
    for path in walk(&manifests)? {
        let Some(name) = shown_name(&path) else { continue };
        // An unreadable manifest does not hide the others.
        match read(root, &path.under(&manifests), name) {
            Ok(model) => models.push(model),
            Err(error) => tracing::warn!(%error, "a manifest is skipped"),
        }
    }
    Ok(models)
}

/// The name under which [`find`] finds the manifest at this path.
fn shown_name(path: &RepoPath) -> Option<String> {
    let [host, owner, name, tag] = path.as_str().split('/').collect::<Vec<_>>().try_into().ok()?;
    let repo = match (host, owner) {
        (REGISTRY, LIBRARY) => name.to_owned(),
        (REGISTRY, _) => format!("{owner}/{name}"),
        _ if HUBS.contains(&host) => format!("{owner}/{name}"),
        _ => return None,
    };
    let shown = if tag == LATEST { repo } else { format!("{repo}:{tag}") };
    shown.parse::<ModelName>().is_ok().then_some(shown)
}

fn read(root: &Path, path: &Path, name: String) -> Result<StoredModel> {
    let damaged = |what: String| Error::Damaged { path: path.to_owned(), what };
    let text = read_short(path, MAX_MANIFEST_BYTES)?;
    let Manifest { layers } = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    let blobs = |kind: &'static str| {
        let layers = layers.iter().filter(move |layer| layer.media_type == kind);
        layers.map(|layer| blob(root, &layer.digest)).collect::<Result<Vec<_>, _>>().map_err(damaged)
    };
    let Ok([weights]) = <[PathBuf; 1]>::try_from(blobs(WEIGHTS)?) else {
        return Err(damaged("expected exactly one layer of weights".to_owned()));
    };
    let mut projectors = blobs(PROJECTOR)?;
    let projector = projectors.pop().filter(|file| projectors.is_empty() && file.is_file());
    let bytes = fs::metadata(&weights).map_err(Error::io(&weights))?.len();
    Ok(StoredModel { name, store: Store::Ollama, path: weights, projector, bytes })
}

/// Path of the blob with this digest.
///
/// # Errors
/// Description of the fault of the digest.
fn blob(root: &Path, digest: &str) -> Result<PathBuf, String> {
    let sum = digest.strip_prefix("sha256:").filter(|sum| sum.len() == 64 && is_hex(sum));
    let sum = sum.ok_or_else(|| format!("the digest is {digest:?}"))?;
    Ok(root.join("blobs").join(format!("sha256-{sum}")))
}
