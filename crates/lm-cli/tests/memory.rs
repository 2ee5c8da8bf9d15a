//! Memory limits: choices that fit are made and printed; a model that does not fit is rejected before
//! anything is loaded.

use std::process::{Command, Stdio};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/pocket/model");

/// Exit code, standard output and standard error of a generation with the embedded model's folder.
fn generate(args: &[&str]) -> (Option<i32>, String, String) {
    lm(&[&["generate", "-m", MODEL, "Hello"], args].concat())
}

fn lm(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lm"));
    let output =
        command.args(args).env_remove("LM_LOG").stdin(Stdio::null()).output().expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("output is text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn choice_is_reported_in_one_line() {
    for (args, expected) in [
        (&["--memory", "4GB"][..], "as stored, 2048 tokens of context, cache in f16 (8192 tokens): about"),
        (&["--memory", "100MB"], "as stored, 2048 tokens of context, cache in q8: about"),
        (&["--memory", "95MB"], "in q8, 2048 tokens of context, cache in f16: about"),
        (&["--memory", "74MB"], "in q4, "),
        (
            &["--memory", "100MB", "--kv", "f32", "--quantize", "q8"],
            "in q8, 2048 tokens of context, cache in f32",
        ),
        (&["--memory", "100MB", "--context", "300"], "as stored, 300 tokens of context, cache in f16"),
    ] {
        let (code, _, err) = generate(args);
        let lines: Vec<_> = err.lines().collect();
        assert_eq!((code, lines.len()), (Some(0), 1), "{args:?}: {err}");
        assert!(lines[0].starts_with("memory: model ") && lines[0].contains(expected), "{args:?}: {err}");
    }
    let (code, _, err) = generate(&["--context", "300", "--kv", "f16", "--quantize", "q8"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "nothing was chosen");
    let (_, _, err) = generate(&[]);
    assert!(
        err.starts_with("memory: model as stored, 2048 tokens"),
        "without a limit the machine's is taken: {err}"
    );
}

#[test]
fn oversized_model_is_rejected_with_numbers() {
    for (args, expected) in [
        (&["--memory", "60MB"][..], "2.5 MB of weights in q4, 0.8 MB of cache for 512 tokens in q8, "),
        (&["--memory", "70MB", "--quantize", "q8"], "MB of weights in q8,"),
        (
            &["--memory", "100MB", "--context", "2048", "--kv", "f32", "--dtype", "f32"],
            "of cache for 2048 tokens in f32",
        ),
    ] {
        let (code, out, err) = generate(args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}: {err}");
        assert!(err.contains("MB of memory are needed") && err.contains(expected), "{args:?}: {err}");
        assert!(err.contains("hint: ") && err.contains("--memory BYTES"), "{err}");
    }
    // A model that is compared with another one is never quantised to fit.
    let text = MODEL.to_owned() + "/../README.md";
    let (code, _, err) = lm(&["eval", MODEL, &text, "--memory", "75MB", "--context", "64"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("MB of memory are needed") && !err.contains("q4, "), "{err}");
}

#[test]
fn embedded_model_obeys_the_memory_limit() {
    let (code, _, err) = lm(&["generate", "Hello", "--memory", "60MB"]);
    assert_eq!(code, Some(1), "{err}");
    assert_eq!(lm(&["generate", "Hello"]).2, "", "it is small enough to say nothing");
    let (code, _, err) = lm(&["generate", "Hello", "--memory", "much"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("8GB"), "{err}");
}
