//! All reference renderings: 109 published templates, 91 conversations each.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use lm_template::{ContinueField, Error, GenerationPrompt, Prompt, PromptTemplate, RenderInput};
use serde_json::{Map, Value};

use crate::shared;

/// Renderings that differ: template, conversation, variant, and reason. There are none.
const EXCEPTIONS: &[(&str, &str, &str, &str)] = &[];

/// Outcome of one case.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The text is equal.
    Text,
    /// Refused by `raise_exception` with the same message.
    Raised,
    /// Failed, or refused before or after the template, as in the reference.
    Failed,
    /// Fails in Jinja2, with an exception of this class, and renders here: more lenient, but no wrong text.
    Lenient(String),
    Wrong(String),
}

fn render(template: &PromptTemplate, conversation: &Value, variant: &Value) -> Result<Prompt, Error> {
    let mut extra_context = Map::from_iter([("documents".to_owned(), conversation["documents"].clone())]);
    extra_context.extend(variant["kwargs"].as_object().cloned().unwrap_or_default());
    let add = variant["add_generation_prompt"] == true;
    let input = RenderInput {
        messages: conversation["messages"].as_array().expect("a list of messages"),
        tools: &conversation["tools"],
        generation_prompt: if add { GenerationPrompt::Add } else { GenerationPrompt::Omit },
        extra_context: &extra_context,
    };
    match &variant["continue_final_message"] {
        Value::Bool(true) => template.render_to_continue(&input, ContinueField::Content),
        Value::String(field) => template.render_to_continue(&input, ContinueField::Named(field)),
        _ => template.render(&input),
    }
}

pub fn compare(rendered: Result<Prompt, Error>, expected: &Value) -> Outcome {
    let error = &expected["error"];
    let fits = |got: &Error| match error["kind"].as_str() {
        Some("raised") => matches!(got, Error::TemplateRaised { message } if error["message"] == *message),
        Some("continue_final_message") => matches!(got, Error::ContinueFinalMessage { .. }),
        Some("empty_conversation") => *got == Error::EmptyConversation,
        Some(_) => true,
        None => false,
    };
    match (rendered, expected["expected"].as_str()) {
        (Ok(prompt), Some(text)) if prompt.text() == text => Outcome::Text,
        (Ok(prompt), Some(text)) => Outcome::Wrong(format!("got\n{}\nexpected\n{text}", prompt.text())),
        (Err(got), None) if fits(&got) && error["kind"] == "raised" => Outcome::Raised,
        (Err(got), None) if fits(&got) => Outcome::Failed,
        (Ok(_), None) if error["kind"] == "runtime" => {
            let message = error["message"].as_str().unwrap_or_default();
            Outcome::Lenient(message.split(':').next().unwrap_or_default().to_owned())
        }
        (Ok(_), None) => Outcome::Wrong(format!("rendered, expected {error}")),
        (Err(got), _) => Outcome::Wrong(format!("{got}, expected {expected}")),
    }
}

fn spans_fit(prompt: &Prompt, expected: &Value) -> bool {
    let Some(spans) = expected["assistant_spans"].as_array() else { return true };
    let text = prompt.text();
    let characters = |byte: usize| text[..byte].chars().count();
    let got = prompt
        .generation
        .iter()
        .map(|range| Value::from(vec![characters(range.start), characters(range.end)]));
    got.eq(spans.iter().cloned())
}

