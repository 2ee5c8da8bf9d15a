//! Tracing output of the engine: a span for each step, and no text above `trace`.

use std::fmt;
use std::sync::{Arc, Mutex};

use lm_session::testing::scripted_engine;
use lm_session::{GenerateParams, SessionConfig};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Records every span, event and field above `trace`.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn note(&self, line: String) {
        self.0.lock().expect("no note panics").push(line);
    }
}

impl Visit for &Notes {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.note(format!("{field}={value:?}"));
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("lm_session")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(span.metadata().name().to_owned());
        span.record(&mut &*self);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut &*self);
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn step_spans_are_typed_and_omit_text() {
    let notes = Notes::default();
    tracing::subscriber::set_global_default(notes.clone()).expect("the only test of this file");
    let engine = scripted_engine(["secret!"]);
    let mut session = engine.session(SessionConfig::default()).expect("the config is valid");
    let prompt = engine.tokenizer().encode("secret?").expect("text can be encoded");
    session.prefill(&prompt).expect("the prompt fits");
    let (text, finished) = session.generate(GenerateParams::default()).into_text().expect("the fake answers");
    assert_eq!(text, "secret!");
    let notes = notes.0.lock().expect("no note panics").clone();
    let count = |line: &str| notes.iter().filter(|note| *note == line).count();
    assert_eq!(count("prefill"), 1, "{notes:?}");
    assert_eq!(count(&format!("rows={}", prompt.len())), 1, "{notes:?}");
    let steps = finished.usage.output_tokens - finished.usage.accepted_tokens;
    assert_eq!(count("decode_step"), steps - 1, "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("elapsed_ms=")), "{notes:?}");
    assert!(notes.contains(&format!("output_tokens={}", finished.usage.output_tokens)), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("secret") || note.contains("ecr")), "{notes:?}");
}
