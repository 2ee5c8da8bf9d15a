//! Runs of a target on seeds and mutations, and the panic hook that saves an input that fails.

use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::mutate;
use crate::target::Corpus;

/// Number of mutations of each target, unless `LM_FUZZ_CASES` sets it.
const CASES: usize = 3_000;

/// Numbers of mutations of targets whose inputs take ten milliseconds and more; `grammar::properties` of
/// lm-processors tests the grammars as well.
const SLOW: &[(&str, usize)] = &[("documents", 400), ("grammar_parser", 600)];

/// Runs a target on every seed of `fuzz/seeds/NAME`, then on mutations of them.
///
/// # Panics
/// When there are no seeds, or when the target panics. A panic outside the code of libraries aborts the
/// process, caught or not; the input is then in `fuzz/artifacts/NAME/replay`.
pub fn replay(name: &'static str, target: fn(&[u8]) -> Corpus) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| panic::set_hook(Box::new(abort_at_own_panics)));
    let seeds = seeds(name);
    let default = SLOW.iter().find(|(slow, _)| *slow == name).map_or(CASES, |(_, cases)| *cases);
    let cases = std::env::var("LM_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default);
    let mutations = mutate::mutations(&seeds).take(cases);
    let mut kept = 0;
    for input in seeds.iter().cloned().chain(mutations) {
        RUNNING.set(Some((name, input.clone())));
        kept += usize::from(target(&input) == Corpus::Keep);
    }
    RUNNING.set(None);
    println!("{name}: {} seeds, {cases} mutations, {kept} kept", seeds.len());
    assert!(kept > 0, "{name} rejects every input");
}

thread_local! {
    /// Target and input of this thread.
    static RUNNING: RefCell<Option<(&'static str, Vec<u8>)>> = const { RefCell::new(None) };
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Contents of the seeds of a target, in the order of their names.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = fuzz_folder().join("seeds").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no seed", folder.display());
    files.iter().map(|file| std::fs::read(file).expect("a readable seed")).collect()
}

/// Saves the input and aborts, unless the panic is in a library: the crate under test may catch it.
fn abort_at_own_panics(panic: &PanicHookInfo) {
    eprintln!("{panic}");
    if panic.location().is_some_and(|place| place.file().contains("/registry/")) {
        return;
    }
    if let Some((name, input)) = RUNNING.take() {
        let folder = fuzz_folder().join("artifacts").join(name);
        let file = folder.join("replay");
        let saved = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, input));
        match saved {
            Ok(()) => eprintln!("{name}: the input that failed is {}", file.display()),
            Err(error) => eprintln!("{name}: the input that failed cannot be saved: {error}"),
        }
    }
    std::process::abort();
}
