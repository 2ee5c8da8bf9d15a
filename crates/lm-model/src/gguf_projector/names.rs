//! Names of an `mmproj` file's tensors in the checkpoint of its family.

use std::collections::BTreeSet;

use crate::gguf::{Clip, GgufProjector, Numbering, TensorList, TensorNames};

/// Names of the two projections of a feed-forward block.
const UP: &str = "ffn_up";
const DOWN: &str = "ffn_down";

/// Names in the checkpoint.
pub(super) struct Names<'a> {
    rules: &'static GgufProjector,
    clip: &'a Clip<'a>,
    /// Width of the tower.
    width: usize,
    /// Numbers of each list in the file, in ascending order.
    numbers: Vec<Vec<usize>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(rules: &'static GgufProjector, clip: &'a Clip<'a>, width: usize) -> Self {
        let mut numbers = vec![BTreeSet::new(); rules.lists.len()];
        for tensor in clip.shard.file.tensors() {
            if let Some((list, number, _)) = in_list(rules, &tensor.name) {
                numbers[list].insert(number);
            }
        }
        Self {
            rules,
            clip,
            width,
            numbers: numbers.into_iter().map(|all| all.into_iter().collect()).collect(),
        }
    }

    /// Returns the tensor's name in the checkpoint; `None` if the family lacks it.
    pub(super) fn of(&self, name: &str) -> Option<String> {
        let Some((index, number, part)) = in_list(self.rules, name) else {
            return renamed(self.rules.tensors, name);
        };
        let list = &self.rules.lists[index];
        let place = match list.numbering {
            Numbering::Same => number,
            Numbering::Places => self.numbers[index].binary_search(&number).ok()?,
        };
        let part = if self.is_swapped(list, number) { swapped(part) } else { part.to_owned() };
        Some(format!("{}{place}.{}", list.model, renamed(list.names, &part)?))
    }

    /// Modules of the checkpoint stored in parts: name of the module's tensor, names of the parts, all in the
    /// checkpoint.
    pub(super) fn joined(&self) -> Vec<(String, Vec<String>)> {
        let mut all = Vec::new();
        for (list, numbers) in self.rules.lists.iter().zip(&self.numbers) {
            let Some((module, parts)) = list.joined else { continue };
            for number in numbers {
                for ending in ["weight", "bias"] {
                    let of_part = |part: &str| self.of(&format!("{}{number}.{part}.{ending}", list.file));
                    let parts = parts.iter().filter_map(|part| of_part(part)).collect();
                    all.push((format!("{}{number}.{module}.{ending}", list.model), parts));
                }
            }
        }
        all
    }

    /// Early converters named the two projections of a feed-forward block the other way round; their shapes
    /// show it.
    fn is_swapped(&self, list: &TensorList, number: usize) -> bool {
        let down = self.clip.tensor(&format!("{}{number}.{DOWN}.weight", list.file));
        down.is_some_and(
            |down| matches!(*down.shape, [rows, cols] if rows != self.width && cols == self.width),
        )
    }
}

/// Tensors of audio, which are not supported here.
pub(super) fn is_of_audio(name: &str) -> bool {
    ["a.", "mm.a."].iter().any(|prefix| name.starts_with(prefix))
}

/// Looks up the whole name, or its stem without the suffix that both names share.
fn renamed(names: TensorNames, name: &str) -> Option<String> {
    let find = |name: &str| names.iter().find(|row| row.0 == name).map(|row| row.1);
    let of_stem = || {
        let (stem, ending) = name.rsplit_once('.')?;
        Some(format!("{}.{ending}", find(stem)?))
    };
    find(name).map(str::to_owned).or_else(of_stem)
}

/// Splits `v.blk.7.ln1.weight` into the index of its list, `7` and `ln1.weight`.
fn in_list<'n>(rules: &GgufProjector, name: &'n str) -> Option<(usize, usize, &'n str)> {
    rules.lists.iter().enumerate().find_map(|(index, list)| {
        let (number, part) = name.strip_prefix(list.file)?.split_once('.')?;
        Some((index, number.parse().ok()?, part))
    })
}

fn swapped(part: &str) -> String {
    match part.split_once('.') {
        Some((UP, ending)) => format!("{DOWN}.{ending}"),
        Some((DOWN, ending)) => format!("{UP}.{ending}"),
        _ => part.to_owned(),
    }
}
