//! Python's slices.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::text::{Text, TextWriter};
use crate::values::{Range, Value};

impl Interpreter<'_> {
    /// `value[start:stop:step]`.
    pub(super) fn slice(&mut self, value: &Value, bounds: [Option<i128>; 3]) -> Result<Value> {
        let indices = |len| SliceIndices::new(bounds, len);
        match value {
            Value::Undefined(undefined) => Err(undefined.error()),
            Value::Text(text) => Ok(Value::Text(self.slice_text(text, bounds)?)),
            Value::List(items) | Value::Tuple(items) => {
                let indices = indices(items.values.len())?;
                self.budget.build(indices.count * size_of::<Value>())?;
                let values = indices.map(|index| items.values[index].clone()).collect();
                if matches!(value, Value::List(_)) {
                    Value::list(values, self.budget)
                } else {
                    Value::tuple(values, self.budget)
                }
            }
            Value::Range(range) => Ok(Value::Range(indices(range.len())?.of(range).into())),
            other => {
                Err(Error::runtime(format!("'{}' object is not subscriptable by a slice", other.type_name())))
            }
        }
    }

    fn slice_text(&self, text: &Text, bounds: [Option<i128>; 3]) -> Result<Text> {
        self.budget.read(text.len())?;
        let indices = SliceIndices::new(bounds, text.count())?;
        let starts = text.as_str().char_indices().map(|(start, _)| start).chain([text.len()]);
        if indices.step == 1 {
            let start = starts.clone().nth(indices.next).unwrap_or(text.len());
            let end = starts.clone().nth(indices.next + indices.count).unwrap_or(text.len());
            return text.slice(start..end.max(start), self.budget);
        }
        self.budget.build(text.len() * size_of::<usize>())?;
        let starts: Vec<usize> = starts.collect();
        let mut writer = TextWriter::new(self.budget);
        for index in indices {
            writer.slice(text, starts[index]..starts[index + 1])?;
        }
        Ok(writer.finish().with_markup(text.is_markup()))
    }
}

/// The indices that a slice selects.
struct SliceIndices {
    next: usize,
    /// Bound after the last index, which a range keeps.
    stop: i128,
    count: usize,
    step: i128,
}

impl SliceIndices {
    fn new([start, stop, step]: [Option<i128>; 3], len: usize) -> Result<Self> {
        let step = step.unwrap_or(1).clamp(-i128::from(i64::MAX), i64::MAX.into());
        if step == 0 {
            return Err(Error::runtime("slice step cannot be zero"));
        }
        let len = len as i128;
        let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let bound = |bound: i128| {
            let bound = if bound < 0 { bound.saturating_add(len) } else { bound };
            bound.clamp(low, high)
        };
        let start = start.map_or(if step > 0 { low } else { high }, bound);
        let stop = stop.map_or(if step > 0 { high } else { low }, bound);
        let span = if step > 0 { stop - start } else { start - stop };
        let count = (span.max(0) + step.abs() - 1) / step.abs();
        Ok(Self {
            next: usize::try_from(start).unwrap_or(0),
            stop,
            count: usize::try_from(count).unwrap_or(0),
            step,
        })
    }
}

impl SliceIndices {
    /// The selection from a range, which is a range again.
    fn of(&self, range: &Range) -> Range {
        let bounded = |number: i128| number.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let step = i128::from(range.step).saturating_mul(self.step);
        let start = i128::from(range.start) + i128::from(range.step) * self.next as i128;
        let stop = i128::from(range.start) + i128::from(range.step) * self.stop;
        Range { start: bounded(start), stop: bounded(stop), step: bounded(step) }
    }
}

impl Iterator for SliceIndices {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let index = self.next;
        self.next = usize::try_from(index as i128 + self.step).unwrap_or(0);
        Some(index)
    }
}
