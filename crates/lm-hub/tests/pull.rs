//! Downloads from a hub on loopback, with faults of networks, disks and hubs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lm_hub::testing::{Access, Fault, HubServer, Storage, TOKEN, TestFile, TestRepo};
use lm_hub::{Cache, Check, Error, Hub, HubSettings, ModelStores, Network, Result, Token};

const NAME: &str = "owner/tiny";
const WEIGHTS: &str = "model.safetensors";

struct Setup {
    server: HubServer,
    cache: tempfile::TempDir,
}

/// Pseudo-random bytes.
fn weights() -> Vec<u8> {
    (0..200_003_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn tiny() -> TestRepo {
    let files = vec![
        TestFile::text("README.md", "---\nlicense: mit\n---\n"),
        TestFile::text("config.json", "{\"model_type\": \"llama\"}"),
        TestFile::large(WEIGHTS, weights()),
        TestFile::text("sub dir/notes ü.txt", "not needed"),
        TestFile::large("pytorch_model.bin", vec![1; 10]),
    ];
    TestRepo::new(NAME, files)
}

impl Setup {
    fn new(repo: TestRepo) -> Self {
        Self {
            server: HubServer::start(vec![repo]).expect("a port"),
            cache: tempfile::tempdir().expect("a folder"),
        }
    }

    fn settings(&self) -> HubSettings {
        let settings = HubSettings::new(self.server.url(), Cache::new(self.cache.path()));
        HubSettings { retries: 2, retry_pause: Duration::ZERO, ..settings }
    }

    fn pull(&self, name: &str) -> Result<PathBuf> {
        self.pull_with(self.settings(), name)
    }

    fn pull_with(&self, settings: HubSettings, name: &str) -> Result<PathBuf> {
        let hub = Hub::new(settings)?;
        hub.fetch(&hub.plan(&name.parse()?)?, &mut |_| {})
    }

    fn blobs(&self) -> Vec<String> {
        let folder = self.cache.path().join("models--owner--tiny/blobs");
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let names = entries.map(|entry| entry.expect("readable").file_name().into_string().expect("text"));
        names.collect()
    }

    /// The `Range` headers of the requests for the bytes of large files.
    fn ranges(&self) -> Vec<Option<String>> {
        self.server.seen().into_iter().filter(|seen| seen.at_files).map(|seen| seen.range).collect()
    }
}

fn assert_whole(model: &Path) {
    assert!(fs::read(model.join(WEIGHTS)).expect("is there") == weights(), "other bytes");
}

#[test]
fn pulled_model_has_the_huggingface_layout() {
    let setup = Setup::new(tiny());
    let hub = Hub::new(setup.settings()).expect("settings are good");
    let pull = hub.plan(&NAME.parse().expect("a name")).expect("the hub answers");
    let paths: Vec<_> = pull.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["README.md", "config.json", WEIGHTS]);
    assert_eq!(
        pull.files.iter().map(|file| file.check()).collect::<Vec<_>>(),
        [Check::GitSha1, Check::GitSha1, Check::Sha256]
    );
    let mut seen = Vec::new();
    let model = hub.fetch(&pull, &mut |progress| seen.push((progress.done_bytes, progress.total_bytes)));
    let model = model.expect("is downloaded");
    assert_whole(&model);
    assert_eq!(seen.last(), Some(&(pull.bytes(), pull.bytes())));
    assert!(seen.is_sorted(), "progress goes back without a reason");

    let root = setup.cache.path().join("models--owner--tiny");
    let repo = tiny();
    assert_eq!(model, root.join("snapshots").join(&repo.commit));
    assert_eq!(fs::read_to_string(root.join("refs/main")).expect("is there"), repo.commit);
    for file in repo.files.iter().filter(|file| paths.contains(&file.path.as_str())) {
        let blob = root.join("blobs").join(file.etag());
        assert_eq!(fs::read(&blob).expect("is there"), file.bytes);
        #[cfg(unix)]
        assert_eq!(
            fs::read_link(model.join(&file.path)).expect("is a link"),
            Path::new("../../blobs").join(file.etag())
        );
    }
    assert_eq!(setup.blobs().len(), 3, "nothing else is there: {:?}", setup.blobs());
}

#[test]
fn complete_files_are_not_downloaded_again() {
    let setup = Setup::new(tiny());
    setup.pull(NAME).expect("is downloaded");
    let before = setup.ranges().len();
    assert_whole(&setup.pull(NAME).expect("is there"));
    assert_eq!(setup.ranges().len(), before);
}

#[test]
fn truncated_blob_is_downloaded_again() {
    let setup = Setup::new(tiny());
    setup.pull(NAME).expect("is downloaded");
    for kept in [0, 1, weights().len() as u64 - 1] {
        let blob = setup.cache.path().join("models--owner--tiny/blobs").join(tiny().files[2].etag());
        let file = fs::OpenOptions::new().write(true).open(&blob).expect("the blob can be written to");
        file.set_len(kept).expect("the blob can be cut");
        let before = setup.ranges().len();
        assert_whole(&setup.pull(NAME).expect("is downloaded again"));
        assert!(setup.ranges().len() > before, "{kept} bytes passed for all of them");
    }
}

#[test]
fn interrupted_connection_is_resumed() {
    let setup = Setup::new(tiny());
    for fault in [Fault::CutAfter(70_000), Fault::CutAfter(0), Fault::CutAfter(50_000)] {
        setup.server.fail(WEIGHTS, fault);
    }
    assert_whole(&setup.pull(NAME).expect("is downloaded"));
    let ranges = [None, Some("bytes=70000-"), Some("bytes=70000-"), Some("bytes=120000-")];
    assert_eq!(setup.ranges(), ranges.map(|range| range.map(str::to_owned)));
}

#[test]
fn next_run_resumes_an_interrupted_one() {
    let setup = Setup::new(tiny());
    setup.server.fail(WEIGHTS, Fault::CutAfter(70_000));
    let impatient = HubSettings { retries: 0, ..setup.settings() };
    // A byte arrived, so the failure does not count; the second one has none.
    setup.server.fail(WEIGHTS, Fault::CutAfter(0));
    let error = setup.pull_with(impatient, NAME).expect_err("the connection was cut");
    assert!(matches!(error, Error::Connection { .. }), "{error}");
    assert!(setup.blobs().iter().any(|name| name.ends_with(".incomplete")));
    assert!(matches!(find(&setup, NAME), Err(Error::NotFound { .. })), "half a model is not a model");
    assert_whole(&setup.pull(NAME).expect("is downloaded"));
    assert_eq!(setup.ranges().last(), Some(&Some("bytes=70000-".to_owned())));
    assert!(!setup.blobs().iter().any(|name| name.ends_with(".incomplete")));
}

#[test]
fn without_range_support_the_download_restarts() {
    let setup = Setup::new(tiny());
    setup.server.fail(WEIGHTS, Fault::CutAfter(70_000));
    setup.server.fail(WEIGHTS, Fault::IgnoreRange);
    assert_whole(&setup.pull(NAME).expect("is downloaded"));
}

#[test]
fn stalled_connection_times_out() {
    let setup = Setup::new(tiny());
    setup.server.fail(WEIGHTS, Fault::StallAfter(70_000));
    let settings = HubSettings { stall_timeout: Duration::from_millis(300), ..setup.settings() };
    assert_whole(&setup.pull_with(settings, NAME).expect("is downloaded"));
    assert_eq!(setup.ranges().last(), Some(&Some("bytes=70000-".to_owned())));
}

#[test]
fn partial_download_of_another_file_is_discarded() {
    let setup = Setup::new(tiny());
    let file = &tiny().files[2];
    let part =
        setup.cache.path().join("models--owner--tiny/blobs").join(format!("{}.incomplete", file.etag()));
    fs::create_dir_all(part.parent().expect("a folder")).expect("can be made");
    fs::write(&part, vec![0; 1000]).expect("can be written");
    let error = setup.pull(NAME).expect_err("the sum is another");
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
    assert!(!part.exists());
    assert_whole(&setup.pull(NAME).expect("is downloaded anew"));
    // A part longer than the file is discarded: no range is requested.
    fs::remove_dir_all(setup.cache.path()).expect("can be removed");
    fs::create_dir_all(part.parent().expect("a folder")).expect("can be made");
    fs::write(&part, vec![0; 300_000]).expect("can be written");
    assert_whole(&setup.pull(NAME).expect("is downloaded anew"));
}

#[test]
fn file_with_wrong_checksum_is_rejected_and_removed() {
    for path in [WEIGHTS, "config.json"] {
        let setup = Setup::new(tiny());
        setup.server.fail(path, Fault::WrongByte);
        match setup.pull(NAME) {
            Err(Error::Checksum { file, expected, got }) => {
                let known = tiny().files.into_iter().find(|file| file.path == path).expect("is one").etag();
                assert_eq!((file.as_str(), &expected), (path, &known));
                assert_ne!(got, expected);
            }
            other => panic!("{other:?}"),
        }
        assert!(!setup.blobs().iter().any(|name| name.contains("incomplete")), "{:?}", setup.blobs());
        assert!(matches!(find(&setup, NAME), Err(Error::NotFound { .. })));
        setup.pull(NAME).expect("is downloaded anew");
    }
}

#[test]
fn responses_that_violate_the_protocol_are_errors() {
    for (fault, second) in [(Fault::Longer, None), (Fault::CutAfter(100), Some(Fault::ShiftRange))] {
        let setup = Setup::new(tiny());
        setup.server.fail(WEIGHTS, fault);
        second.into_iter().for_each(|fault| setup.server.fail(WEIGHTS, fault));
        let error = setup.pull(NAME).expect_err("is refused");
        assert!(matches!(error, Error::Protocol { .. }), "{error}");
    }
}

#[test]
fn only_transient_statuses_are_retried() {
    let setup = Setup::new(tiny());
    setup.server.fail(WEIGHTS, Fault::Status(503));
    setup.server.fail(WEIGHTS, Fault::Status(429));
    assert_whole(&setup.pull(NAME).expect("is downloaded"));
    let setup = Setup::new(tiny());
    setup.server.fail(WEIGHTS, Fault::Status(410));
    assert!(matches!(setup.pull(NAME), Err(Error::Status { status: 410, .. })));
}

#[test]
fn token_is_sent_to_the_hub_only() {
    let setup = Setup::new(TestRepo { access: Access::Private, ..tiny() });
    assert!(matches!(setup.pull(NAME), Err(Error::NoSuchRepo { token_sent: false, .. })));
    let with = |token| HubSettings { token: Some(Token::new(token).expect("a token")), ..setup.settings() };
    assert!(matches!(setup.pull_with(with("hf_other"), NAME), Err(Error::TokenRefused { .. })));
    assert_whole(&setup.pull_with(with(TOKEN), NAME).expect("is downloaded"));
    let seen = setup.server.seen();
    assert!(seen.iter().any(|seen| seen.at_files));
    assert!(seen.iter().all(|seen| !seen.at_files || seen.authorization.is_none()), "{seen:?}");
    let missing = setup.pull_with(with(TOKEN), "owner/other");
    assert!(matches!(missing, Err(Error::NoSuchRepo { token_sent: true, .. })));
}

#[test]
fn hub_refusals_are_distinguished() {
    let setup = Setup::new(TestRepo { access: Access::Gated, ..tiny() });
    match setup.pull(NAME) {
        Err(Error::Gated { page, token_sent, .. }) => {
            assert_eq!((page, token_sent), (format!("{}/{NAME}", setup.server.url()), false));
        }
        other => panic!("{other:?}"),
    }
    let setup = Setup::new(tiny());
    assert!(matches!(setup.pull("owner/none"), Err(Error::NoSuchRepo { .. })));
    assert!(matches!(setup.pull("owner/tiny@v9"), Err(Error::NoSuchRevision { .. })));
    assert!(matches!(setup.pull("owner/tiny:x.gguf"), Err(Error::NoSuchFile { .. })));
    let offline = HubSettings { network: Network::Offline, ..setup.settings() };
    let before = setup.server.seen().len();
    assert!(matches!(setup.pull_with(offline, NAME), Err(Error::Offline { .. })));
    assert_eq!(setup.server.seen().len(), before);
}

#[test]
fn renamed_repositories_and_branches_are_resolved() {
    let setup = Setup::new(TestRepo { former_name: Some("owner/old".to_owned()), ..tiny() });
    assert_whole(&setup.pull("owner/old").expect("is redirected"));
    assert_whole(&setup.pull("owner/tiny@refs/pr/1").expect("is a branch"));
    assert!(find(&setup, "owner/tiny@refs/pr/1").is_ok());
    assert!(matches!(find(&setup, NAME), Err(Error::NotFound { .. })), "main was not asked about");
    assert!(find(&setup, &format!("owner/tiny@{}", tiny().commit)).is_ok());
}

#[test]
fn hub_file_metadata_is_validated() {
    let announced = |etag: &str, size: &str| {
        let storage = Storage::Announced { etag: etag.to_owned(), size: size.to_owned() };
        TestRepo { files: vec![TestFile { storage, ..TestFile::text(WEIGHTS, "abc") }], ..tiny() }
    };
    let absurd = (1_u64 << 62).to_string();
    for (etag, size) in [("../../evil", "3"), ("", "3"), (".hidden", "3"), ("ok", "-1"), ("ok", "9e9")] {
        let setup = Setup::new(announced(etag, size));
        let error = setup.pull(NAME).expect_err(etag);
        assert!(matches!(error, Error::Protocol { .. }), "{etag} {size}: {error}");
    }
    let setup = Setup::new(announced("ok", &absurd));
    match setup.pull(NAME) {
        Err(Error::DiskFull { needed, available, .. }) => assert!(needed == 1 << 62 && available < needed),
        other => panic!("{other:?}"),
    }
    assert!(setup.blobs().is_empty());
    // Servers with other ETags are supported; only the number of bytes is checked then.
    let setup = Setup::new(announced("v-1.2", "3"));
    assert!(setup.pull(NAME).is_ok());
}

#[test]
fn path_outside_the_repository_is_an_error() {
    for path in ["../model.safetensors", "/etc/passwd", "a/../../b"] {
        let files = vec![TestFile::large(WEIGHTS, weights()), TestFile::text(path, "x")];
        let setup = Setup::new(TestRepo { files, ..tiny() });
        assert!(matches!(setup.pull(NAME), Err(Error::UnsafePath { .. })), "{path}");
        assert!(setup.blobs().is_empty());
    }
    // File names that only some systems support are skipped.
    let files = vec![TestFile::large(WEIGHTS, weights()), TestFile::text("runs/12:30.txt", "x")];
    assert_whole(&Setup::new(TestRepo { files, ..tiny() }).pull(NAME).expect("is downloaded"));
}

#[test]
fn cache_symlinks_are_not_written_through() {
    let setup = Setup::new(tiny());
    let outside = tempfile::tempdir().expect("a folder");
    let victim = outside.path().join("victim");
    fs::write(&victim, "mine").expect("can be written");
    let blobs = setup.cache.path().join("models--owner--tiny/blobs");
    fs::create_dir_all(&blobs).expect("can be made");
    #[cfg(unix)]
    {
        let part = blobs.join(format!("{}.incomplete", tiny().files[2].etag()));
        std::os::unix::fs::symlink(&victim, part).expect("can be made");
        assert!(matches!(setup.pull(NAME), Err(Error::Damaged { .. })));
        assert_eq!(fs::read_to_string(&victim).expect("is there"), "mine");
    }
}

#[test]
fn concurrent_pulls_do_not_write_one_file() {
    let setup = Setup::new(tiny());
    let lock = setup
        .cache
        .path()
        .join(".locks/models--owner--tiny")
        .join(format!("{}.lock", tiny().files[2].etag()));
    fs::create_dir_all(lock.parent().expect("a folder")).expect("can be made");
    let lock = fs::File::create(lock).expect("can be made");
    lock.lock().expect("nobody has it");
    assert!(matches!(setup.pull(NAME), Err(Error::Busy { .. })));
    drop(lock);
    assert_whole(&setup.pull(NAME).expect("is downloaded"));
}

#[test]
fn one_gguf_model_is_pulled_with_all_its_parts() {
    let files = ["m-Q4_K_M.gguf", "m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"];
    let mut all: Vec<_> = files.iter().map(|path| TestFile::large(path, path.as_bytes().to_vec())).collect();
    all.push(TestFile::text("README.md", "card"));
    let setup = Setup::new(TestRepo { files: all, ..tiny() });
    match setup.pull(NAME) {
        Err(Error::SeveralModels { choices, .. }) => assert_eq!(choices.len(), 2),
        other => panic!("{other:?}"),
    }
    let path = setup.pull("owner/tiny:Q8_0").expect("is downloaded");
    assert!(path.ends_with("m-Q8_0-00001-of-00002.gguf"), "{path:?}");
    assert_eq!(setup.blobs().len(), 3, "two parts and the card");
    assert_eq!(find(&setup, NAME).expect("only one is there").path, path);
    setup.pull("owner/tiny:m-Q4_K_M.gguf").expect("is downloaded");
    assert!(matches!(find(&setup, NAME), Err(Error::SeveralModels { .. })));
    assert_eq!(find(&setup, "owner/tiny:Q8_0").expect("is chosen").path, path);
}

#[test]
fn tls_failure_is_an_error() {
    let setup = Setup::new(tiny());
    let settings =
        HubSettings { endpoint: setup.server.url().replace("http:", "https:"), ..setup.settings() };
    let error = setup.pull_with(HubSettings { retries: 0, ..settings }, NAME).expect_err("no certificate");
    assert!(matches!(error, Error::Connection { .. }), "{error}");
}

#[test]
fn connection_errors_name_the_hub() {
    let setup = Setup::new(tiny());
    let settings = HubSettings { endpoint: "http://127.0.0.1:1".to_owned(), ..setup.settings() };
    match setup.pull_with(settings, NAME) {
        Err(Error::Connection { url, .. }) => assert!(url.starts_with("http://127.0.0.1:1/"), "{url}"),
        other => panic!("{other:?}"),
    }
}

fn find(setup: &Setup, name: &str) -> Result<lm_hub::StoredModel> {
    let hugging_face = Cache::new(setup.cache.path());
    ModelStores { hugging_face, lm_studio: vec![], ollama: vec![] }.find(&name.parse()?)
}
