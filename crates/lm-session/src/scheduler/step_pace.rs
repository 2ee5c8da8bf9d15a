//! Prompt rows of a step, based on the duration of earlier steps.

use std::time::Duration;

/// Minimum prompt rows of a step, so that a prompt always progresses, and its rows before the first
/// measurement.
const MIN_ROWS: usize = 8;
/// Duration of a step of long prompts alone, relative to the budget of a step with decode rows.
const LONG_STEP: f64 = 10.0;
/// Minimum rows of such a step, and its rows before the first measurement: fewer rows take more time each.
const MIN_LONG_ROWS: usize = 128;
/// Weight of the newest step in the moving averages.
const NEWEST: f64 = 0.3;
/// Duration of a draft row before the first measurement, relative to a decode step.
const DRAFT_ROW: f64 = 0.25;
/// Weight of that in the average after a step without draft rows, so that an outlier does not end speculation
/// forever.
const RECOVERY: f64 = 0.02;

/// Estimate of the duration of a step: a constant for the decode rows, and a duration per prompt row.
///
/// All are exponential moving averages. Decode rows count as a constant, because a step with few rows takes
/// as long as reading the weights. A prompt row beside decode rows takes up to twice as long as one of a
/// prompt alone, since kernels for few rows are slower, so that these are averages of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepPace {
    budget: Duration,
    /// Seconds of a step without prompt rows.
    decode: Option<f64>,
    /// Seconds per prompt row beyond that, beside decode rows.
    prompt_row: Option<f64>,
    /// Seconds per prompt row of a step without decode rows.
    long_row: Option<f64>,
    /// Duration per draft row beyond that, relative to it.
    draft_row: f64,
}

impl StepPace {
    /// Creates a pace for steps of up to `budget` while a session decodes.
    pub fn new(budget: Duration) -> Self {
        Self { budget, decode: None, prompt_row: None, long_row: None, draft_row: DRAFT_ROW }
    }

    /// Returns the number of prompt rows, at most `chunk`, that a step with decode rows takes within the
    /// budget; `chunk` for [`Duration::MAX`].
    pub fn prompt_rows(&self, chunk: usize) -> usize {
        let left = self.budget.as_secs_f64() - self.decode.unwrap_or(0.0);
        self.rows(self.prompt_row, left, MIN_ROWS, chunk)
    }

    /// Returns the same for a step without decode rows while another model waits for the device.
    pub fn shared_rows(&self, chunk: usize) -> usize {
        self.rows(self.long_row, self.budget.as_secs_f64(), MIN_ROWS, chunk)
    }

    /// Returns the number of rows, at most `chunk`, that a step of long prompts alone takes, so that a
    /// request that arrives meanwhile or a cancellation does not wait longer than for ten budgets or 128
    /// rows; `chunk` for [`Duration::MAX`].
    pub fn long_rows(&self, chunk: usize) -> usize {
        self.rows(self.long_row, LONG_STEP * self.budget.as_secs_f64(), MIN_LONG_ROWS, chunk)
    }

    /// Rows of a duration each that take `seconds`: `least` of them at least, and before the first
    /// measurement.
    fn rows(&self, row: Option<f64>, seconds: f64, least: usize, chunk: usize) -> usize {
        if self.budget == Duration::MAX {
            return chunk;
        }
        let rows = match row {
            None => least,
            Some(row) if row > 0.0 => (seconds.max(0.0) / row) as usize,
            Some(_) => usize::MAX,
        };
        rows.max(least).min(chunk)
    }

    /// Returns the duration of a draft row, relative to a step without one.
    pub fn draft_row(&self) -> f64 {
        self.draft_row
    }

    /// Returns `seconds` relative to a decode step; [`DRAFT_ROW`] where one of them was not measured.
    pub fn relative(&self, seconds: Option<f64>) -> f64 {
        let decode = self.decode.filter(|&decode| decode > 0.0);
        seconds.zip(decode).map_or(DRAFT_ROW, |(seconds, decode)| seconds / decode)
    }

    /// Records the duration of a step without decode rows.
    pub fn record_prompts(&mut self, rows: usize, elapsed: Duration) {
        if rows > 0 {
            average(&mut self.long_row, elapsed.as_secs_f64() / rows as f64);
        }
    }

