//! Greedy choice.

/// Index of the highest value, the first where several tie; `None` when all are -infinity.
///
/// Values are neither NaN nor +infinity.
pub(super) fn argmax(values: &[f32]) -> Option<usize> {
    let mut best = None;
    let mut highest = f32::NEG_INFINITY;
    for (index, &value) in values.iter().enumerate() {
        if value > highest {
            (best, highest) = (Some(index), value);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_highest_wins() {
        const MASKED: f32 = f32::NEG_INFINITY;
        for (values, expected) in [
            (&[1.0, 3.0, 3.0][..], Some(1)),
            (&[MASKED, -5.0], Some(1)),
            (&[f32::MIN], Some(0)),
            (&[MASKED], None),
            (&[], None),
        ] {
            assert_eq!(argmax(values), expected, "{values:?}");
        }
    }
}
