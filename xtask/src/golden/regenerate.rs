//! `cargo xtask golden --regenerate`: runs the scripts of [`SCRIPTS`] and reports which files then differ
//! from the commit.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValue;

use super::scripts::{LLAMA_CPP_PYTHON, Need, SCRIPTS, Script, VERSIONS};
use crate::process;

/// Prints those of the packages in its arguments that are not installed in that version.
const MISSING: &str = "\
import importlib.metadata as metadata, sys
for package in sys.argv[1:]:
    name, version = package.split('==')
    try:
        found = metadata.version(name).split('+')[0]
    except metadata.PackageNotFoundError:
        found = None
    if found != version:
        print(package)
";

/// The scripts' names for `--only`, with what they write.
pub(super) fn names() -> Vec<PossibleValue> {
    SCRIPTS.iter().map(|script| PossibleValue::new(script.name).help(script.writes.join(", "))).collect()
}

/// Prints the Python packages of the scripts as arguments of `pip install`.
pub(super) fn print_packages(only: &[String]) {
    println!("{}", pinned(&chosen(only)).join(" "));
}

/// Runs the scripts, after a check of their packages.
pub(super) fn run(only: &[String]) -> Result<()> {
    let (python, scripts) = (python()?, chosen(only));
    let packages = pinned(&scripts);
    let missing = process::output(Command::new(&python).args(["-c", MISSING]).args(&packages))?;
    if !missing.trim().is_empty() {
        bail!(
            "{} lacks packages; install them with `{0} -m pip install {}`, or name another interpreter with PYTHON",
            Path::new(&python).display(),
            missing.split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }
    for script in scripts {
        script.run(&python)?;
    }
    Ok(())
}

impl Script {
    fn run(&self, python: &OsString) -> Result<()> {
        let (file, arguments) = self.command.split_first().context("a row has a command")?;
        let mut command = if file.ends_with(".js") { Command::new("node") } else { Command::new(python) };
        command.arg(file).current_dir(process::root().join(self.folder));
        match self.needs {
            Some(Need::LlamaCpp) => _ = command.arg(llama_cpp(python)?),
            Some(Need::SharedData) if !shared_data().is_dir() => {
                println!("skipped: {}: no folder {}, LM_SHARED names it", self.name, shared_data().display());
                return Ok(());
            }
            Some(Need::SharedData) => _ = command.env("LM_SHARED", shared_data()),
            None => {}
        }
        eprintln!("=== {}", self.name);
        process::run(command.args(arguments))?;
        let mut status = Command::new("git");
        status.args(["status", "--short", "--"]).args(self.writes).args([":!*.py", ":!*.js", ":!*.md"]);
        let changed = process::output(status.current_dir(process::root()))?;
        match &*changed {
            "" => println!("{}: unchanged", self.name),
            changed => print!("{}: changed\n{changed}", self.name),
        }
        Ok(())
    }
}

/// The scripts of these names, or all of them, in dependency order.
fn chosen(only: &[String]) -> Vec<&'static Script> {
    SCRIPTS.iter().filter(|script| only.is_empty() || only.iter().any(|name| name == script.name)).collect()
}

/// The packages of the scripts with their versions, as pip takes them.
fn pinned(scripts: &[&Script]) -> Vec<String> {
    let packages: BTreeSet<_> = scripts.iter().flat_map(|script| script.packages).collect();
    let versions = VERSIONS.iter().filter(|(name, _)| packages.contains(name));
    versions.map(|(name, version)| format!("{name}=={version}")).collect()
}

/// The interpreter that `PYTHON` names; a path is made absolute, because scripts run in folders of their own.
fn python() -> Result<OsString> {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let is_path = Path::new(&python).components().count() > 1;
    Ok(if is_path { std::path::absolute(python)?.into() } else { python })
}

fn shared_data() -> PathBuf {
    std::env::var_os("LM_SHARED").map_or_else(|| process::root().join("../shared"), PathBuf::from)
}

/// Folder of llama.cpp's converter: `LLAMA_CPP`, or else the source package of llama-cpp-python, below
/// `target/`.
fn llama_cpp(python: &OsString) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("LLAMA_CPP") {
        return Ok(std::path::absolute(folder)?);
    }
    let parent = process::root().join("target/golden");
    let folder = parent.join(format!("llama-cpp-python-{LLAMA_CPP_PYTHON}"));
    if !folder.join("conversion").is_dir() {
        let package = format!("llama-cpp-python=={LLAMA_CPP_PYTHON}");
        let mut download = Command::new(python);
        download.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python"]);
        process::run(download.arg("--dest").arg(&parent).arg(package))?;
        std::fs::create_dir_all(&folder)?;
        let mut unpack = Command::new("tar");
        unpack.arg("--extract").arg("--file");
        unpack.arg(parent.join(format!("llama_cpp_python-{LLAMA_CPP_PYTHON}.tar.gz")));
        unpack.arg("--directory").arg(&folder).args(["--strip-components=3", "--wildcards"]);
        process::run(unpack.args(["*/vendor/llama.cpp/gguf-py/*", "*/vendor/llama.cpp/conversion/*"]))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_chosen_scripts_are_pinned_once_each() {
        let only = ["media/pillow".to_owned(), "ggml".to_owned()];
        let scripts = chosen(&only);
        assert_eq!(scripts.iter().map(|script| script.name).collect::<Vec<_>>(), ["ggml", "media/pillow"]);
        assert_eq!(pinned(&scripts), ["gguf==0.19.0", "numpy==2.4.6", "pillow==12.3.0"]);
        assert_eq!(chosen(&[]).len(), SCRIPTS.len());
    }

    #[test]
    fn scripts_that_read_the_output_of_others_come_later() {
        let position = |name: &str| SCRIPTS.iter().position(|script| script.name == name).expect(name);
        let first = ["adapters", "embeddings", "groups", "imatrix", "gguf"].map(|name| ("models", name));
        let others = [("vision", "vision/mmproj"), ("tokenizers/gguf", "tokenizers/llama-cpp")];
        for (earlier, later) in first.into_iter().chain(others) {
            assert!(position(earlier) < position(later), "{earlier}, {later}");
        }
    }
}
