//! The scripts that generate reference data in the repository, as data.

/// A script that generates reference data.
pub(super) struct Script {
    pub(super) name: &'static str,
    /// Folder in which it runs.
    pub(super) folder: &'static str,
    /// Command line: a Python file, or a JavaScript file for Node, and its arguments.
    pub(super) command: &'static [&'static str],
    /// Python packages; [`VERSIONS`] has their versions.
    pub(super) packages: &'static [&'static str],
    /// Input that neither the repository nor a package has.
    pub(super) needs: Option<Need>,
    /// Files and folders that it writes.
    pub(super) writes: &'static [&'static str],
}

/// Input of a script that neither the repository nor a Python package has.
#[derive(Clone, Copy)]
pub(super) enum Need {
    /// llama.cpp's converter, whose folder is the script's first argument.
    LlamaCpp,
    /// The shared reference data (`LM_SHARED`).
    SharedData,
}

/// Versions of the Python packages. Those of models/pocket/recipe/requirements.txt are the same.
pub(super) const VERSIONS: &[(&str, &str)] = &[
    ("compressed-tensors", "0.20.0"),
    ("gguf", "0.19.0"),
    ("jinja2", "3.1.6"),
    ("lark", "1.3.1"),
    ("llama-cpp-python", LLAMA_CPP_PYTHON),
    ("numpy", "2.4.6"),
    ("peft", "0.21.2"),
    ("pillow", "12.3.0"),
    ("safetensors", "0.8.0"),
    ("sentence-transformers", "6.2.0"),
    ("soundfile", "0.14.0"),
    ("tokenizers", "0.23.3"),
    ("torch", "2.15.0"),
    ("torchaudio", "2.11.0"),
    ("torchvision", "0.29.2"), // the release that fits torch 2.15.0; the files do not record theirs
    ("transformers", "5.23.0"),
];

/// Version of llama-cpp-python, whose source package contains llama.cpp.
pub(super) const LLAMA_CPP_PYTHON: &str = "0.3.36";

const NODE: &[&str] = &[];
const TRANSFORMERS: &[&str] = &["jinja2", "numpy", "safetensors", "tokenizers", "torch", "transformers"];
const IMAGES: &[&str] =
    &["jinja2", "numpy", "pillow", "safetensors", "tokenizers", "torch", "torchvision", "transformers"];

