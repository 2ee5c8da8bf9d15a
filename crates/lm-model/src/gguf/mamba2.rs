//! Mamba-2 layers and delta nets in GGUF files.

use lm_formats::Result;
use serde_json::{Map, Value};

use super::{Description, TensorNames};

/// Tensors of a Mamba-2 layer in GGUF files.
pub(crate) const MAMBA2_TENSORS: TensorNames = &[
    ("ssm_a", "mamba.A_log"),
    ("ssm_conv1d", "mamba.conv1d"),
    ("ssm_d", "mamba.D"),
    ("ssm_dt.bias", "mamba.dt_bias"),
    ("ssm_in", "mamba.in_proj"),
    ("ssm_norm", "mamba.norm"),
    ("ssm_out", "mamba.out_proj"),
];

/// Returns the width of all heads together and sets that of one head under `head_dim`.
pub(crate) fn put_inner_size(
    model: &Description<'_>,
    config: &mut Map<String, Value>,
    head_dim: &str,
) -> Result<usize> {
    let (width, heads) = (model.required_size("ssm.inner_size")?, model.required_size("ssm.time_step_rank")?);
    if heads == 0 || !width.is_multiple_of(heads) {
        let expected = format!("a divisor of {} = {width}", model.key("ssm.inner_size"));
        return Err(model.metadata.invalid(&model.key("ssm.time_step_rank"), heads, expected));
    }
    config.insert(head_dim.to_owned(), (width / heads).into());
    Ok(width)
}

/// Returns true if some layer of the file has this tensor.
pub(crate) fn has_tensor(model: &Description<'_>, tensor: &str) -> Result<bool> {
    let mut layers = 0..model.num_layers()?;
    Ok(layers.any(|layer| model.tensor(&format!("blk.{layer}.{tensor}")).is_some()))
}
