//! Error output: one line with the chain of causes, and a hint if there is one.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use lm_conversation::Overflow;
use lm_hub::ModelName;
use lm_model::{KvDtype, WeightFormat};
use lm_tools::StopReason;

use crate::args::UsageError;
use crate::interrupt;
use crate::locate::ModelNotFound;
use crate::mcp;
use crate::screen::replace_control_chars;

/// Prints the error and returns the exit code: 130 for an interrupt, 2 for invalid usage, otherwise 1. A
/// broken pipe of our output is not a failure.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let is_broken_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    if interrupt::is_interrupt(error) {
        eprintln!("interrupted");
        return interrupt::EXIT_CODE.into();
    }
    print(error);
    if is_usage(error) { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Returns true if the arguments are invalid for this build of the program with any model.
fn is_usage(error: &anyhow::Error) -> bool {
    let is_missing_device =
        |cause| matches!(kernel_error(cause), Some(lm_kernels::Error::DeviceNotCompiled { .. }));
    error.is::<UsageError>() || error.chain().any(is_missing_device)
}

/// Prints the error without ending the program.
pub fn print(error: &anyhow::Error) {
    print_with(error, hint(error));
}

/// [`print()`] in a chat whose conversations handle an exceeded context in this way. `declares_all`: all
/// tools are declared, whatever they take of the context.
pub fn print_in_chat(error: &anyhow::Error, overflow: Overflow, declares_all: bool) {
    let is_full = is_full_context(error);
    let more = match overflow {
        _ if !is_full => "",
        Overflow::Error => {
            "; /compact summarises the conversation, /clear starts over, and --overflow drop-oldest leaves out its oldest turns"
        }
        Overflow::DropOldest(_) | Overflow::SlidingWindow => "; /clear begins again",
    };
    let fewer =
        if is_full && declares_all { "; without --tool-share off fewer tools are declared" } else { "" };
    print_with(error, hint(error).map(|hint| hint + more + fewer));
}

/// Returns true for the error of a prompt that leaves no room in the context.
pub fn is_full_context(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        session_error(cause).is_some_and(is_full)
            || matches!(stop_reason(cause), Some(StopReason::ContextFull { .. }))
    })
}

fn print_with(error: &anyhow::Error, hint: Option<String>) {
    let colour = io::stderr().is_terminal() && crate::screen::colour_wanted();
    let (on, off) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    eprintln!("{on}error:{off} {}", message(error));
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
}

/// Formats the chain of causes on one line, without repeated messages. Control characters are replaced.
pub fn message(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(|cause| replace_control_chars(&cause.to_string().replace('\n', " "))) {
        if parts.last() != Some(&cause) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}

/// Next step after an error, if any.
pub fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(not_found) = cause.downcast_ref::<ModelNotFound>() {
            return Some(about_missing_model(not_found));
        }
        if let Some(error) = cause.downcast_ref::<lm_hub::Error>() {
            return about_hub(error);
        }
        if let Some(reason) = stop_reason(cause) {
            return about_stop(reason);
        }
        if let Some(hint) = format_error(cause).and_then(about_file) {
            return Some(hint);
        }
        if let Some(lm_model::Error::AlreadyQuantized { requested, .. }) = model_error(cause) {
            return Some(format!(
                "without --quantize and --dtype they are loaded as stored; `lm convert ORIGINAL OUTPUT --quantize {requested}` \
                 converts the model that they were made from"
            ));
        }
        if let Some(hint) = session_error(cause).and_then(about_session) {
            return Some(hint);
        }
        if let Some(hint) = cause.downcast_ref().and_then(about_conversation).or_else(|| mcp::hint(cause)) {
            return Some(hint);
        }
        if cause.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::AddrInUse) {
            return Some(
                "another program listens there; --listen takes another port, or 0 for a free one".to_owned(),
            );
        }
        match kernel_error(cause)? {
            lm_kernels::Error::DeviceNotCompiled { feature, .. } => {
                Some(format!("build with `cargo build --release --features {feature}`"))
            }
            _ => None,
        }
    })
}

