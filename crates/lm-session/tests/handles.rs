//! Thread safety of the handles, and the end of the worker thread.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::support::random_model;
use lm_model::testing::HookedLm;
use lm_session::testing::{loaded, scripted_engine};
use lm_session::{CancelHandle, Engine, EngineSettings, GenerateParams, Generation, Session, SessionConfig};

#[test]
fn handles_cross_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Engine>();
    sync::<Engine>();
    send::<Session>();
    send::<Generation>();
    send::<CancelHandle>();
    sync::<CancelHandle>();
}

/// Sends a message when it is dropped.
struct Farewell(Sender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn model_is_freed_with_its_last_handle() {
    let (farewell, gone) = channel();
    let farewell = Farewell(farewell);
    let before = move |_: &_| {
        let _held = &farewell;
        Ok(())
    };
    let model = HookedLm::new(Arc::new(random_model())).before_pass(before);
    let engine = Engine::new(loaded(model), EngineSettings::default()).unwrap();
    let other = engine.clone();
    let mut session = engine.session(SessionConfig::default()).unwrap();
    drop((engine, other));
    session.prefill(&[1, 2, 3]).unwrap();
    assert!(gone.try_recv().is_err(), "a session keeps the engine alive");
    drop(session);
    gone.recv_timeout(Duration::from_secs(60)).expect("the worker thread ends");
}

#[test]
fn engine_serves_several_threads() {
    let engine = scripted_engine(["one"; 8]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut session = engine.session(SessionConfig::default()).unwrap();
                session.prefill(&engine.tokenizer().encode("number?").unwrap()).unwrap();
                let (text, _) = session.generate(GenerateParams::default()).into_text().unwrap();
                assert_eq!(text, "one");
            });
        }
    });
}
