//! Panics of libraries under a crate that catches them.

/// Panics of the library are errors of the crate; panics of the crate itself abort the run.
pub fn end_at_own_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if panic.location().is_none_or(|place| !place.file().contains("/registry/")) {
            eprintln!("{panic}");
            std::process::abort();
        }
    }));
}
