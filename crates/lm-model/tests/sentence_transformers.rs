//! Files of sentence-transformers: defects are named, conversions keep them.

use std::fs;
use std::path::{Path, PathBuf};

use lm_model::{EmbeddingConfig, EmbeddingLayer, ModelFolder, Pooling, WeightFormat};
use serde_json::{Value, json};
use tempfile::TempDir;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Folder of a recipe with the model's files.
fn folder(recipe: &str) -> TempDir {
    let testdata: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/embeddings/sentence-transformers");
    let dir = tempfile::tempdir().unwrap();
    for part in ["model", recipe] {
        copy(&testdata.join(part), dir.path());
    }
    dir
}

fn config(dir: &TempDir) -> lm_model::Result<EmbeddingConfig> {
    ModelFolder::open(dir.path())?.embedding_config()
}

#[test]
fn settings_of_both_versions_are_read() {
    let last = config(&folder("last")).unwrap();
    assert_eq!((last.pooling, last.include_prompt, last.max_tokens), (Pooling::Last, true, None));
    assert_eq!(last.layers, [EmbeddingLayer::Normalize]);
    assert_eq!((last.default_prompt(), last.prompt("document")), ("", Some("")));
    assert!(last.prompt("query").unwrap().starts_with("Instruct: "));
    let dense = config(&folder("mean-dense")).unwrap();
    assert_eq!((dense.pooling, dense.include_prompt, dense.size(64)), (Pooling::Mean, false, 32));
    assert_eq!(dense.default_prompt(), "search_document: ");
    for (recipe, pooling) in [("cls-short", Pooling::Cls), ("mean-short", Pooling::Mean)] {
        let short = config(&folder(recipe)).unwrap();
        assert_eq!((short.pooling, short.max_tokens, short.is_normalized()), (pooling, Some(12), false));
    }
    let dir = folder("last");
    fs::remove_file(dir.path().join("modules.json")).unwrap();
    assert_eq!(config(&dir).unwrap(), EmbeddingConfig::default());
}

#[test]
fn model_of_another_kind_has_the_default() {
    let dir = folder("mean-dense");
    let kind = json!({"model_type": "CrossEncoder", "prompts": {}});
    fs::write(dir.path().join("config_sentence_transformers.json"), kind.to_string()).unwrap();
    let modules = json!([{"type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}]);
    fs::write(dir.path().join("modules.json"), modules.to_string()).unwrap();
    assert_eq!(config(&dir).unwrap(), EmbeddingConfig::default());
}

#[test]
fn unsupported_and_invalid_settings_are_named() {
    let modules = |index: usize, key: &str, value: &str| {
        let mut modules = json!([
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
        ]);
        modules[index][key] = value.into();
        ("modules.json", modules)
    };
    let dense = |key: &str, value: Value| {
        let mut dense = json!({"in_features": 64, "out_features": 48, "bias": false, "activation_function": "torch.nn.modules.linear.Identity"});
        dense[key] = value;
        ("2_Dense/config.json", dense)
    };
    let pooling = |value: Value| ("1_Pooling/config.json", value);
    let known = "supported: Transformer, Pooling, then Dense and Normalize";
    for ((file, value), expected) in [
        (modules(0, "type", "sentence_transformers.models.WordEmbeddings"), "WordEmbeddings"),
        (modules(2, "type", "sentence_transformers.models.LayerNorm"), known),
        (modules(2, "type", "custom.Dense"), "`2.type` is custom.Dense"),
        (modules(1, "type", "sentence_transformers.models.Normalize"), known),
        (modules(0, "path", "0_Transformer"), "`0.path` is 0_Transformer"),
        (modules(1, "path", "../1_Pooling"), "`1.path` is ../1_Pooling"),
        (modules(1, "path", "3_Pooling"), "has no 3_Pooling/config.json"),
        (
            ("modules.json", json!([{"type": "sentence_transformers.models.Transformer"}])),
            "`1.type` is absent",
        ),
        (("modules.json", json!(vec![json!({"type": "x"}); 17])), "at most 16 modules"),
        (
            dense("activation_function", json!("torch.nn.modules.activation.GELU")),
            "GELU, supported: Identity, Tanh",
        ),
        (dense("activation_function", json!("Identity")), "`activation_function` is Identity"),
        (dense("in_features", json!(32)), "`in_features` is 32, expected 64"),
        (dense("out_features", json!(0)), "`out_features` is 0"),
        (dense("out_features", json!(50)), "tensor linear.weight has shape [48, 64], expected [50, 64]"),
        (dense("bias", json!(true)), "linear.bias"),
        (dense("use_residual", json!(true)), "`use_residual` is true"),
        (dense("module_input_name", json!("token_embeddings")), "`module_input_name` is token_embeddings"),
        (
            pooling(json!({"pooling_mode": "max"})),
            "`pooling_mode` is max, supported: one of cls, mean, lasttoken",
        ),
        (pooling(json!({"pooling_mode": ["cls", "mean"]})), "`pooling_mode` is cls, mean"),
        (
            pooling(json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})),
            "`pooling_mode` is cls, mean",
        ),
        (pooling(json!({"pooling_mode_weightedmean_tokens": true})), "weightedmean"),
        (pooling(json!([])), "1_Pooling/config.json is not valid"),
        (("sentence_bert_config.json", json!({"do_lower_case": true})), "`do_lower_case` is true"),
        (("sentence_bert_config.json", json!({"transformer_task": "fill-mask"})), "fill-mask"),
        (
            ("config_sentence_transformers.json", json!({"default_prompt_name": "x"})),
            "`default_prompt_name` is x",
        ),
    ] {
        let dir = folder("mean-dense");
        fs::write(dir.path().join(file), value.to_string()).unwrap();
        let error = anyhow::Error::from(config(&dir).unwrap_err());
        assert!(format!("{error:#}").contains(expected), "{file}: {error:#} does not say {expected:?}");
    }
}

#[test]
fn converted_folder_has_the_same_settings() {
    let (dir, output) = (folder("mean-dense"), tempfile::tempdir().unwrap());
    let copy = output.path().join("q8");
    let original = ModelFolder::open(dir.path()).unwrap();
    original.convert(&copy, WeightFormat::Q8, &mut |_| {}).unwrap();
    let copy = ModelFolder::open(&copy).unwrap();
    assert_eq!(copy.embedding_config().unwrap(), original.embedding_config().unwrap());
}