    /// Records the duration of a step with decode rows.
    pub fn record(&mut self, prompt_rows: usize, draft_rows: usize, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let beyond = (seconds - self.decode.unwrap_or(0.0)).max(0.0);
        if prompt_rows > 0 {
            average(&mut self.prompt_row, beyond / (prompt_rows + draft_rows) as f64);
        } else if draft_rows == 0 {
            average(&mut self.decode, seconds);
            self.draft_row += RECOVERY * (DRAFT_ROW - self.draft_row);
        } else if let Some(decode) = self.decode.filter(|&decode| decode > 0.0) {
            self.draft_row += NEWEST * (beyond / draft_rows as f64 / decode - self.draft_row);
        }
    }
}

fn average(mean: &mut Option<f64>, newest: f64) {
    *mean = Some(mean.map_or(newest, |mean| mean + NEWEST * (newest - mean)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn first_steps_take_few_rows() {
        let pace = StepPace::new(ms(50));
        assert_eq!((pace.prompt_rows(512), pace.prompt_rows(5)), (MIN_ROWS, 5));
    }

    #[test]
    fn prompt_rows_fill_the_rest_of_the_budget() {
        let mut pace = StepPace::new(ms(50));
        pace.record(0, 0, ms(10));
        pace.record(100, 0, ms(60)); // 0.5 ms a row beyond the 10 ms.
        assert_eq!(pace.prompt_rows(512), 80);
        assert_eq!(pace.prompt_rows(64), 64);
    }

    #[test]
    fn rows_follow_the_speed_of_steps() {
        let mut pace = StepPace::new(ms(50));
        pace.record(100, 0, ms(100));
        let before = pace.prompt_rows(512);
        for _ in 0..20 {
            pace.record(before, 0, ms(4 * before as u64));
        }
        assert!((12..=13).contains(&pace.prompt_rows(512)), "{pace:?}");
        for _ in 0..40 {
            pace.record(12, 0, ms(1));
        }
        assert!(pace.prompt_rows(512) > 500, "{pace:?}");
    }

    #[test]
    fn long_prompts_run_in_steps_of_half_a_second() {
        let mut pace = StepPace::new(ms(50));
        assert_eq!((pace.long_rows(512), pace.long_rows(100)), (MIN_LONG_ROWS, 100));
        pace.record_prompts(128, ms(256)); // 2 ms a row.
        assert_eq!((pace.long_rows(512), pace.shared_rows(512)), (250, 25));
        (0..20).for_each(|_| pace.record_prompts(128, ms(1280)));
        assert_eq!(pace.long_rows(512), MIN_LONG_ROWS);
        (0..40).for_each(|_| pace.record_prompts(128, ms(12)));
        assert_eq!(pace.long_rows(512), 512);
        assert_eq!(StepPace::new(Duration::MAX).long_rows(512), 512);
        assert_eq!(pace.prompt_rows(512), MIN_ROWS, "no row beside decode rows was measured");
        pace.record(8, 0, ms(40));
        assert_eq!(pace.long_rows(512), 512, "nor does such a row count for prompts alone");
    }

    #[test]
    fn prompt_progresses_beside_full_decoding() {
        let mut pace = StepPace::new(ms(50));
        pace.record(0, 0, ms(80));
        pace.record(10, 0, ms(100));
        assert_eq!(pace.prompt_rows(512), MIN_ROWS);
        let mut free = StepPace::new(ms(50));
        free.record(0, 0, ms(80));
        free.record(10, 0, ms(80)); // No time beyond the decode rows' was measured.
        assert_eq!(free.prompt_rows(512), 512);
    }

    #[test]
    fn draft_row_cost_ignores_outliers() {
        let mut pace = StepPace::new(ms(50));
        assert_eq!(pace.draft_row(), DRAFT_ROW);
        pace.record(0, 0, ms(10));
        (0..40).for_each(|_| pace.record(0, 4, ms(30))); // 5 ms a row beyond the 10 ms.
        assert!((pace.draft_row() - 0.5).abs() < 1e-3, "{pace:?}");
        pace.record(0, 1, ms(1000));
        assert!(pace.draft_row() > 10.0);
        (0..300).for_each(|_| pace.record(0, 0, ms(10)));
        assert!((pace.draft_row() - DRAFT_ROW).abs() < 0.1, "{pace:?}");
        assert_eq!(pace.prompt_rows(512), MIN_ROWS, "no prompt row was measured");
    }
}
