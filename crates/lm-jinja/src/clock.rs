//! The clock of `strftime_now`.

use jiff::civil::DateTime;

/// Start of the seconds of `%s`.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The clock of `strftime_now`.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    /// The interpreter's clock, in local time.
    #[default]
    System,
    /// A fixed time, in UTC for seconds since 1970 (`%s`).
    Fixed(DateTime),
}

impl Clock {
    /// The time, and the seconds since the start of 1970.
    pub(crate) fn now(self) -> (DateTime, i64) {
        match self {
            Clock::System => {
                let now = jiff::Zoned::now();
                (now.datetime(), now.timestamp().as_second())
            }
            Clock::Fixed(now) => (now, now.duration_since(EPOCH).as_secs()),
        }
    }
}
