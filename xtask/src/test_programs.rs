//! Test programs of the build of `cargo test --workspace`, to be run again in other environments without another build.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// A built test program.
pub struct TestProgram {
    executable: PathBuf,
    /// The folder of its package, where cargo starts it.
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

/// Builds the tests of the workspace and finds those of `wanted`, which are pairs of a package and a target; the target of a
/// library is named as in Rust, `lm_model`.
pub fn build(wanted: &[(&str, &str)]) -> Result<Vec<TestProgram>> {
    let mut build = process::cargo(&["test", "--workspace", "--no-run", "--message-format=json"]);
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

/// The program that a message of cargo tells of, if it is this one.
fn program(message: &Value, package: &str, target: &str) -> Option<TestProgram> {
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let is_it = message["reason"] == "compiler-artifact"
        && message["profile"]["test"] == true
        && message["target"]["name"] == target
        && folder.file_name().is_some_and(|name| name == package);
    let executable = PathBuf::from(message["executable"].as_str()?);
    is_it.then_some(TestProgram { executable, folder })
}
