//! Models already on the machine: lookup by name, listing, and removal from the cache.

use std::fs;
use std::path::{Path, PathBuf};

use lm_hub::{Cache, Error, ModelName, ModelStores, Result, Store, StoredModel};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba98";

struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a temporary folder") }
    }

    fn stores(&self) -> ModelStores {
        ModelStores {
            hugging_face: Cache::new(self.root.path().join("hub")),
            lm_studio: vec![self.root.path().join("lmstudio")],
            ollama: vec![self.root.path().join("ollama")],
        }
    }

    fn write(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
        fs::write(&path, content).expect("can be written");
        path
    }

    /// A file of a snapshot, in the layout of `huggingface_hub`.
    #[cfg(unix)]
    fn cached(&self, repo: &str, commit: &str, file: &str, etag: &str, content: &[u8]) {
        let folder = format!("hub/models--{}", repo.replace('/', "--"));
        self.write(&format!("{folder}/blobs/{etag}"), content);
        let link = self.root.path().join(format!("{folder}/snapshots/{commit}/{file}"));
        fs::create_dir_all(link.parent().expect("a folder")).expect("can be made");
        let up = "../".repeat(file.split('/').count() + 1);
        std::os::unix::fs::symlink(format!("{up}blobs/{etag}"), link).expect("can be made");
    }

    fn set_ref(&self, repo: &str, revision: &str, commit: &str) {
        self.write(&format!("hub/models--{}/refs/{revision}", repo.replace('/', "--")), commit.as_bytes());
    }

    fn find(&self, name: &str) -> Result<StoredModel> {
        self.stores().find(&name.parse()?)
    }

    fn ollama(&self, manifest: &str, digest: &str, weights: Option<&[u8]>) {
        let layers = format!(
            r#"{{"schemaVersion": 2, "config": {{"digest": "sha256:0"}}, "layers": [
                {{"mediaType": "application/vnd.ollama.image.model", "digest": "{digest}", "size": 1}},
                {{"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:1", "size": 1}}]}}"#
        );
        self.write(&format!("ollama/manifests/{manifest}"), layers.as_bytes());
        if let Some(weights) = weights {
            self.write(&format!("ollama/blobs/{}", digest.replace(':', "-")), weights);
        }
    }

    fn names(&self) -> Vec<(Store, String, u64)> {
        let models = self.stores().list().expect("can be listed");
        models.into_iter().map(|model| (model.store, model.name, model.bytes)).collect()
    }
}

#[cfg(unix)]
#[test]
fn cache_of_another_program_is_read() {
    let machine = Machine::new();
    machine.cached("a/b", COMMIT, "config.json", "c1", b"{}");
    assert!(matches!(machine.find("a/b"), Err(Error::NotFound { .. })), "no branch is known");
    machine.set_ref("a/b", "main", COMMIT);
    assert!(matches!(machine.find("a/b"), Err(Error::NoWeightsHere { .. })));
    machine.cached("a/b", COMMIT, "model.safetensors", "w1", b"weights");
    let found = machine.find("a/b").expect("is there");
    let snapshot = machine.root.path().join("hub/models--a--b/snapshots").join(COMMIT);
    assert_eq!((found.store, found.path.as_path(), found.bytes), (Store::HuggingFace, snapshot.as_path(), 9));
    assert_eq!(machine.find(&format!("a/b@{COMMIT}")).expect("is there").path, snapshot);
    // The blob is missing, its link is not.
    fs::remove_file(machine.root.path().join("hub/models--a--b/blobs/w1")).expect("is there");
    assert!(matches!(machine.find("a/b"), Err(Error::NoWeightsHere { .. })));
}

