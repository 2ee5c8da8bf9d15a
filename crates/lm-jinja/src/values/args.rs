//! Arguments of calls.

use super::value::Value;
use crate::error::{BoxedResult as Result, Error};
use crate::text::Text;

/// Cost of an argument besides its text, in bytes read.
const ARGUMENT_COST: usize = 64;

/// Arguments of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args {
    pub(crate) positional: Vec<Value>,
    /// Keyword arguments; a name taken from a message's keys keeps its origin.
    pub(crate) named: Vec<(Text, Value)>,
}

impl Args {
    /// Positional arguments only.
    pub(crate) fn of(positional: Vec<Value>) -> Self {
        Self { positional, named: Vec::new() }
    }

    /// Binds the arguments to parameters.
    ///
    /// # Errors
    /// If there are too many arguments, or one has an unknown name or is given twice.
    pub(crate) fn bind<const N: usize>(self, parameters: [&str; N]) -> Result<[Option<Value>; N]> {
        if self.positional.len() > N {
            return Err(Error::runtime(format!(
                "takes at most {N} arguments, got {}",
                self.positional.len()
            )));
        }
        let mut bound = [const { None }; N];
        for (index, value) in bound.iter_mut().zip(self.positional) {
            *index = Some(value);
        }
        for (name, value) in self.named {
            let index = parameters.iter().position(|parameter| *parameter == name.as_str());
            let index = index
                .ok_or_else(|| Error::runtime(format!("unexpected keyword argument '{}'", name.as_str())))?;
            if bound[index].replace(value).is_some() {
                return Err(Error::runtime(format!("multiple values for argument '{}'", name.as_str())));
            }
        }
        Ok(bound)
    }

    /// Like [`bind`](Self::bind), for methods without keyword arguments.
    pub(crate) fn bind_positional<const N: usize>(self) -> Result<[Option<Value>; N]> {
        self.bind([""; N])
    }

    /// Cost of reading the arguments: the bytes of their texts, plus a constant per argument.
    pub(crate) fn read_cost(&self) -> usize {
        let values = self.positional.iter().chain(self.named.iter().map(|(_, value)| value));
        values.map(|value| ARGUMENT_COST.saturating_add(value.read_cost())).fold(0, usize::saturating_add)
    }

    /// Nesting depth of the arguments.
    pub(crate) fn depth(&self) -> usize {
        self.positional
            .iter()
            .chain(self.named.iter().map(|(_, value)| value))
            .map(Value::depth)
            .max()
            .unwrap_or(0)
    }

    /// Removes and returns a keyword argument.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.named.iter().position(|(found, _)| found.as_str() == name)?;
        Some(self.named.remove(index).1)
    }
}

/// Returns an argument or an error if it is missing.
pub(crate) fn required(argument: Option<Value>, name: &str) -> Result<Value> {
    argument.ok_or_else(|| Error::runtime(format!("missing argument '{name}'")))
}

/// Returns true if a flag is set.
pub(crate) fn flag(argument: Option<Value>) -> bool {
    argument.is_some_and(|value| value.is_true())
}
