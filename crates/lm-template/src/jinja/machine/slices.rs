//! Python's slices.

use super::Machine;
use crate::jinja::error::{Error, Result};
use crate::jinja::text::{Text, TextWriter};
use crate::jinja::value::{Range, Value};

impl Machine<'_> {
    /// `value[start:stop:step]`.
    pub(super) fn slice(&mut self, value: &Value, bounds: [Option<i128>; 3]) -> Result<Value> {
        let places = |len| Places::new(bounds, len);
        match value {
            Value::Undefined(missing) => Err(missing.error()),
            Value::Text(text) => Ok(Value::Text(self.slice_text(text, bounds)?)),
            Value::List(items) | Value::Tuple(items) => {
                let places = places(items.values.len())?;
                self.limits.build(places.count * size_of::<Value>())?;
                let values = places.map(|place| items.values[place].clone()).collect();
                if matches!(value, Value::List(_)) {
                    Value::list(values, self.limits)
                } else {
                    Value::tuple(values, self.limits)
                }
            }
            Value::Range(range) => Ok(Value::Range(places(range.len())?.of(range).into())),
            other => {
                Err(Error::runtime(format!("'{}' object is not subscriptable by a slice", other.type_name())))
            }
        }
    }

    fn slice_text(&self, text: &Text, bounds: [Option<i128>; 3]) -> Result<Text> {
        self.limits.read(text.len())?;
        let places = Places::new(bounds, text.count())?;
        let starts = text.as_str().char_indices().map(|(start, _)| start).chain([text.len()]);
        if places.step == 1 {
            let start = starts.clone().nth(places.next).unwrap_or(text.len());
            let end = starts.clone().nth(places.next + places.count).unwrap_or(text.len());
            return text.slice(start..end.max(start), self.limits);
        }
        self.limits.build(text.len() * size_of::<usize>())?;
        let starts: Vec<usize> = starts.collect();
        let mut writer = TextWriter::new(self.limits);
        for place in places {
            writer.slice(text, starts[place]..starts[place + 1])?;
        }
        Ok(writer.finish().with_markup(text.is_markup()))
    }
}

/// The indices that a slice selects.
struct Places {
    next: usize,
    count: usize,
    step: i128,
}

impl Places {
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
            count: usize::try_from(count).unwrap_or(0),
            step,
        })
    }
}

impl Places {
    /// The selection from a range, which is a range again.
    fn of(&self, range: &Range) -> Range {
        let bounded = |number: i128| number.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let step = i128::from(range.step).saturating_mul(self.step);
        let start = i128::from(range.start) + i128::from(range.step) * self.next as i128;
        let stop = start.saturating_add(step.saturating_mul(self.count as i128));
        Range { start: bounded(start), stop: bounded(stop), step: bounded(step) }
    }
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let place = self.next;
        self.next = usize::try_from(place as i128 + self.step).unwrap_or(0);
        Some(place)
    }
}