#[test]
fn ollama_models_are_found_by_name_and_tag() {
    let machine = Machine::new();
    let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
    machine.ollama("registry.ollama.ai/library/llama3.2/1b", &digest("a"), Some(b"GGUF a"));
    machine.ollama("registry.ollama.ai/library/llama3.2/latest", &digest("b"), Some(b"GGUF bb"));
    machine.ollama("registry.ollama.ai/someone/tuned/latest", &digest("a"), Some(b"GGUF a"));
    machine.ollama("hf.co/a/b-GGUF/Q4_K_M", &digest("a"), Some(b"GGUF a"));
    for (name, letter) in
        [("llama3.2:1b", "a"), ("llama3.2", "b"), ("someone/tuned", "a"), ("hf.co/a/b-GGUF:Q4_K_M", "a")]
    {
        let found = machine.find(name).expect(name);
        assert_eq!(found.store, Store::Ollama);
        assert!(
            found.path.ends_with(format!("ollama/blobs/sha256-{}", letter.repeat(64))),
            "{:?}",
            found.path
        );
    }
    assert!(matches!(machine.find("llama3.2:3b"), Err(Error::NotFound { .. })));
    let expected = [("a/b-GGUF:Q4_K_M", 6), ("llama3.2", 7), ("llama3.2:1b", 6), ("someone/tuned", 6)];
    assert_eq!(machine.names(), expected.map(|(name, bytes)| (Store::Ollama, name.to_owned(), bytes)));
    // Listed models are found by their listed name.
    for (_, name, _) in machine.names() {
        machine.find(&name).expect(&name);
    }
}

