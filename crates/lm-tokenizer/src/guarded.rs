//! Conversion of the tokenizer library's panics to errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Error, Result};

/// Runs `work` of the library, which panics on some files instead of rejecting them (on a malformed character
/// map, for example), and sometimes only when it encodes. An object that has panicked is not used again.
///
/// The program's panic hook prints the panic's message; a program built with `panic = "abort"` ends.
///
/// # Errors
/// [`Error::Library`] with the library's message.
pub(crate) fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(Error::Library),
        Err(panic) => Err(Error::Library(message(&*panic).into())),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the tokenizer library gave up: {}", text.unwrap_or("it did not say why"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_an_error_with_its_text() {
        for (work, expected) in [
            ((|| panic!("at {}", 7)) as fn() -> tokenizers::Result<()>, "gave up: at 7"),
            (|| panic!("plainly"), "gave up: plainly"),
            (|| Err("refused".into()), "refused"),
        ] {
            let error = guarded(work).expect_err("is an error");
            let cause = std::error::Error::source(&error).expect("has a cause").to_string();
            assert!(cause.contains(expected), "{cause}");
        }
        assert!(guarded(|| Ok(1)).is_ok_and(|one| one == 1));
    }
}
