//! Test executables of `cargo test --workspace`, run again in other environments without another build.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// A built test executable.
#[derive(Clone)]
pub struct TestProgram {
    executable: PathBuf,
    /// Folder of its package, the working directory in which cargo runs it.
    folder: PathBuf,
}

impl TestProgram {
    /// The command that runs its tests.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder);
        command
    }
}

/// Target of a crate's integration tests.
pub const INTEGRATION: &str = "integration";

/// Builds the tests of the workspace and finds those of `wanted`, pairs of a package and a target; the target
/// of a library has its Rust name, `lm_model`. With the features of the last `cargo test --workspace`,
/// nothing is built.
pub fn build(features: &str, wanted: &[(&str, &str)]) -> Result<Vec<TestProgram>> {
    let mut build = process::cargo(&["test", "--workspace", "--no-run", "--message-format=json"]);
    build.args(["--features", features]);
    let messages = process::output(build.stderr(Stdio::inherit()))?;
    let built: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    wanted
        .iter()
        .map(|(package, target)| {
            let found = built.iter().find_map(|message| program(message, package, target));
            found.with_context(|| format!("cargo built no test `{target}` of {package}"))
        })
        .collect()
}

/// Parses the executable in a cargo message, if it is the wanted one.
fn program(message: &Value, package: &str, target: &str) -> Option<TestProgram> {
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let is_it = message["reason"] == "compiler-artifact"
        && message["profile"]["test"] == true
        && message["target"]["name"] == target
        && folder.file_name().is_some_and(|name| name == package);
    let executable = PathBuf::from(message["executable"].as_str()?);
    is_it.then_some(TestProgram { executable, folder })
}
