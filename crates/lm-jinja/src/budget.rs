//! Limits of a rendering, and their remainder. Templates are untrusted: every loop, traversal and text
//! counts.

use std::cell::Cell;

use crate::error::{BoxedResult as Result, Error};

/// Bytes read per step.
const BYTES_PER_STEP: usize = 32;
/// Memory of a text besides its characters: the shared header, heap overhead and the first content ranges.
pub(crate) const TEXT_BYTES: usize = 192;
/// Memory of a content range in a text, including the spare capacity of a growing list.
pub(crate) const RANGE_BYTES: usize = 2 * size_of::<std::ops::Range<usize>>();
/// Maximum nesting depth of values.
pub(crate) const MAX_VALUE_DEPTH: usize = 200;
/// Maximum nesting depth of running macros, blocks and expressions.
const MAX_CALL_DEPTH: usize = 400;

/// Limits of a rendering. Nesting is limited in addition: 400 calls, values of 200 levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of steps: expressions, statements, items of loops and traversals, and every 32 bytes
    /// read. [default: 20 million]
    pub steps: u64,
    /// Maximum bytes of all values built, discarded ones included. [default: 256 MiB]
    pub value_bytes: u64,
    /// Maximum bytes of one text, the rendering itself included. [default: 64 MiB]
    pub text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 20_000_000, value_bytes: 256 << 20, text_bytes: 64 << 20 }
    }
}

/// Remaining resources of a rendering.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    steps: Cell<u64>,
    bytes: Cell<u64>,
    depth: Cell<usize>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            steps: Cell::new(limits.steps),
            bytes: Cell::new(limits.value_bytes),
            depth: Cell::new(0),
        }
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
        left.map(drop).ok_or_else(|| exceeded("steps", self.limits.steps))
    }

    /// Counts memory before its allocation.
    pub(crate) fn build(&self, bytes: usize) -> Result<()> {
        let left = self.bytes.get().checked_sub(bytes as u64);
        self.bytes.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| exceeded("bytes of values", self.limits.value_bytes))
    }

    /// Counts `added` bytes for a text that will have `length` bytes.
    pub(crate) fn text(&self, added: usize, length: usize) -> Result<()> {
        if length > self.limits.text_bytes {
            return Err(exceeded("bytes of text", self.limits.text_bytes as u64));
        }
        self.build(added)
    }

    /// Enters a nested call.
    pub(crate) fn enter(&self) -> Result<()> {
        self.depth.set(self.depth.get() + 1);
        if self.depth.get() > MAX_CALL_DEPTH {
            self.depth.set(self.depth.get() - 1);
            return Err(exceeded("nested calls", MAX_CALL_DEPTH as u64));
        }
        Ok(())
    }

    /// Leaves a nested call.
    pub(crate) fn leave(&self) {
        self.depth.set(self.depth.get() - 1);
    }
}

fn exceeded(resource: &'static str, limit: u64) -> Box<Error> {
    Box::new(Error::Limit { resource, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RenderOptions, Template};

    /// Renders with a hundredth of the limits: the counting is the same, and debug builds are slow.
    fn render(source: &str) -> crate::Result<String> {
        let Limits { steps, value_bytes, text_bytes } = Limits::default();
        let limits = Limits { steps: steps / 100, value_bytes: value_bytes / 100, text_bytes };
        let options = RenderOptions { limits, ..RenderOptions::default() };
        Ok(Template::new(source)?.render(&Default::default(), &options)?.text().to_owned())
    }

    /// Templates that build something large from something small.
    #[test]
    fn growing_templates_stop_at_the_budget() {
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
            let error = render(&source).expect_err(&source);
            assert!(matches!(error, Error::Limit { .. } | Error::Runtime { .. }), "{source}: {error:?}");
        }
    }
}