/// Outcomes of several cases.
#[derive(Default)]
struct Tally {
    texts: usize,
    raised: usize,
    failed: usize,
    /// Number of cases by class of the Python exception.
    lenient: BTreeMap<String, usize>,
    excepted: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, place: [&str; 3], outcome: Outcome) {
        match outcome {
            Outcome::Text => self.texts += 1,
            Outcome::Raised => self.raised += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Lenient(class) => *self.lenient.entry(class).or_default() += 1,
            Outcome::Wrong(_)
                if EXCEPTIONS.iter().any(|(id, scenario, variant, _)| place == [*id, scenario, variant]) =>
            {
                self.excepted += 1;
            }
            Outcome::Wrong(how) => self.wrong.push(format!("{}: {how}", place.join(" "))),
        }
    }

    fn merge(&mut self, other: Self) {
        self.texts += other.texts;
        self.raised += other.raised;
        self.failed += other.failed;
        self.excepted += other.excepted;
        self.wrong.extend(other.wrong);
        for (class, count) in other.lenient {
            *self.lenient.entry(class).or_default() += count;
        }
    }

    fn print(&self) {
        let lenient: usize = self.lenient.values().sum();
        let cases = self.texts + self.raised + self.failed + self.excepted + self.wrong.len() + lenient;
        println!("| of {cases} reference cases | |\n|---|---|");
        println!("| texts equal | {} |", self.texts);
        println!("| `raise_exception` with the same message | {} |", self.raised);
        println!("| other errors that are errors here | {} |", self.failed);
        println!("| errors there that render here | {lenient} {:?} |", self.lenient);
        println!("| exceptions, listed with their reason | {} |", self.excepted);
        println!("| wrong | {} |", self.wrong.len());
    }
}

fn check_case(
    template: &Result<PromptTemplate, Error>,
    conversations: &HashMap<String, Value>,
    expected: &Value,
) -> Outcome {
    let conversation = &conversations[expected["scenario"].as_str().expect("a name")];
    let variants = conversation["variants"].as_array().expect("a list of variants");
    let variant =
        variants.iter().find(|variant| variant["name"] == expected["variant"]).expect("a known variant");
    let rendered =
        template.as_ref().map_err(Clone::clone).and_then(|template| render(template, conversation, variant));
    if rendered.as_ref().is_ok_and(|prompt| !spans_fit(prompt, expected)) {
        return Outcome::Wrong("other spans of generated text".to_owned());
    }
    compare(rendered, expected)
}

fn check_template(folder: &Path, row: &Value, conversations: &HashMap<String, Value>) -> Tally {
    let id = row_id(row);
    let source = std::fs::read_to_string(folder.join(format!("templates/{id}.jinja"))).expect("a template");
    let template = PromptTemplate::new(&source).map(|template| {
        let context = row["context"].as_object().cloned().unwrap_or_default();
        template.with_context(context).with_time("2025-03-14T15:09:26".parse().expect("a time"))
    });
    let golden = shared::json(folder.join(format!("expected/{id}.json")));
    let mut tally = Tally::default();
    for expected in golden["cases"].as_array().expect("a list of cases") {
        let [scenario, variant] = ["scenario", "variant"].map(|key| expected[key].as_str().expect("a name"));
        tally.add([id, scenario, variant], check_case(&template, conversations, expected));
    }
    tally
}

#[test]
fn reference_renderings() {
    let Some(folder) = shared::path("goldens") else { return };
    let index = shared::json(folder.join("templates/index.json"));
    let conversations: HashMap<String, Value> = std::fs::read_dir(folder.join("conversations"))
        .unwrap()
        .map(|entry| shared::json(entry.unwrap().path()))
        .map(|conversation| (conversation["name"].as_str().unwrap().to_owned(), conversation))
        .collect();
    let rows = index["templates"].as_array().unwrap();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let check = |row| check_template(&folder, row, &conversations);
    let check = &check;
    let mut sum = Tally::default();
    std::thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(threads));
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(move || part.iter().map(check).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).for_each(|tally| sum.merge(tally));
    });
    sum.print();
    let lenient: usize = sum.lenient.values().sum();
    assert!(sum.wrong.is_empty(), "{}", sum.wrong.join("\n"));
    assert_eq!(sum.excepted, EXCEPTIONS.len(), "an exception that is none");
    assert!(lenient * 100 <= sum.texts, "{lenient} more lenient");
}

fn row_id(row: &Value) -> &str {
    row["id"].as_str().expect("an id")
}

#[test]
fn empty_conversation_is_refused() {
    let template = PromptTemplate::new("x").unwrap();
    let extra_context = Map::new();
    let input = RenderInput {
        messages: &[],
        tools: &Value::Null,
        generation_prompt: GenerationPrompt::Add,
        extra_context: &extra_context,
    };
    assert_eq!(template.render(&input).unwrap_err(), Error::EmptyConversation);
}
