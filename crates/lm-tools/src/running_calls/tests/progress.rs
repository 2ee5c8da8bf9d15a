use super::{CallEvent, Custom, call, events, last, texts, wait_until};
use crate::{CallContext, CancelHandle, ToolOutput, Toolset, Value};
use serde_json::json;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

fn tools(run: impl Fn(&CallContext) -> Value + Send + Sync + 'static) -> Toolset {
    Toolset::new().with(Custom::new("report", move |_, context| Ok(run(context)).into())).expect("one tool")
}

fn progress(event: &CallEvent) -> Option<&Value> {
    match event {
        CallEvent::Progress { progress, .. } => Some(progress),
        _ => None,
    }
}

#[test]
fn reports_precede_their_result() {
    let tools = tools(|context| {
        context.progress("half");
        context.progress(json!({"done": 2, "of": 2}));
        Value::Null
    });
    let events = events(&tools, vec![call("report", json!({})); 3]);
    assert_eq!(events.len(), 9);
    for index in 0..3 {
        let of_call = events.iter().filter(|event| match event {
            CallEvent::Progress { index: of, .. } => *of == index,
            CallEvent::Finished(result) => result.index == index,
            CallEvent::Retry { .. } => false,
        });
        let of_call: Vec<_> = of_call.collect();
        assert_eq!(of_call.iter().filter_map(|event| progress(event)).count(), 2);
        assert_eq!(progress(of_call[0]), Some(&json!("half")));
        assert!(matches!(of_call[2], CallEvent::Finished(_)), "{of_call:?}");
    }
}

/// A tool that waits for the reader of each report would wait forever if the reader were notified of the
/// first one only.
#[test]
fn each_report_wakes_a_waiting_reader() {
    let (seen, is_seen) = channel();
    let is_seen = Mutex::new(is_seen);
    let tools = tools(move |context| {
        let is_seen = is_seen.lock().expect("one call at a time");
        let is_read = |number: &u64| {
            context.progress(*number);
            is_seen.recv_timeout(Duration::from_secs(20)).is_ok()
        };
        (0..3).take_while(is_read).count().into()
    });
    for is_async in [false, true] {
        let mut running = tools.start(vec![call("report", json!({}))], &CancelHandle::new(), None);
        let mut next = || match is_async {
            true => futures_executor::block_on(running.recv_event()),
            false => running.next_event(),
        };
        let result = loop {
            match next().expect("an event") {
                CallEvent::Finished(result) => break result,
                _ => seen.send(()).expect("the tool waits"),
            }
        };
        assert_eq!(result.message.content.text(), "3", "asynchronous: {is_async}");
    }
}

#[test]
fn last_unread_reports_are_kept() {
    const REPORTS: u64 = 100_000;
    let (done, is_done) = channel();
    let tools = tools(move |context| {
        (0..REPORTS).for_each(|number| context.progress(number));
        let _ = done.send(());
        Value::Null
    });
    let mut running = tools.start(vec![call("report", json!({}))], &CancelHandle::new(), None);
    is_done.recv().expect("the tool does not wait for a reader");
    let events: Vec<_> = std::iter::from_fn(|| running.next_event()).collect();
    let reports: Vec<_> = events.iter().filter_map(progress).filter_map(Value::as_u64).collect();
    assert_eq!(reports, (REPORTS - 32..REPORTS).collect::<Vec<_>>());
    assert_eq!(last(&events).message.content.text(), "null");
}

#[test]
fn endless_reports_do_not_delay_results() {
    let tools = tools(|context| {
        while !context.is_cancelled() {
            context.progress("still here");
        }
        "ended".into()
    });
    let tools = tools.with(Custom::new("quick", |_, _| Ok("quick".into()).into())).expect("two tools");
    let cancel = CancelHandle::new();
    let calls = vec![call("quick", json!({})), call("report", json!({}))];
    let mut running = tools.start(calls.clone(), &cancel, None);
    assert_eq!(running.next().expect("a result").content.text(), "quick");
    cancel.cancel();
    assert_eq!(running.next().expect("a result").content.text(), "ended");
    let cancel = CancelHandle::new();
    let mut running = tools.start(calls, &cancel, None);
    let first = futures_executor::block_on(async {
        loop {
            if let CallEvent::Finished(result) = running.recv_event().await.expect("an event") {
                return result.message.content.text();
            }
        }
    });
    assert_eq!(first, "quick");
    cancel.cancel();
    assert_eq!(running.count(), 1);
}

#[test]
fn long_reports_are_cut_and_deep_ones_omitted() {
    let tools = tools(|context| {
        context.progress("é".repeat(5000));
        context.progress((0..100_000).fold(Value::Null, |value, _| Value::Array(vec![value])));
        context.progress(f64::NAN);
        Value::Null
    });
    let events = events(&tools, vec![call("report", json!({}))]);
    let reports: Vec<_> = events.iter().filter_map(progress).collect();
    assert_eq!(reports[0], &json!(format!("{}\n[cut: 4096 of 10000 bytes]", "é".repeat(2048))));
    assert_eq!(reports[1..], [&Value::Null]);
}

#[test]
fn context_outliving_its_call_is_cancelled_and_silent() {
    let (send, kept) = channel::<CallContext>();
    let send = Mutex::new(send);
    let tools = tools(move |context| {
        let _ = send.lock().expect("no panic").send(context.clone());
        Value::Null
    });
    let calls = vec![call("report", json!({})), call("report", json!({}))];
    let mut running = tools.start(calls, &CancelHandle::new(), None);
    assert!(matches!(running.next_event(), Some(CallEvent::Finished(_))));
    let context = kept.recv().expect("a context");
    context.progress("too late");
    assert!(matches!(running.next_event(), Some(CallEvent::Finished(_))));
    assert_eq!(running.next_event(), None);
    futures_executor::block_on(context.cancelled());
    assert!(context.is_cancelled());
    drop((running, tools));
    context.progress("much too late");
    assert!(context.id().is_some());
}

#[test]
fn direct_call_can_report_without_a_reader() {
    let tools = tools(|context| {
        let direct = CallContext::default();
        direct.progress("unheard");
        json!([direct.is_cancelled(), context.is_cancelled()])
    });
    assert_eq!(texts(&tools, vec![call("report", json!({}))]), ["[false,false]"]);
    let context = CallContext::default();
    context.cancel_handle().cancel();
    futures_executor::block_on(context.cancelled());
    let tool = Custom::new("report", |_, _| ToolOutput::from(Ok(Value::Null)));
    assert_eq!(crate::Tool::call(&tool, crate::Map::new(), &context).wait(), Ok(Value::Null));
    wait_until(|| context.is_cancelled());
}
