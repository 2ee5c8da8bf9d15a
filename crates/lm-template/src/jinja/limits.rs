//! Limits of a rendering. Templates are untrusted: every loop, traversal and text counts.

use std::cell::Cell;

use super::error::{Error, Failure, Result};

/// Maximum steps of a rendering. The longest of the reference conversations takes some ten thousand.
const MAX_STEPS: u64 = 20_000_000;
/// Maximum bytes of text and lists that a rendering builds, discarded ones included.
const MAX_BUILT_BYTES: u64 = 256 << 20;
/// Maximum bytes of one text, the rendering itself included.
const MAX_TEXT_BYTES: usize = 64 << 20;
/// Bytes read per step.
const BYTES_PER_STEP: usize = 32;
/// Memory of a text besides its characters: the shared header, heap overhead and the first content ranges.
pub(super) const TEXT_BYTES: usize = 192;
/// Memory of a content range in a text, including the spare capacity of a growing list.
pub(super) const RANGE_BYTES: usize = 2 * size_of::<std::ops::Range<usize>>();
/// Maximum nesting depth of values.
pub(super) const MAX_VALUE_DEPTH: usize = 200;
/// Maximum nesting depth of running macros, blocks and expressions.
const MAX_CALL_DEPTH: usize = 400;

/// Remaining budget of a rendering.
#[derive(Debug)]
pub(crate) struct Limits {
    steps: Cell<u64>,
    bytes: Cell<u64>,
    depth: Cell<usize>,
}

impl Limits {
    pub(crate) fn new() -> Self {
        Self::of(MAX_STEPS, MAX_BUILT_BYTES)
    }

    fn of(steps: u64, bytes: u64) -> Self {
        Self { steps: Cell::new(steps), bytes: Cell::new(bytes), depth: Cell::new(0) }
    }

    /// Counts one step: an expression, a statement, or an item of a loop or traversal.
    pub(crate) fn step(&self) -> Result<()> {
        self.steps_taken(1)
    }

    /// Counts a read of this many bytes.
    pub(crate) fn read(&self, bytes: usize) -> Result<()> {
        self.steps_taken((bytes / BYTES_PER_STEP) as u64)
    }

    fn steps_taken(&self, steps: u64) -> Result<()> {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| exceeded("steps", MAX_STEPS))
    }

    /// Counts memory before its allocation.
    pub(crate) fn build(&self, bytes: usize) -> Result<()> {
        let left = self.bytes.get().checked_sub(bytes as u64);
        self.bytes.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| exceeded("bytes of values", MAX_BUILT_BYTES))
    }

    /// Counts `added` bytes for a text that will have `length` bytes.
    pub(crate) fn text(&self, added: usize, length: usize) -> Result<()> {
        if length > MAX_TEXT_BYTES {
            return Err(exceeded("bytes of text", MAX_TEXT_BYTES as u64));
        }
        self.build(added)
    }

    /// Enters a nested call.
    pub(crate) fn deeper(&self) -> Result<()> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > MAX_CALL_DEPTH {
            self.depth.set(self.depth.get() - 1);
            return Err(exceeded("nested calls", MAX_CALL_DEPTH as u64));
        }
        Ok(())
    }

    /// Leaves a nested call.
    pub(crate) fn back(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}

fn exceeded(what: &'static str, limit: u64) -> Error {
    Error::new(Failure::Limit { what, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jinja::{Clock, Template};

    /// Renders with a hundredth of the limits: the counting is the same, and debug builds are slow.
    fn render(source: &str) -> Result<String> {
        let limits = Limits::of(MAX_STEPS / 100, MAX_BUILT_BYTES / 100);
        let (text, _) = Template::new(source)?.render(Vec::new(), Clock::System, &limits)?;
        Ok(text.as_str().to_owned())
    }

    /// Templates that build something large from something small.
    #[test]
    fn growing_templates_end() {
        let doubling = |step: &str| {
            format!(
                "{{% set ns = namespace(x='0123456789', y=[1]) %}}{{% for i in range(64) %}}{step}{{% endfor %}}"
            )
        };
        let cases = [
            doubling("{% set ns.x = ns.x + ns.x %}"),
            doubling("{% set ns.x = ns.x ~ ns.x %}"),
            doubling("{% set ns.x = ns.x * 2 %}"),
            doubling("{% set ns.x = ns.x | replace('0', ns.x) %}"),
            doubling("{% set ns.x = [ns.x, ns.x] | join %}"),
            doubling("{% set ns.x = ns.x.join([ns.x, ns.x]) %}"),
            doubling("{% set ns.x = '%s%s' % (ns.x, ns.x) %}"),
            doubling("{% set ns.x = '{0}{0}'.format(ns.x) %}"),
            doubling("{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
            doubling("{% set ns.x = (ns.x, ns.x) | string %}"),
            doubling("{% set ns.x = [ns.x, ns.x] | tojson %}"),
            doubling("{% set ns.x = ns.x | indent(ns.x, true) ~ ns.x %}"),
            doubling("{% set ns.y = ns.y + ns.y %}"),
            doubling("{% set ns.y = ns.y * 2 %}"),
            doubling("{% set ns.y = [ns.y, ns.y] %}{{ ns.y }}"),
            doubling("{% set ns.y = [ns.y, ns.y] %}{{ ns.y == [ns.y[0], ns.y[0]] }}"),
            doubling("{% set ns.y = [ns.y, ns.y] %}{{ ns.y | tojson }}"),
            "{{ 'x' * 10 ** 30 }}".to_owned(),
            "{{ [1] * 10 ** 30 }}".to_owned(),
            "{{ 'x'.ljust(10 ** 30) }}{{ 'x' | center(10 ** 30) }}".to_owned(),
            "{{ '%*d' % (10 ** 30, 1) }}".to_owned(),
            "{{ '{:1000000000}'.format(1) }}".to_owned(),
            "{{ 'a\tb'.expandtabs(10 ** 30) }}".to_owned(),
            "{{ 'a\nb' | indent(10 ** 30) }}".to_owned(),
            "{{ [1] | tojson(indent=10 ** 30) }}".to_owned(),
            "{{ [1] | batch(10 ** 30, 0) | list }}".to_owned(),
            "{{ [1] | slice(10 ** 30) | list }}".to_owned(),
            "{{ 10 ** 1000 }}".to_owned(),
            "{{ range(10 ** 30) }}".to_owned(),
            "{% for a in range(10000) %}{% for b in range(10000) %}{% set x = a %}{% endfor %}{% endfor %}"
                .to_owned(),
        ];
        for source in cases {
            let failure = render(&source).expect_err(&source).into_failure();
            assert!(matches!(failure, Failure::Limit { .. } | Failure::Runtime(_)), "{source}: {failure:?}");
        }
    }
}
