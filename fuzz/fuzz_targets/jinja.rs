//! An untrusted template over untrusted variables: it ends within its limits, the same way twice, and its
//! segments join to its text. The input is the template, a NUL, and the variables as JSON.

#![no_main]

use std::ops::Range;

use libfuzzer_sys::{Corpus, fuzz_target};
use lm_jinja::{Clock, Error, Limits, Map, Origin, RenderOptions, Rendering, Template, Value};

/// Far below the defaults, so that an input at the limits ends soon.
const LIMITS: Limits = Limits { steps: 200_000, value_bytes: 16 << 20, text_bytes: 1 << 16 };

fuzz_target!(|input: &str| -> Corpus {
    let (source, variables) = input.split_once('\0').unwrap_or((input, "{}"));
    let Ok(variables) = serde_json::from_str::<Map<String, Value>>(variables) else { return Corpus::Reject };
    match Template::new(source) {
        Ok(template) => render(&template, &variables),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Corpus::Keep
});

fn render(template: &Template, variables: &Map<String, Value>) {
    let clock = Clock::Fixed("2025-03-14T15:09:26".parse().expect("a time"));
    let options = RenderOptions { clock, limits: LIMITS, origin: &|_| Origin::Content };
    let once = template.render(variables, &options);
    match &once {
        Ok(rendering) => check(rendering),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let again = template.clone().render(variables, &options);
    let text = |rendering: &Result<Rendering, Error>| match rendering {
        Ok(rendering) => rendering.text().to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(text(&once), text(&again));
}

fn check(rendering: &Rendering) {
    let text = rendering.text();
    assert!(text.len() <= LIMITS.text_bytes, "{} bytes", text.len());
    let segments: Vec<(Origin, &str)> = rendering.segments().collect();
    assert!(segments.iter().all(|(_, segment)| !segment.is_empty()));
    assert_eq!(segments.iter().map(|(_, segment)| *segment).collect::<String>(), text);
    let inside = |range: &Range<usize>| text.get(range.clone()).is_some();
    assert!(rendering.generation().iter().all(inside));
}
