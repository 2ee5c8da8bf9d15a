//! Progress bars on standard error.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lm_model::LoadProgress;

/// Interval of a progress bar's updates: one small file is many steps, and a terminal over a network shows
/// each.
const REDRAW: Duration = Duration::from_millis(100);

/// Returns a function that updates a progress bar at most once in [`REDRAW`], and at the end.
pub fn show_on(bar: &ProgressBar) -> impl FnMut(LoadProgress) {
    let mut next = Instant::now();
    move |progress| {
        let now = Instant::now();
        if now >= next || progress.done_bytes == progress.total_bytes {
            show_progress(bar, progress);
            next = now + REDRAW;
        }
    }
}

/// Updates a progress bar; one without a length, which is drawn empty, keeps none until the total is known.
fn show_progress(bar: &ProgressBar, progress: LoadProgress) {
    if progress.total_bytes > 0 {
        bar.set_length(progress.total_bytes);
    }
    bar.set_position(progress.done_bytes);
}

/// Creates a progress bar of unknown length on standard error, hidden if that is not a terminal.
pub fn progress_bar(what: &'static str) -> ProgressBar {
    let style = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}";
    on_stderr(style).with_message(what)
}

/// Creates a progress bar on standard error that counts `unit` up to `len`, hidden if that is not a terminal.
pub fn counting_bar(what: &'static str, unit: &str, len: usize) -> ProgressBar {
    let bar = on_stderr(&format!("{{msg}} {{wide_bar}} {{pos}}/{{len}} {unit}, {{eta}} left"));
    bar.set_length(len as u64);
    bar.with_message(what)
}

/// Creates a progress bar on standard error for a prompt of `tokens`, hidden if that is not a terminal. Its
/// prefix is the time left.
pub fn prefill_bar(tokens: usize) -> ProgressBar {
    let bar = on_stderr("reading the prompt {wide_bar} {pos}/{len} tokens, {prefix} left");
    bar.set_length(tokens as u64);
    bar
}

/// Creates a line on standard error that shows the current step, hidden if that is not a terminal.
pub fn status_line() -> ProgressBar {
    on_stderr("{msg}")
}

fn on_stderr(style: &str) -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, target).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_model::LoadPhase;

    #[test]
    fn bar_is_empty_until_the_total_is_known() {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let show = |done_bytes, total_bytes| {
            show_progress(&bar, LoadProgress { phase: LoadPhase::Done, done_bytes, total_bytes });
            (bar.length(), bar.position())
        };
        assert_eq!(show(0, 0), (None, 0), "a length of 0 is drawn full");
        assert_eq!(show(0, 8), (Some(8), 0));
        assert_eq!(show(8, 8), (Some(8), 8));
    }
}
