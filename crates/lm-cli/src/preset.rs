//! `--preset`: options of a command from a TOML file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::args::usage;
use crate::suggestion::did_you_mean;
use crate::user_folders;

const OPTION: &str = "--preset";

/// Presets that are part of the program.
const SHIPPED: &[(&str, &str)] = &[
    ("coder", include_str!("presets/coder.toml")),
    ("creative", include_str!("presets/creative.toml")),
    ("precise", include_str!("presets/precise.toml")),
];

/// Options with a short form.
const SHORT: &[(&str, &str)] =
    &[("--max-tokens", "-n"), ("--model", "-m"), ("--prompt", "-p"), ("--threads", "-t")];

/// Inserts the options of the preset that a command line names, after the command. Options that the command
/// line has itself are left out.
///
/// # Errors
/// When there is no such preset, or it is not a table of options.
pub fn expanded(mut args: Vec<OsString>) -> Result<Vec<OsString>> {
    let Some(name) = named(&args) else { return Ok(args) };
    let options = options(&name)?;
    let new = options.into_iter().filter(|(option, _)| !is_given(option, &args));
    let new: Vec<OsString> = new.map(|(_, argument)| argument.into()).collect();
    args.splice(2..2, new);
    Ok(args)
}

/// Value of `--preset`, after the command.
fn named(args: &[OsString]) -> Option<String> {
    let mut args = args.iter().skip(2).take_while(|arg| *arg != "--");
    while let Some(arg) = args.next() {
        let text = arg.to_str()?;
        match text.strip_prefix(OPTION) {
            Some("") => return args.next()?.to_str().map(str::to_owned),
            Some(rest) if rest.starts_with('=') => return Some(rest[1..].to_owned()),
            _ => {}
        }
    }
    None
}

/// Text of a preset: of a file, of the user's folder, or of the program.
fn read(name: &str) -> Result<String> {
    let is_path = name.contains(['/', '\\']) || name.ends_with(".toml");
    let own = folder().map(|folder| folder.join(format!("{name}.toml")));
    let path = if is_path { Some(PathBuf::from(name)) } else { own.filter(|path| path.is_file()) };
    if let Some(path) = path {
        return std::fs::read_to_string(&path)
            .map_err(|error| usage(format!("the preset `{}` cannot be read: {error}", path.display())));
    }
    let shipped = SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| (*text).to_owned());
    shipped.ok_or_else(|| {
        let names = names();
        let hint = did_you_mean(name, names.iter().map(String::as_str), "");
        usage(format!(
            "there is no preset `{name}`{hint}; there are {}, and files FILE.toml",
            names.join(", ")
        ))
    })
}

/// Folder of the user's presets.
fn folder() -> Option<PathBuf> {
    user_folders::config().map(|folder| folder.join("lm").join("presets"))
}

/// Names of the presets, sorted.
pub fn names() -> Vec<String> {
    let files = folder().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let own = files.filter_map(|file| {
        let path = file.path();
        let is_preset = path.extension().is_some_and(|end| end == "toml");
        Path::new(path.file_stem().filter(|_| is_preset)?).to_str().map(str::to_owned)
    });
    let mut names: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).chain(own).collect();
    names.sort();
    names.dedup();
    names
}

/// Options of a preset by their names, without the dashes before them.
///
/// # Errors
/// When there is no such preset, or it is no TOML.
pub fn table(name: &str) -> Result<Table> {
    let parsed = read(name)?.parse::<Table>();
    let table =
        parsed.map_err(|error| usage(error.to_string())).with_context(|| format!("preset `{name}`"))?;
    Ok(table.into_iter().map(|(key, value)| (key.replace('_', "-"), value)).collect())
}

/// Options of a preset and the arguments that set them: `temperature = 0.2` is `--temperature=0.2`, `stats =
/// true` is `--stats`, and each item of an array is an option.
fn options(name: &str) -> Result<Vec<(String, String)>> {
    arguments(table(name)?).with_context(|| format!("preset `{name}`"))
}

fn arguments(table: Table) -> Result<Vec<(String, String)>> {
    let mut options = Vec::new();
    for (key, value) in table {
        let option = format!("--{key}");
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let argument = match &value {
                Value::Boolean(true) => option.clone(),
                Value::Boolean(false) => continue,
                Value::String(text) => format!("{option}={text}"),
                Value::Integer(_) | Value::Float(_) => format!("{option}={value}"),
                _ => {
                    return Err(usage(format!(
                        "`{key}` is {}, expected a text, a number or true",
                        value.type_str()
                    )));
                }
            };
            options.push((option.clone(), argument));
        }
    }
    Ok(options)
}

/// Returns true if a command line has an option.
fn is_given(option: &str, args: &[OsString]) -> bool {
    let short = SHORT.iter().find(|(long, _)| *long == option).map(|(_, short)| *short);
    args.iter().skip(2).take_while(|arg| *arg != "--").filter_map(|arg| arg.to_str()).any(|arg| {
        arg.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            || short.is_some_and(|short| !arg.starts_with("--") && arg.starts_with(short))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded_line(line: &[&str]) -> Vec<String> {
        let args = expanded(line.iter().map(OsString::from).collect()).expect("a preset");
        args.into_iter().map(|arg| arg.into_string().expect("text")).collect()
    }

    #[test]
    fn options_of_a_preset_come_before_those_of_the_line() {
        assert_eq!(expanded_line(&["lm", "chat", "x"]), ["lm", "chat", "x"]);
        let line = ["lm", "chat", "--preset", "precise", "x"];
        assert_eq!(expanded_line(&line), ["lm", "chat", "--temperature=0", "--preset", "precise", "x"]);
        for line in [
            &["lm", "chat", "--preset=precise", "--temperature", "1"][..],
            &["lm", "chat", "--temperature=1", "--preset=precise"],
            &["lm", "chat", "--", "--preset=precise"],
            &["lm", "--preset=precise"],
        ] {
            assert_eq!(expanded_line(line), line);
        }
        let creative = expanded_line(&["lm", "generate", "--preset=creative"]);
        assert_eq!(creative[2..5], ["--min-p=0.05", "--temperature=1.0", "--top-p=1.0"]);
    }

    #[test]
    fn values_are_arguments() {
        let options = |text: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("own.toml");
            std::fs::write(&path, text).expect("is written");
            options(path.to_str().expect("UTF-8"))
        };
        let text = "max_tokens = 5\nstats = true\nplain = false\nstop = [\"a\", \"b c\"]\nseed = -1";
        let arguments: Vec<String> =
            options(text).expect("options").into_iter().map(|(_, arg)| arg).collect();
        assert_eq!(arguments, ["--max-tokens=5", "--seed=-1", "--stats", "--stop=a", "--stop=b c"]);
        for (text, message) in
            [("a = 1979-05-27", "`a` is datetime"), ("[a]\nb = 1", "`a` is table"), ("a =", "")]
        {
            let error = format!("{:#}", options(text).expect_err("no option"));
            assert!(error.contains(message), "{error}");
        }
        let args = ["lm", "chat", "-n", "3"].map(OsString::from);
        assert!(is_given("--max-tokens", &args) && !is_given("--model", &args));
    }

    #[test]
    fn unknown_preset_has_a_suggestion() {
        let error = expanded(["lm", "chat", "--preset=precice"].map(OsString::from).to_vec());
        let error = error.expect_err("no preset").to_string();
        assert!(error.contains("there is no preset `precice` (did you mean `precise`?)"), "{error}");
        for (name, _) in SHIPPED {
            assert!(!options(name).expect(name).is_empty(), "{name}");
        }
    }
}
