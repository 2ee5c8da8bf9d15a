//! The compiler's messages for wrong uses of `#[tool]` and `#[tools]`: each says what to write instead.
//!
//! The files of `compile_errors/` are compiled by `rustc` against the library that the tests were built with,
//! five runs of a second. A project that depends on this crate would be built anew with all dependencies.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The library that was built last: that of this test, or one of the same sources with other features.
fn library(dependencies: &Path) -> PathBuf {
    let files = fs::read_dir(dependencies).expect("the folder of this program");
    let libraries = files.filter_map(|file| {
        let path = file.ok()?.path();
        let name = path.file_name()?.to_str()?;
        (name.starts_with("liblm_tools-") && name.ends_with(".rlib")).then_some(())?;
        Some((path.metadata().ok()?.modified().ok()?, path))
    });
    libraries.max().expect("the library").1
}

/// Compiles a file of `compile_errors/`, and returns the messages, without line numbers of the library.
fn messages(file: &str) -> String {
    let program = env::current_exe().expect("this program");
    let dependencies = program.parent().expect("its folder");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_errors");
    let out = env::temp_dir().join(format!("lm-compile-errors-{}-{file}", std::process::id()));
    let search = format!("dependency={}", dependencies.display());
    let external = format!("lm_tools={}", library(dependencies).display());
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsStr::new("rustc").to_owned());
    let output = Command::new(rustc)
        .current_dir(&folder)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never", "--cap-lints=allow"])
        .args(["-L", &search, "--extern", &external, "-o"])
        .arg(&out)
        .arg(format!("{file}.rs"))
        .output()
        .expect("rustc runs");
    let _ = fs::remove_file(&out); // It is there only after a success.
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.success(), text.is_empty(), "{text}");
    let shorten = |line: &str| match line.split_once(".rs:") {
        Some((file, _)) if file.contains("--> crates/") => format!("{file}.rs\n"),
        _ => format!("{line}\n"),
    };
    let is_kept =
        |line: &&str| !line.contains("full name for the type") && !line.contains("print the full type name");
    text.lines().filter(is_kept).map(shorten).collect()
}

fn check(file: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("compile_errors");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(file, messages(file)));
}

#[test]
fn valid_uses_compile_silently() {
    assert_eq!(messages("valid"), "");
}

#[test]
fn invalid_functions_get_a_suggestion() {
    check("functions");
}

#[test]
fn invalid_methods_and_blocks_get_a_suggestion() {
    check("methods");
}

#[test]
fn wrong_options_list_the_valid_ones() {
    check("options");
}

#[test]
fn mismatched_options_name_the_type() {
    check("types");
}