#[test]
fn ollama_projector_is_found() {
    let machine = Machine::new();
    let [weights, projector] = ["a", "b"].map(|letter| letter.repeat(64));
    let manifest = format!(
        r#"{{"layers": [
            {{"mediaType": "application/vnd.ollama.image.projector", "digest": "sha256:{projector}"}},
            {{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:{weights}"}}]}}"#
    );
    machine.write("ollama/manifests/registry.ollama.ai/library/see/latest", manifest.as_bytes());
    machine.write(&format!("ollama/blobs/sha256-{weights}"), b"GGUF");
    assert_eq!(machine.find("see").expect("is there").projector, None, "its blob is gone");
    let blob = machine.write(&format!("ollama/blobs/sha256-{projector}"), b"GGUF");
    let found = machine.find("see").expect("is there");
    assert_eq!((found.bytes, found.projector), (4, Some(blob)));
}

#[test]
fn invalid_manifests_are_rejected() {
    let machine = Machine::new();
    for digest in ["sha256:../../secret", "sha256:", "md5:00", &format!("sha256:{}", "A".repeat(64))] {
        machine.ollama("registry.ollama.ai/library/x/latest", digest, None);
        assert!(matches!(machine.find("x"), Err(Error::Damaged { .. })), "{digest}");
    }
    machine.ollama("registry.ollama.ai/library/x/latest", &format!("sha256:{}", "a".repeat(64)), None);
    assert!(matches!(machine.find("x"), Err(Error::Io { .. })), "the blob is gone");
    for content in ["", "{}", "[", r#"{"layers": []}"#, &format!("{{\"layers\": [{}]}}", " ".repeat(2 << 20))]
    {
        machine.write("ollama/manifests/registry.ollama.ai/library/x/latest", content.as_bytes());
        assert!(matches!(machine.find("x"), Err(Error::Damaged { .. })));
    }
    assert_eq!(machine.names(), [], "an unreadable one is omitted");
}

#[test]
fn lm_studio_models_are_found_by_owner_and_name() {
    let machine = Machine::new();
    let one = machine.write("lmstudio/a/one-GGUF/one-Q4_K_M.gguf", b"GGUF");
    let big = machine.write("lmstudio/a/two-GGUF/two-Q8_0.gguf", b"GGUF.8");
    machine.write("lmstudio/a/two-GGUF/two-Q4_0.gguf", b"GGUF4");
    machine.write("lmstudio/a/two-GGUF/mmproj-two.gguf", b"GGUF");
    machine.write("lmstudio/stray.gguf", b"GGUF");
    assert_eq!(machine.find("a/one-GGUF").expect("is there").path, one);
    assert_eq!(machine.find("a/two-GGUF:q8_0").expect("is there").path, big);
    assert!(matches!(machine.find("a/two-GGUF"), Err(Error::SeveralModels { .. })));
    let names = ["a/one-GGUF", "a/two-GGUF:two-Q4_0.gguf", "a/two-GGUF:two-Q8_0.gguf"];
    assert_eq!(machine.names().into_iter().map(|(_, name, _)| name).collect::<Vec<_>>(), names);
    for name in names {
        machine.find(name).expect(name);
    }
}

#[cfg(unix)]
#[test]
fn removal_deletes_only_unshared_blobs() {
    let machine = Machine::new();
    machine.cached("a/b", COMMIT, "model.safetensors", "old", &[0; 100]);
    machine.cached("a/b", OTHER, "model.safetensors", "new", &[0; 200]);
    machine.cached("a/b", COMMIT, "config.json", "both", b"{}");
    machine.cached("a/b", OTHER, "config.json", "both", b"{}");
    machine.set_ref("a/b", "v1", COMMIT);
    machine.set_ref("a/b", "main", OTHER);
    let cache = machine.stores().hugging_face;
    let removal = |name: &str| cache.removal(&name.parse::<ModelName>().expect(name));
    assert_eq!(removal("a/b").expect("is there").bytes, 302);
    let old = removal("a/b@v1").expect("is there");
    assert_eq!(old.bytes, 100);
    assert!(machine.find("a/b@v1").is_ok(), "nothing has gone yet");
    old.execute().expect("can be removed");
    assert!(matches!(machine.find("a/b@v1"), Err(Error::NotFound { .. })));
    assert_eq!(machine.find("a/b").expect("is untouched").bytes, 202);
    assert!(matches!(removal("a/b@v1"), Err(Error::NotFound { .. })));
    removal("a/b").expect("is there").execute().expect("can be removed");
    assert_eq!(machine.names(), []);
    assert!(matches!(removal("a/b"), Err(Error::NotFound { .. })));
    assert!(Path::new(cache.root()).is_dir(), "the cache itself stays");
}

#[cfg(unix)]
#[test]
fn one_gguf_model_is_removed_with_its_parts() {
    let machine = Machine::new();
    for (file, etag) in [
        ("m-Q4_0.gguf", "q4"),
        ("m-Q8_0-00001-of-00002.gguf", "q81"),
        ("m-Q8_0-00002-of-00002.gguf", "q82"),
        ("mmproj-BF16.gguf", "tower"),
    ] {
        machine.cached("a/b", COMMIT, file, etag, &[0; 10]);
    }
    machine.set_ref("a/b", "main", COMMIT);
    let cache = machine.stores().hugging_face;
    let removal = cache.removal(&"a/b:Q8_0".parse().expect("a name")).expect("is there");
    assert_eq!((removal.bytes, removal.paths.len()), (20, 4));
    removal.execute().expect("can be removed");
    assert_eq!(machine.names(), [(Store::HuggingFace, "a/b".to_owned(), 10)]);
    // The vision tower goes with the last model.
    let removal = cache.removal(&"a/b:Q4_0".parse().expect("a name")).expect("is there");
    assert_eq!((removal.bytes, removal.paths.len()), (20, 4));
}

#[cfg(unix)]
#[test]
fn bytes_shared_with_other_repositories_are_kept_and_reported() {
    let machine = Machine::new();
    machine.cached("a/b", COMMIT, "config.json", "c", b"{}");
    let shared = machine.write("hub/blobs/ab/abcd", &[0; 50]);
    let blob = machine.root.path().join("hub/models--a--b/blobs/w");
    std::os::unix::fs::symlink("../../blobs/ab/abcd", &blob).expect("can be made");
    let link = machine.root.path().join(format!("hub/models--a--b/snapshots/{COMMIT}/model.safetensors"));
    std::os::unix::fs::symlink("../../blobs/w", link).expect("can be made");
    machine.set_ref("a/b", "main", COMMIT);
    assert_eq!(machine.find("a/b").expect("is there").bytes, 52);
    let removal = machine.stores().hugging_face.removal(&"a/b".parse().expect("a name")).expect("is there");
    assert_eq!((removal.bytes, removal.shared_bytes), (2, 50));
    removal.execute().expect("can be removed");
    assert!(shared.exists());
}

#[cfg(unix)]
#[test]
fn cyclic_links_between_folders_are_bounded() {
    let machine = Machine::new();
    machine.write("lmstudio/a/b/x.gguf", b"GGUF");
    std::os::unix::fs::symlink(machine.root.path(), machine.root.path().join("lmstudio/a/loop"))
        .expect("a link");
    assert_eq!(machine.names().len(), 1);
    assert_eq!(Machine::new().names(), [], "no folder is there at all");
}
