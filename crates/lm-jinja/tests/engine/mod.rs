//! Tests of the engine: snippets against Jinja2, a comparison with minijinja, limits.

mod limits;
mod snippets;
