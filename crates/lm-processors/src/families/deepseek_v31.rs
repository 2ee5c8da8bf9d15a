//! DeepSeek V3.1: like V3, with the arguments right after the name.

use super::Family;
use super::deepseek_v3;
use super::think_tags::THINK;
use crate::dialect::Dialect;
use crate::dialect_processor::DialectProcessor;

pub(super) const FAMILY: Family = Family {
    markers: &[&["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"]],
    model_names: &["deepseek-v3.1"],
    ..Family::of(&DialectProcessor::new(&DIALECT))
};

const DIALECT: Dialect =
    Dialect { name: "deepseek_v31", channels: &[THINK], calls: &[deepseek_v3::CALLS], ..Dialect::PLAIN };
