//! Handle to a processor.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::processor::ModelDataProcessor;

/// Handle to a processor: that of a [family](crate::ALL), or one of the program. Clones share it.
///
/// A program's own one is a [`DialectProcessor`](crate::DialectProcessor) with a dialect of the program, or
/// an implementation of [`ModelDataProcessor`].
///
/// ```
/// use lm_processors::{
///     CallBody, CallSyntax, Dialect, DialectProcessor, JsonCall, ParserOptions, Processor, ReadCalls, Tags,
/// };
///
/// const DIALECT: Dialect = Dialect {
///     name: "arrows",
///     calls: &[CallSyntax::new(Tags::new("<<", ">>"), CallBody::Json(JsonCall::ONE))],
///     ..Dialect::PLAIN
/// };
/// let processor = Processor::new(DialectProcessor::new(&DIALECT));
/// let options = ParserOptions { calls: ReadCalls::Always, ..ParserOptions::default() };
/// let message = processor.to_message(r#"<<{"name": "now", "arguments": {}}>>"#, &options)?;
/// assert_eq!((processor.name(), message.tool_calls[0].name.as_str()), ("arrows", "now"));
/// # Ok::<(), lm_processors::Error>(())
/// ```
#[derive(Clone)]
pub struct Processor(Owner);

#[derive(Clone)]
enum Owner {
    Family(&'static dyn ModelDataProcessor),
    Program(Arc<dyn ModelDataProcessor>),
}

impl Processor {
    /// Takes a processor of the program.
    pub fn new(processor: impl ModelDataProcessor + 'static) -> Self {
        Self(Owner::Program(Arc::new(processor)))
    }
}

impl Deref for Processor {
    type Target = dyn ModelDataProcessor;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Owner::Family(processor) => *processor,
            Owner::Program(processor) => &**processor,
        }
    }
}

impl From<&'static dyn ModelDataProcessor> for Processor {
    fn from(processor: &'static dyn ModelDataProcessor) -> Self {
        Self(Owner::Family(processor))
    }
}

impl From<Arc<dyn ModelDataProcessor>> for Processor {
    fn from(processor: Arc<dyn ModelDataProcessor>) -> Self {
        Self(Owner::Program(processor))
    }
}

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Processor").field(&self.name()).finish()
    }
}
