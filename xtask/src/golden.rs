//! `cargo xtask golden`: the committed goldens against our output.

use anyhow::Result;

use crate::process;

#[derive(clap::Args)]
pub struct Args {
    /// Compare the committed goldens with our output (in Rust, without Python)
    #[arg(long, required = true)]
    check: bool,
}

pub fn run(args: &Args) -> Result<()> {
    debug_assert!(args.check, "clap requires the flag");
    process::run(&mut process::cargo(&["test", "-p", "lm-model", "--test", "goldens"]))
}
