//! Known wrong cells, with the cause. They are counted in the table, and do not fail the test.

/// A schema with wrong cells.
struct Departure {
    schema: &'static str,
    /// Affected dialects; all of them if empty.
    dialects: &'static [&'static str],
    #[expect(dead_code, reason = "for the reader")]
    cause: &'static str,
}

const DEPARTURES: &[Departure] = &[Departure {
    schema: "long_length",
    dialects: &["functiongemma", "functiongemma_prewritten", "gemma4", "minimax_m3"],
    cause: "a counted text beside excluded markers exceeds the lexer's limits while it is written",
}];

/// Returns true if wrong cells of this schema and dialect are known.
pub fn is_known(schema: &str, dialect: &str) -> bool {
    let concerns = |departure: &&Departure| {
        departure.schema == schema && (departure.dialects.is_empty() || departure.dialects.contains(&dialect))
    };
    DEPARTURES.iter().any(|departure| concerns(&departure))
}