/// The reason of an agent's turn that ended without an answer.
fn stop_reason<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a StopReason> {
    match cause.downcast_ref() {
        Some(lm_tools::Error::Stopped { reason, .. }) => Some(reason),
        _ => None,
    }
}

fn about_stop(reason: &StopReason) -> Option<String> {
    let hint = match reason {
        StopReason::RoundLimit { .. } => "--max-rounds allows more",
        StopReason::ContextFull { .. } => SHORTER_PROMPT,
        _ => return None,
    };
    Some(hint.to_owned())
}

const SHORTER_PROMPT: &str =
    "a shorter prompt fits, and --context allows more tokens where the model supports them";

/// The engine's error in the error of a layer above it, which forwards its message.
pub fn session_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a lm_session::Error> {
    let of_conversation = |error: &'a lm_conversation::Error| match error {
        lm_conversation::Error::Session(error) => Some(error),
        _ => None,
    };
    if let Some(lm_tools::Error::Conversation(error)) = cause.downcast_ref() {
        return of_conversation(error);
    }
    cause.downcast_ref().or_else(|| cause.downcast_ref().and_then(of_conversation))
}

/// The same of the model.
fn model_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a lm_model::Error> {
    match session_error(cause) {
        Some(lm_session::Error::Model(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// The same of the kernels.
fn kernel_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a lm_kernels::Error> {
    match model_error(cause) {
        Some(lm_model::Error::Kernels(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// The same of the files.
fn format_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a lm_model::FormatError> {
    match model_error(cause) {
        Some(lm_model::Error::Format(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// Forms of a model on this machine.
const MODEL_FILES: &str = "give a folder that holds config.json, *.safetensors and tokenizer.json, a GGUF file, a name that `lm list` \
                           shows, or no model for the embedded one";

/// Hint for files of a model that are missing or cannot be used in this way.
fn about_file(error: &lm_model::FormatError) -> Option<String> {
    use lm_model::FormatError;
    let hint = match error {
        FormatError::MissingFile { file, .. }
            if ["config.json", "model.safetensors", "tokenizer.json"].contains(&file.as_str()) =>
        {
            MODEL_FILES
        }
        FormatError::UnsupportedValue { key, value, .. } if key == "general.type" => match value.as_str() {
            "mmproj" | "clip-vision" => {
                "it belongs beside the GGUF file of a model; or name that model, and this file with --mmproj"
            }
            "imatrix" => "name the model, and this file with `lm convert --imatrix`",
            "adapter" => "adapters are read from PEFT's folders, with --lora",
            _ => return None,
        },
        _ => return None,
    };
    Some(hint.to_owned())
}

fn about_session(error: &lm_session::Error) -> Option<String> {
    match *error {
        lm_session::Error::PromptTooLong { .. } => Some(SHORTER_PROMPT.to_owned()),
        lm_session::Error::DoesNotFit { quantization, kv_dtype, .. } => {
            Some(about_memory(quantization, kv_dtype))
        }
        _ => None,
    }
}

/// Hint for a model that does not fit, with the options that take less than these formats.
fn about_memory(weights: Option<WeightFormat>, cache: KvDtype) -> String {
    let mut options = vec!["a smaller --context"];
    if weights != Some(WeightFormat::Q4) {
        options.push("--quantize q4");
    }
    if cache != KvDtype::Q8 {
        options.push("--kv q8");
    }
    let verb = if options.len() == 1 { "takes" } else { "take" };
    let last = options.pop().unwrap_or_default();
    let options =
        if options.is_empty() { last.to_owned() } else { format!("{} and {last}", options.join(", ")) };
    format!(
        "{options} {verb} less, `lm inspect MODEL` shows how much; --memory BYTES says how much may be taken"
    )
}

fn is_full(error: &lm_session::Error) -> bool {
    matches!(error, lm_session::Error::PromptTooLong { .. })
}

fn about_conversation(error: &lm_conversation::Error) -> Option<String> {
    match error {
        lm_conversation::Error::TooManyMediaRows { .. } => Some(
            "fewer or smaller images and shorter audio clips fit, and --context allows more tokens where the model supports them"
                .to_owned(),
        ),
        lm_conversation::Error::NoChatTemplate { .. } => Some(
            "a model without a chat template is mostly a base model, which was not trained to chat: `lm generate --raw` continues its text, and \
             `lm chat --chat-template vicuna` (or another family, or a file) chats with it; images and audio need a template"
                .to_owned(),
        ),
        _ => None,
    }
}

fn about_missing_model(ModelNotFound { name, .. }: &ModelNotFound) -> String {
    match name {
        Some(name) if name.repo.owner().is_some() => {
            format!("`lm pull {name}` downloads it; `lm list` shows what is on this machine")
        }
        Some(_) => {
            "`lm list` shows what is on this machine, and `lm pull OWNER/NAME` downloads more".to_owned()
        }
        None => MODEL_FILES.to_owned(),
    }
}

const WITHOUT_NETWORK: &str = "without a network, `lm list` shows the models on this machine, the path of a model folder or GGUF file works \
                               instead of a name, and `lm chat` alone runs the embedded model";

/// Hint for an error of a model's name or of the hub.
fn about_hub(error: &lm_hub::Error) -> Option<String> {
    use lm_hub::Error;
    let hint = match error {
        Error::InvalidName { .. } => "names are OWNER/NAME, OWNER/NAME:FILE or OWNER/NAME@REVISION",
        Error::NotFound { .. } => "`lm list` shows what is on this machine",
        Error::NoWeightsHere { name, .. } => return Some(format!("`lm pull {name}` downloads the rest")),
        Error::SeveralModels { name, choices } | Error::NoSuchFile { name, choices, .. } => {
            let choice = choices.first()?;
            let example = ModelName::with_file(name.parse().ok()?, choice.file.as_str()).ok()?;
            return Some(format!("choose one by its file or the end of its name, as in `{example}`"));
        }
        Error::NoSuchRepo { token_sent: false, .. } => {
            "check the name; a private model needs a token in HF_TOKEN, from the hub's settings"
        }
        Error::NoSuchRepo { token_sent: true, .. } => "check the name, and what the token may read",
        Error::Gated { page, .. } => {
            return Some(format!("ask for access on {page}, and set HF_TOKEN to a token of yours"));
        }
        Error::TokenRefused { .. } => {
            "HF_TOKEN, or the file that `hf auth login` wrote, holds a token that is no longer valid"
        }
        Error::Offline { .. } => {
            return Some(format!("unset HF_HUB_OFFLINE to use the network; {WITHOUT_NETWORK}"));
        }
        Error::DiskFull { .. } => {
            "`lm list` shows what models take, `lm rm NAME` frees it, HF_HUB_CACHE names another disk"
        }
        Error::Busy { .. } => "run the command again when that has ended",
        Error::Checksum { .. } => "run the command again; if it fails again, the hub has a damaged file",
        Error::Connection { .. } => {
            return Some(format!(
                "run the command again to continue where it ended; HTTPS_PROXY names a proxy, HF_ENDPOINT a mirror; {WITHOUT_NETWORK}"
            ));
        }
        Error::ManagedElsewhere { program: "Ollama", name } => {
            return Some(format!("`ollama rm {name}` removes it"));
        }
        Error::ManagedElsewhere { .. } => "remove it in that program",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn causes_are_joined_without_repetition() {
        let error = anyhow!("no such\nfile").context("no such\nfile").context("cannot load");
        assert_eq!(message(&error), "cannot load: no such file");
        let error =
            anyhow!("model.safetensors has tensor \u{1b}]0;title\u{7}, which a llama model does not use");
        assert!(!message(&error).contains(char::is_control), "{error}");
    }

    #[test]
    fn missing_model_has_pull_hint() {
        let hint = |asked: &str, name: Option<&str>| {
            let name = name.map(|name| name.parse().expect("a name"));
            hint(&ModelNotFound { asked: asked.into(), name }.into()).expect("a hint")
        };
        assert!(hint("./x", None).contains("config.json"));
        assert!(hint("a/b", Some("a/b")).contains("`lm pull a/b`"));
        assert!(hint("llama3", Some("llama3")).contains("`lm list`"));
    }

    /// Also in a build that has every device.
    #[test]
    fn missing_device_is_a_usage_error_naming_its_feature() {
        let device = lm_kernels::Device::Gpu.name();
        let error = anyhow::Error::from(lm_kernels::Error::DeviceNotCompiled { device, feature: "wgpu" });
        assert!(is_usage(&error));
        assert_eq!(message(&error), "device `gpu` is not compiled in; build with feature `wgpu`");
        assert_eq!(hint(&error).as_deref(), Some("build with `cargo build --release --features wgpu`"));
    }

    #[test]
    fn non_model_gguf_files_have_a_hint() {
        let of = |kind: &str| hint(&lm_model::Error::Format(error_of_type(kind)).into());
        assert!(of("mmproj").is_some_and(|hint| hint.contains("--mmproj")));
        assert!(of("imatrix").is_some_and(|hint| hint.contains("--imatrix")));
        assert!(of("adapter").is_some_and(|hint| hint.contains("--lora")));
        assert_eq!(of("other"), None);
    }

    fn error_of_type(kind: &str) -> lm_model::FormatError {
        lm_model::FormatError::UnsupportedValue {
            file: "x.gguf".to_owned(),
            key: "general.type".to_owned(),
            value: kind.to_owned(),
            known: "model".to_owned(),
        }
    }

    #[test]
    fn engine_error_has_its_hint_in_every_layer() {
        let full = || lm_session::Error::PromptTooLong { prompt_tokens: 9, context_tokens: 8 };
        let in_conversation = || lm_conversation::Error::Session(full());
        for error in [
            anyhow::Error::from(full()),
            in_conversation().into(),
            lm_tools::Error::Conversation(in_conversation()).into(),
        ] {
            assert!(hint(&error).is_some_and(|hint| hint.contains("--context")), "{error}");
        }
    }

    #[test]
    fn memory_hint_names_only_options_that_take_less() {
        let hint = |weights, cache| about_memory(weights, cache).split(" less").next().map(str::to_owned);
        let hint = |weights, cache| hint(weights, cache).expect("a hint");
        assert_eq!(hint(None, KvDtype::F16), "a smaller --context, --quantize q4 and --kv q8 take");
        assert_eq!(hint(None, KvDtype::Q8), "a smaller --context and --quantize q4 take");
        assert_eq!(hint(Some(WeightFormat::Q4), KvDtype::F16), "a smaller --context and --kv q8 take");
        assert_eq!(hint(Some(WeightFormat::Q4), KvDtype::Q8), "a smaller --context takes");
    }

    #[test]
    fn stopped_turn_hints_at_continuation() {
        let hint = |reason| hint(&lm_tools::Error::Stopped { reason, steps: Vec::new() }.into());
        let rounds = StopReason::RoundLimit { max_rounds: 8 };
        assert_eq!(hint(rounds).as_deref(), Some("--max-rounds allows more"));
        let full = StopReason::ContextFull { prompt_tokens: 9, context_tokens: 8 };
        assert!(hint(full).is_some_and(|hint| hint.contains("--context")));
    }

    #[test]
    fn most_errors_need_no_hint() {
        assert_eq!(hint(&anyhow!("else")), None);
    }
}
