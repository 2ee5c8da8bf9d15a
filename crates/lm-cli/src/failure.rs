//! What a user reads when a command fails: one line with the causes, and where possible what to do about it.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// A model path that leads nowhere.
#[derive(Debug)]
pub struct ModelNotFound {
    pub path: PathBuf,
}

impl std::fmt::Display for ModelNotFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no model folder at `{}`", self.path.display())
    }
}

impl std::error::Error for ModelNotFound {}

/// Prints the error and gives the exit code. A reader of our output that went away is no failure.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let is_broken_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    print(error);
    ExitCode::FAILURE
}

/// Prints the error without ending the program.
pub fn print(error: &anyhow::Error) {
    let colour = io::stderr().is_terminal() && crate::screen::colour_wanted();
    let (on, off) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    eprintln!("{on}error:{off} {}", causes(error));
    if let Some(hint) = hint(error) {
        eprintln!("hint: {hint}");
    }
}

/// The chain on one line. A wrapper that says what its cause says is not repeated.
fn causes(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(|cause| cause.to_string().replace('\n', " ")) {
        if parts.last() != Some(&cause) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}

fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if cause.is::<ModelNotFound>() {
            return Some(
                "give a folder that holds config.json, *.safetensors and tokenizer.json, or no model for the \
                 embedded one; nothing is downloaded"
                    .to_owned(),
            );
        }
        if let Some(lm_tools::Error::RoundLimit { .. }) = cause.downcast_ref() {
            return Some("--max-rounds allows more".to_owned());
        }
        match cause.downcast_ref()? {
            lm_kernels::Error::DeviceNotCompiled { feature, .. } => {
                Some(format!("build with `cargo build --release --features {feature}`"))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn causes_stand_on_one_line_and_are_not_repeated() {
        let error = anyhow!("no such\nfile").context("no such\nfile").context("cannot load");
        assert_eq!(causes(&error), "cannot load: no such file");
    }

    #[test]
    fn a_missing_model_tells_what_would_be_one() {
        let error = anyhow::Error::new(ModelNotFound { path: "x".into() });
        assert!(hint(&error).is_some_and(|hint| hint.contains("config.json")));
        assert_eq!(hint(&anyhow!("else")), None);
    }
}
