//! Installation of a client by pip or npm, in a folder of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::table::Client;
use crate::process;

/// Language of a script, and so the registry of its packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    Python,
    Node,
}

/// Installs the packages of a client, unless the folder has them in these versions.
pub fn install(client: &Client, folder: &Path) -> Result<()> {
    let (marker, packages) = (folder.join("installed"), client.packages.join(" "));
    if fs::read_to_string(&marker).is_ok_and(|installed| installed.trim() == packages) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match client.runtime() {
        Runtime::Python => {
            let venv = folder.join("venv");
            process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
            let mut pip = Command::new(venv.join("bin/pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(client.packages);
            process::run(&mut pip)?;
        }
        Runtime::Node => {
            let mut npm = Command::new("npm");
            npm.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]).arg(folder);
            process::run(npm.args(client.packages))?;
        }
    }
    Ok(fs::write(marker, packages)?)
}
