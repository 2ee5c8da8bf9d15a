//! The patch embedding in the order of the checkpoint.

use lm_formats::{Error, GgufTensor, Result};

use crate::gguf::{Clip, PatchOrder};

/// The patch embedding of a file, whose channels are the second dimension.
pub(super) const PATCHES: &str = "v.patch_embd.weight";
/// The patch embedding of the second of two frames.
pub(super) const SECOND_FRAME: &str = "v.patch_embd.weight.1";

/// A tensor in memory: its shape and bytes.
pub(super) struct Reordered {
    pub(super) tensor: GgufTensor,
    pub(super) bytes: Vec<u8>,
}

/// Reads the patch embedding in another order than the file's; `None` if the order is the same.
pub(super) fn reordered(clip: &Clip<'_>, order: PatchOrder) -> Result<Option<Reordered>> {
    let frames: &[&str] = match order {
        PatchOrder::Same => return Ok(None),
        PatchOrder::ChannelsLast => &[PATCHES],
        PatchOrder::Frames => &[PATCHES, SECOND_FRAME],
    };
    let mut found = Vec::new();
    for name in frames {
        let missing =
            || Error::MissingTensor { location: clip.shard.name.clone(), tensor: (*name).to_owned() };
        found.push(clip.tensor(name).ok_or_else(missing)?);
    }
    let first = found[0];
    for tensor in &found {
        check(clip, tensor, first)?;
    }
    let [hidden, channels, height, width] = *first.shape.as_slice() else { unreachable!("it was checked") };
    let bytes: Vec<_> = found.iter().map(|tensor| &clip.shard.bytes[tensor.range.clone()]).collect();
    let (area, size) = (height * width, first.ty.block_bytes());
    let mut out = Vec::with_capacity(bytes.iter().map(|frame| frame.len()).sum());
    let shape = match order {
        PatchOrder::ChannelsLast => {
            for row in bytes[0].chunks_exact(channels * area * size) {
                for place in 0..area {
                    let channel = |channel: usize| &row[(channel * area + place) * size..][..size];
                    (0..channels).for_each(|index| out.extend_from_slice(channel(index)));
                }
            }
            vec![hidden, area * channels]
        }
        PatchOrder::Same | PatchOrder::Frames => {
            for start in (0..hidden * channels).map(|plane| plane * area * size) {
                bytes.iter().for_each(|frame| out.extend_from_slice(&frame[start..start + area * size]));
            }
            vec![hidden, channels, bytes.len(), height, width]
        }
    };
    let tensor = GgufTensor { shape, range: 0..out.len(), ..first.clone() };
    Ok(Some(Reordered { tensor, bytes: out }))
}

/// Checks that a frame has four dimensions without an empty one, those of the first, and whole elements.
fn check(clip: &Clip<'_>, tensor: &GgufTensor, first: &GgufTensor) -> Result<()> {
    let (file, name) = (clip.shard.name.clone(), tensor.name.clone());
    if tensor.shape.len() != 4 || tensor.shape.contains(&0) || tensor.shape != first.shape {
        let expected = first.shape.iter().copied().chain([1; 4]).take(4).map(|len| len.max(1)).collect();
        return Err(Error::TensorShape { file, tensor: name, expected, got: tensor.shape.clone() });
    }
    if tensor.ty.block_len() != 1 || tensor.ty != first.ty {
        let (got, supported) = (tensor.ty.to_string(), "F32, F16, BF16, and both frames alike".to_owned());
        return Err(Error::TensorDtype { file, tensor: name, got, supported });
    }
    Ok(())
}
