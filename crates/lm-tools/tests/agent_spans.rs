//! Spans of an agent's turn, by the names of OpenTelemetry's conventions. Alone in its program: with one
//! subscriber, `tracing` asks that of the thread that is first at a span whether the span is wanted.

use lm_tools::testing::{ScriptedReply, scripted_engine};
use lm_tools::{Agent, Toolset};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Fields of a span, with its name and that of its parent.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<(u64, Fields)>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collected {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let span = context.span(id).expect("the span");
        fields.0.insert("name".to_owned(), span.name().to_owned());
        let parent = span.parent().map(|parent| parent.name().to_owned()).unwrap_or_default();
        fields.0.insert("parent".to_owned(), parent);
        self.0.lock().expect("no panic").push((id.into_u64(), fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.0.lock().expect("no panic");
        if let Some((_, fields)) = spans.iter_mut().rev().find(|(span, _)| *span == id.into_u64()) {
            values.record(fields);
        }
    }
}

#[test]
fn spans_follow_the_genai_conventions() {
    let collected = Collected::default();
    let subscriber = tracing_subscriber::registry().with(collected.clone());
    let reply = tracing::subscriber::with_default(subscriber, || {
        let call = ScriptedReply::call("divide", serde_json::json!({"a": 1}));
        let engine = scripted_engine([call, ScriptedReply::text("Sorry.")]);
        let spec = lm_tools::ToolSpec::new("divide", "Divide.", serde_json::json!({"type": "object"}));
        let refuse =
            |_| Err(lm_tools::ToolError::new(lm_tools::ToolErrorKind::NotFound, "there is no such number"));
        let tools = Toolset::new().with_fn(spec, refuse).expect("one tool");
        let mut agent = Agent::builder(&engine, tools).name("abacus").build().expect("an agent");
        agent.run("1 divided by 1?").expect("an answer")
    });
    let spans = collected.0.lock().expect("no panic").clone();
    let of =
        |name: &str| spans.iter().map(|(_, fields)| &fields.0).filter(|span| span["name"] == name).collect();
    let [turns, chats, calls]: [Vec<&BTreeMap<String, String>>; 3] =
        ["invoke_agent", "chat", "execute_tool"].map(of);
    assert_eq!((turns.len(), chats.len(), calls.len()), (1, 2, 1));
    let usage = reply.usage();
    let expected = [
        ("otel.name", "invoke_agent abacus".to_owned()),
        ("gen_ai.operation.name", "invoke_agent".to_owned()),
        ("gen_ai.agent.name", "abacus".to_owned()),
        ("gen_ai.request.model", "fake".to_owned()),
        ("gen_ai.usage.input_tokens", usage.prompt_tokens.to_string()),
        ("gen_ai.usage.output_tokens", usage.output_tokens.to_string()),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens.to_string()),
    ];
    expected.into_iter().for_each(|(key, value)| assert_eq!(turns[0][key], value, "{key}"));
    let reasons: Vec<_> = chats.iter().map(|chat| chat["gen_ai.response.finish_reasons"].as_str()).collect();
    assert_eq!(reasons, ["tool_call", "stop"]);
    assert!(chats.iter().chain(&calls).all(|span| span["parent"] == "invoke_agent"));
    let id = reply.steps[0].call.id.clone().expect("an id");
    let expected = [
        ("otel.name", "execute_tool divide"),
        ("gen_ai.tool.name", "divide"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.call.id", id.as_str()),
        ("error.type", "not_found"),
    ];
    expected.into_iter().for_each(|(key, value)| assert_eq!(calls[0][key], value, "{key}"));
}
