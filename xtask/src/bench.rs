//! `cargo xtask bench`: the kernel benches and `lm bench`, both in release builds.

use anyhow::Result;

use crate::process;

#[derive(clap::Args)]
pub struct Args {
    /// Arguments for `lm bench`, after `--`; without a model the embedded one is measured
    #[arg(last = true)]
    lm: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    process::run(&mut process::cargo(&["bench", "--package", "lm-benches"]))?;
    let mut lm = process::cargo(&["run", "--release", "--package", "lm-cli", "--", "bench"]);
    process::run(lm.args(&args.lm))
}
