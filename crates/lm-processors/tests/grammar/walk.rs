//! Random texts of a grammar, as from an untrained model.

use llguidance::Matcher;
use lm_processors::{CallBody, Dialect};

use super::random::Random;

/// Pieces for random texts: those of the dialect, and parts of values.
pub struct Pieces {
    ends: Vec<String>,
    others: Vec<String>,
}

const VALUES: [&str; 36] = [
    "a", "b", "x", " ", "0", "7", "12", "-", ".5", "e3", "null", "None", "true", "True", "false", "[", "]",
    "{", "}", "(", ")", "\"", "'", "\\\"", "\\n", ",", ":", "=", "<", "</", "\n", "é", "😀", "[1]",
    "[\"a\"]", "{\"k\": ",
];

impl Pieces {
    pub fn of(dialect: &Dialect) -> Self {
        let mut ends: Vec<String> = ["\"", "'", "]", "}", ")", "\"]", "\"}"].map(str::to_owned).into();
        let mut others: Vec<String> = VALUES.map(str::to_owned).into();
        for syntax in dialect.calls.iter().take(1) {
            let mut marks = vec![syntax.section.close, syntax.call.close];
            match syntax.body {
                CallBody::Parameters(call) => {
                    marks.extend([call.value.close, call.end, call.key.close]);
                    ends.push(format!("{}{}", call.value.before_close, call.value.close));
                    others.extend([call.value.open, call.key.open, call.name.open].map(str::to_owned));
                }
                CallBody::Braces(call) => marks.push(call.quote),
                CallBody::Named(call) => marks.extend([call.after_name, call.after_arguments]),
                CallBody::Json(_) | CallBody::Python(_) => {}
            }
            ends.extend(marks.iter().map(|mark| (*mark).to_owned()));
            others.extend([syntax.section.open, syntax.call.open].map(str::to_owned));
        }
        ends.retain(|piece| !piece.is_empty());
        others.retain(|piece| !piece.is_empty());
        Self { ends, others }
    }
}

/// A whole text that the grammar accepts; `None` if it does not end within `limit` bytes.
pub fn walk(matcher: &Matcher, pieces: &Pieces, random: &mut Random<'_>, limit: usize) -> Option<String> {
    let mut matcher = matcher.deep_clone();
    let mut text: Vec<u8> = Vec::new();
    while text.len() < limit {
        if matcher.is_stopped() {
            return matcher
                .stop_reason()
                .is_ok()
                .then(|| String::from_utf8(text).expect("the grammar writes UTF-8"));
        }
        // A complete text ends with some probability; a long one as soon as it can.
        let long = text.len() > limit / 4;
        if matcher.is_accepting().unwrap_or(false) && (long || random.chance(4)) {
            return Some(String::from_utf8(text).expect("the grammar writes UTF-8"));
        }
        let mut forced: Vec<u8> = matcher.compute_ff_tokens().iter().map(|token| *token as u8).collect();
        if forced.is_empty() {
            forced = piece(&mut matcher, pieces, random, long)?;
        }
        let tokens: Vec<u32> = forced.iter().map(|byte| u32::from(*byte)).collect();
        matcher.consume_tokens(&tokens).expect("the bytes were allowed");
        text.extend(forced);
    }
    None
}

/// A piece that may come next, or a byte.
fn piece(matcher: &mut Matcher, pieces: &Pieces, random: &mut Random<'_>, long: bool) -> Option<Vec<u8>> {
    for attempt in 0..12 {
        let all = if attempt % 2 == 0 || long { &pieces.ends } else { &pieces.others };
        let all = if !long && random.chance(3) { &pieces.others } else { all };
        let piece = &all[random.below(all.len() as u64) as usize];
        let tokens: Vec<u32> = piece.bytes().map(u32::from).collect();
        if matcher.validate_tokens(&tokens).is_ok_and(|taken| taken == tokens.len()) {
            return Some(piece.as_bytes().to_vec());
        }
    }
    let mask = matcher.compute_mask().ok()?;
    let allowed: Vec<u8> = (0..=255u8).filter(|byte| mask.is_allowed(u32::from(*byte))).collect();
    (!allowed.is_empty()).then(|| vec![random.one_of(&allowed)])
}
