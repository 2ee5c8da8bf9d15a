//! A second opinion: minijinja beside this engine, on the reference renderings and on generated templates.
//! Each difference belongs to a class of `classes.rs` in which Jinja2 sides with this engine.

mod classes;
mod engines;
mod generated;
mod goldens;
mod grammar;
