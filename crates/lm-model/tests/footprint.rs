//! Memory needs computed before loading equal those of the loaded model.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lm_model::{KvDtype, LoadOptions, ModelFolder, PAGE_LEN, WeightFormat};

/// The folders of the goldens that can be loaded.
fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
    let goldens = lm_model::ALL_ARCHITECTURES.iter().flat_map(|architecture| architecture.goldens);
    goldens.map(|name| root.join(name)).collect()
}

#[test]
fn sizes_match_the_loaded_model() -> Result<()> {
    for path in models() {
        let folder = ModelFolder::open(&path)?;
        let footprint = folder.footprint()?;
        for format in [None, Some(WeightFormat::F32), Some(WeightFormat::Q8), Some(WeightFormat::Q4)] {
            if footprint.quantized().is_some() && format.is_some() {
                continue;
            }
            for kv_dtype in [KvDtype::F16, KvDtype::Q8] {
                let options = LoadOptions { quantization: format, kv_dtype, ..LoadOptions::default() };
                let model = folder.load(&options, &mut |_| {})?.model;
                let shown = path.display();
                let (said, is) = (footprint.weight_bytes(format), model.info().weight_bytes);
                // Small parameters that an architecture keeps in f32 though they have two dimensions are
                // counted as packed.
                let exact = ["llama", "qwen3"].contains(&model.info().architecture.as_str());
                let tolerance = if exact { 0 } else { is / 10 };
                assert!(said.abs_diff(is) <= tolerance, "{shown} {format:?}: {said}, it is {is}");
                // Enough pages for the pool's extra states not to matter.
                let pages = 1 << 14;
                let (said, is) =
                    (footprint.cache_bytes(pages * PAGE_LEN, kv_dtype), model.cache_bytes_per_page());
                let difference = said.abs_diff((pages * is) as u64);
                assert!(difference <= said / 50, "{shown} {kv_dtype:?}: {said}, a page is {is}");
                assert_eq!(footprint.context_len(), model.info().context_len);
            }
        }
    }
    Ok(())
}

#[test]
fn started_page_counts() -> Result<()> {
    // Without states, of which a pool has some more.
    let stateless = models().into_iter().find(|path| path.ends_with("llama-tiny"));
    let footprint = ModelFolder::open(&stateless.context("is there")?)?.footprint()?;
    let bytes = |tokens| footprint.cache_bytes(tokens, KvDtype::F16);
    assert_eq!((bytes(1), bytes(33)), (bytes(PAGE_LEN), 2 * bytes(PAGE_LEN)));
    assert_eq!(bytes(0), 0);
    Ok(())
}
