//! Progress bar of a prompt's prefill.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar};
use lm_session::PrefillProgress;

use crate::progress;

/// Shortest prefill that has a bar.
const SHORTEST: Duration = Duration::from_secs(1);

/// Progress bar of the prefill of one prompt after another, on standard error.
pub struct PrefillBar {
    /// Start of the current prompt.
    since: Instant,
    bar: Option<ProgressBar>,
}

impl PrefillBar {
    /// Creates the bar, hidden; a prompt starts now.
    pub fn new() -> Self {
        Self { since: Instant::now(), bar: None }
    }

    /// Starts the next prompt; the bar is hidden.
    pub fn restart(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.since = Instant::now();
    }

    /// Shows the progress of a prompt that takes at least [`SHORTEST`]. A complete one hides the bar.
    pub fn show(&mut self, progress: &PrefillProgress) {
        match time_left(progress, self.since.elapsed()) {
            None => self.restart(),
            Some(left) if self.bar.is_none() && self.since.elapsed() + left < SHORTEST => {}
            Some(left) => {
                let tokens = progress.prompt_tokens;
                let bar = self.bar.get_or_insert_with(|| progress::prefill_bar(tokens));
                bar.set_position((progress.cached_tokens + progress.prefilled_tokens) as u64);
                bar.set_prefix(HumanDuration(left).to_string());
            }
        }
    }
}

/// Estimates the rest of a prefill that has run for `elapsed`; `None` if it is complete.
fn time_left(progress: &PrefillProgress, elapsed: Duration) -> Option<Duration> {
    let PrefillProgress { cached_tokens, prefilled_tokens, prompt_tokens } = *progress;
    let left = prompt_tokens.saturating_sub(cached_tokens + prefilled_tokens);
    (left > 0).then(|| elapsed.mul_f64(left as f64 / prefilled_tokens.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_that_of_the_rate_so_far_without_cached_tokens() {
        let progress =
            |prefilled_tokens| PrefillProgress { cached_tokens: 1000, prefilled_tokens, prompt_tokens: 5000 };
        let elapsed = Duration::from_secs(2);
        assert_eq!(time_left(&progress(1000), elapsed), Some(Duration::from_secs(6)));
        assert_eq!(time_left(&progress(4000), elapsed), None);
        assert!(time_left(&progress(0), elapsed) > Some(elapsed));
    }

    #[test]
    fn bar_is_shown_for_long_prompts_only() {
        let mut bar = PrefillBar::new();
        let progress = PrefillProgress { cached_tokens: 0, prefilled_tokens: 999, prompt_tokens: 1000 };
        bar.show(&progress);
        assert!(bar.bar.is_none(), "it is complete in no time");
        bar.since = Instant::now().checked_sub(SHORTEST).expect("a second ago");
        bar.show(&progress);
        assert_eq!(bar.bar.as_ref().map(ProgressBar::position), Some(999));
        bar.show(&PrefillProgress { prefilled_tokens: 1000, ..progress });
        assert!(bar.bar.is_none());
    }
}