/// The scripts in dependency order: `models` before those that read its checkpoints, `vision` before `audio`
/// and `vision/mmproj`, `tokenizers/gguf` before `tokenizers/llama-cpp`.
pub(super) const SCRIPTS: &[Script] = &[
    Script {
        name: "models",
        folder: "testdata/models",
        command: &["generate.py"],
        packages: TRANSFORMERS,
        needs: None,
        writes: &["testdata/models"],
    },
    Script {
        name: "adapters",
        folder: "testdata/adapters",
        command: &["generate.py"],
        packages: &["peft", "safetensors", "torch", "transformers"],
        needs: None,
        writes: &["testdata/adapters"],
    },
    Script {
        name: "embeddings",
        folder: "testdata/embeddings",
        command: &["generate.py"],
        packages: TRANSFORMERS,
        needs: None,
        writes: &["testdata/embeddings/golden.json"],
    },
    Script {
        name: "embeddings/sentence-transformers",
        folder: "testdata/embeddings",
        command: &["generate_sentence_transformers.py"],
        packages: &["sentence-transformers", "tokenizers", "torch", "transformers"],
        needs: None,
        writes: &["testdata/embeddings/sentence-transformers"],
    },
    Script {
        name: "encoders",
        folder: "testdata/encoders",
        command: &["generate.py"],
        packages: &["safetensors", "sentence-transformers", "tokenizers", "torch", "transformers"],
        needs: None,
        writes: &["testdata/encoders"],
    },
    Script {
        name: "encoders/gguf",
        folder: "testdata/encoders",
        command: &["gguf.py"],
        packages: &["gguf", "numpy", "safetensors", "torch", "transformers"],
        needs: Some(Need::LlamaCpp),
        writes: &["testdata/encoders/gguf"],
    },
    Script {
        name: "rerank",
        folder: "testdata/rerank",
        command: &["generate.py"],
        packages: &["safetensors", "tokenizers", "torch", "transformers"],
        needs: None,
        writes: &["testdata/rerank/model", "testdata/rerank/golden.json"],
    },
    Script {
        name: "groups",
        folder: "testdata/groups",
        command: &["generate.py"],
        packages: &["compressed-tensors", "numpy", "safetensors", "torch", "transformers"],
        needs: None,
        writes: &["testdata/groups"],
    },
    Script {
        name: "imatrix",
        folder: "testdata/imatrix",
        command: &["generate.py"],
        packages: &["gguf", "numpy", "tokenizers", "torch", "transformers"],
        needs: None,
        writes: &["testdata/imatrix"],
    },
    Script {
        name: "gguf",
        folder: "testdata/gguf",
        command: &["generate.py"],
        packages: TRANSFORMERS,
        needs: Some(Need::LlamaCpp),
        writes: &["testdata/gguf"],
    },
    Script {
        name: "ggml",
        folder: "testdata/ggml",
        command: &["generate.py"],
        packages: &["gguf", "numpy"],
        needs: None,
        writes: &["testdata/ggml", "crates/lm-kernels/src/host/pack/ggml/grids.rs"],
    },
    Script {
        name: "media",
        folder: "testdata/media",
        command: &["generate.py"],
        packages: IMAGES,
        needs: None,
        writes: &["testdata/media"],
    },
    Script {
        name: "media/pillow",
        folder: "testdata/media/pillow",
        command: &["generate.py"],
        packages: &["numpy", "pillow"],
        needs: None,
        writes: &["testdata/media/pillow/golden.json"],
    },
    Script {
        name: "sound",
        folder: "testdata/sound",
        command: &["generate.py"],
        packages: &["numpy", "soundfile", "torch", "torchaudio", "transformers"],
        needs: None,
        writes: &["testdata/sound"],
    },
    Script {
        name: "sound/headers",
        folder: "testdata/sound/headers",
        command: &["generate.py"],
        packages: &["numpy", "soundfile"],
        needs: None,
        writes: &["testdata/sound/headers/golden.json"],
    },
    Script {
        name: "vision",
        folder: "testdata/vision",
        command: &["generate.py"],
        packages: IMAGES,
        needs: None,
        writes: &["testdata/vision"],
    },
    Script {
        name: "vision/mmproj",
        folder: "testdata/vision",
        command: &["generate_mmproj.py"],
        packages: IMAGES,
        needs: Some(Need::LlamaCpp),
        writes: &["testdata/vision/mmproj"],
    },
    Script {
        name: "audio",
        folder: "testdata/audio",
        command: &["generate.py"],
        packages: &[
            "jinja2",
            "numpy",
            "pillow",
            "safetensors",
            "tokenizers",
            "torch",
            "torchaudio",
            "torchvision",
            "transformers",
        ],
        needs: None,
        writes: &["testdata/audio"],
    },
    Script {
        name: "templates",
        folder: "testdata/templates",
        command: &["generate.py"],
        packages: TRANSFORMERS,
        needs: None,
        writes: &["testdata/templates/pocket.json"],
    },
    Script {
        name: "templates/jinja",
        folder: "testdata/templates",
        command: &["generate_jinja.py"],
        packages: &["jinja2", "transformers"],
        needs: None,
        writes: &["testdata/templates/jinja.json", "testdata/templates/minijinja.json"],
    },
    Script {
        name: "tokenizers",
        folder: "testdata/tokenizers",
        command: &["generate.py"],
        packages: &["jinja2", "tokenizers", "transformers"],
        needs: Some(Need::SharedData),
        writes: &["testdata/tokenizers/ids.json"],
    },
    Script {
        name: "tokenizers/gguf",
        folder: "testdata/tokenizers",
        command: &["generate_gguf.py"],
        packages: &["gguf", "tokenizers", "torch", "transformers"],
        needs: None,
        writes: &["testdata/tokenizers/gguf.json"],
    },
    Script {
        name: "tokenizers/llama-cpp",
        folder: "testdata/tokenizers",
        command: &["generate_llama_cpp.py"],
        packages: &["gguf", "llama-cpp-python"],
        needs: None,
        writes: &["testdata/tokenizers/llama_cpp.json"],
    },
    Script {
        name: "grammars",
        folder: "testdata/grammars",
        command: &["generate.py", "../gguf/qwen3-tiny-q8_0.gguf"],
        packages: &["lark", "llama-cpp-python"],
        needs: None,
        writes: &["testdata/grammars/golden.json"],
    },
    Script {
        name: "tools",
        folder: "testdata/tools",
        command: &["generate.py"],
        packages: &["transformers"],
        needs: None,
        writes: &["testdata/tools/get_json_schema.json"],
    },
    Script {
        name: "schemas",
        folder: "testdata/schemas",
        command: &["ecma.js", "600", "1", "ecma.json"],
        packages: NODE,
        needs: None,
        writes: &["testdata/schemas/ecma.json"],
    },
    Script {
        name: "filters",
        folder: "crates/lm-session/tests/data",
        command: &["filters.py"],
        packages: &["torch", "transformers"],
        needs: None,
        writes: &["crates/lm-session/tests/data/filters.json"],
    },
    Script {
        name: "pocket",
        folder: "models/pocket/recipe",
        command: &["evaluate.py", "--write", "../eval"],
        packages: TRANSFORMERS,
        needs: None,
        writes: &["models/pocket/eval/eval.jsonl", "models/pocket/eval/documented.jsonl"],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tree::Tree;

    /// Scripts beside the generators that have no row, with the reason; a folder ends in `/`.
    const OTHERS: &[(&str, &str)] = &[
        (
            "models/pocket/recipe/generate.py",
            "module of evaluate.py; writes conversations that are not committed",
        ),
        ("testdata/encoders/rows.py", "module of generate.py"),
        ("testdata/encoders/tokenizer.py", "module of generate.py"),
        ("testdata/grammars/cases.py", "module of generate.py"),
        ("testdata/gguf/logits_of_llama_cpp.py", "prints a comparison"),
        ("testdata/gguf/read_ours.py", "prints a comparison"),
        ("testdata/groups/compressed.py", "module of generate.py"),
        ("testdata/models/accuracy.py", "prints a comparison"),
        ("testdata/models/faults.py", "module of generate.py"),
        ("testdata/models/random_checkpoint.py", "writes a checkpoint that is not committed"),
        ("testdata/models/rows/", "modules of generate.py"),
        ("testdata/schemas/validate.py", "validates the output of a test"),
        ("testdata/schemas/validate_samples.py", "validates the output of a test"),
    ];

    /// Returns true for a script below `testdata` or a crate's `tests/data`, and for one named `generate…`.
    fn is_candidate(path: &str) -> bool {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let is_script = [".py", ".js", ".mjs", ".sh"].iter().any(|suffix| file.ends_with(suffix));
        let is_data = format!("{folder}/").contains("/tests/data/") || path.starts_with("testdata/");
        is_script && (is_data || file.starts_with("generate"))
    }

    fn path(script: &Script) -> String {
        format!("{}/{}", script.folder, script.command[0])
    }

    fn is_other(found: &str) -> bool {
        OTHERS.iter().any(|(path, _)| found == *path || (path.ends_with('/') && found.starts_with(path)))
    }

    #[test]
    fn every_generator_has_a_row() {
        let tree = Tree::read().expect("the checkout");
        let rows: BTreeSet<_> = SCRIPTS.iter().map(path).collect();
        let missing: Vec<_> = tree
            .texts("")
            .map(|(found, _)| found)
            .filter(|found| is_candidate(found) && !rows.contains(*found) && !is_other(found))
            .collect();
        assert!(missing.is_empty(), "no row in SCRIPTS and no reason in OTHERS: {missing:#?}");
    }

    #[test]
    fn rows_and_exceptions_name_what_is_there() {
        let tree = Tree::read().expect("the checkout");
        for script in SCRIPTS {
            let script_path = path(script);
            for named in script.writes.iter().copied().chain([&*script_path]) {
                assert!(tree.exists(named), "{}: {named}", script.name);
            }
            for package in script.packages {
                assert!(VERSIONS.iter().any(|(name, _)| name == package), "{}: {package}", script.name);
            }
        }
        for (path, _) in OTHERS {
            assert!(tree.exists(path.trim_end_matches('/')), "{path}");
        }
        let names: BTreeSet<_> = SCRIPTS.iter().map(|script| script.name).collect();
        assert_eq!(names.len(), SCRIPTS.len());
    }

    #[test]
    fn versions_are_those_of_the_pocket_recipe() {
        let tree = Tree::read().expect("the checkout");
        let requirements = tree.text("models/pocket/recipe/requirements.txt").expect("the recipe's packages");
        for (name, version) in requirements.lines().filter_map(|line| line.split_once("==")) {
            assert!(VERSIONS.contains(&(name, version)), "{name}=={version}");
        }
    }
}
