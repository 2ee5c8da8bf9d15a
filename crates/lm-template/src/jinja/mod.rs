//! The Jinja environment that chat templates expect: Jinja2 as transformers sets it up.

mod dict;
mod filters;
mod functions;
mod json_text;
mod marked;
mod methods;
mod python_text;
mod source;
mod tests;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error};

pub(crate) use dict::Dict;
pub(crate) use functions::{Clock, Raised};
pub(crate) use marked::{CLOSE, GENERATION_CLOSE, GENERATION_OPEN, MARKS, OPEN};

/// Instructions a rendering may take. The longest of the reference conversations takes a few thousand.
pub(crate) const MAX_INSTRUCTIONS: u64 = 20_000_000;

/// The name of the one template of an environment.
pub(crate) const TEMPLATE: &str = "chat_template";

/// An environment with this template compiled in it.
pub(crate) fn environment(template: &str) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(MAX_INSTRUCTIONS));
    environment.set_formatter(|out, _, value| {
        let text = python_text::str(value)?;
        out.write_str(&text).map_err(Error::from)
    });
    environment.set_unknown_method_callback(|_, value, method, args| methods::call(value, method, args));
    filters::add(&mut environment);
    tests::add(&mut environment);
    functions::add(&mut environment, Clock::System);
    environment.add_template_owned(TEMPLATE, source::prepare(template))?;
    Ok(environment)
}

/// The same environment with another clock behind `strftime_now`.
pub(crate) fn set_clock(environment: &mut Environment<'static>, clock: Clock) {
    functions::add(environment, clock);
}
