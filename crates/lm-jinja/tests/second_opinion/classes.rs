//! Classes of differences between this engine and minijinja. In each, Jinja2 does what this engine does:
//! `testdata/templates/minijinja.json` holds examples with Jinja2's own output.

use std::collections::BTreeMap;

use lm_jinja::Map;

use crate::second_opinion::engines::{Minijinja, Outcome, ours};
use crate::shared;

/// A rendering on which the engines differ.
struct Difference<'a> {
    source: &'a str,
    ours: &'a Outcome,
    theirs: &'a Outcome,
}

/// A class of differences: its name, and the condition for a difference to belong to it.
struct Class {
    name: &'static str,
    applies: fn(&Difference<'_>) -> bool,
}

/// All classes; a difference belongs to the first that applies.
const CLASSES: &[Class] = &[
    Class { name: "percent formatting", applies: |d| d.they_fail("% operator") },
    Class { name: "filters that minijinja lacks", applies: |d| d.they_fail("unknown filter") },
    Class { name: "methods that minijinja lacks", applies: |d| d.they_fail("unknown method") },
    Class {
        name: "int and float of other values",
        applies: |d| {
            d.they_fail("parse float")
                || d.they_fail("float literal")
                || d.they_fail("to integer")
                || d.they_fail("to float")
        },
    },
    Class { name: "iteration over none", applies: |d| d.we_fail("object is not iterable") },
    Class { name: "unhashable values", applies: |d| d.we_fail("unhashable type") },
    Class {
        name: "comparisons of values without an order",
        applies: |d| d.we_fail("not supported between instances"),
    },
    Class { name: "empty separators", applies: |d| d.we_fail("empty separator") },
    Class { name: "joins of values other than text", applies: |d| d.we_fail("expected str, got") },
    Class { name: "lists after tests", applies: |d| d.they_fail("expected `]`") },
    Class { name: "floats as bounds of slices", applies: |d| d.we_fail("expected int, got float") },
    Class { name: "containment in text", applies: |d| d.we_fail("requires string as left operand") },
    Class {
        name: "JSON of undefined values and generators",
        applies: |d| d.we_fail("not JSON serializable"),
    },
    Class { name: "sums of ranges and lists", applies: |d| d.we_fail("unsupported operand type(s) for +: ") },
    Class { name: "chained tests", applies: |d| d.we_fail("tests cannot be chained") },
    Class {
        name: "operations on undefined values",
        applies: |d| {
            d.we_fail("has no such element") || d.we_fail("is undefined") || d.we_fail("has no attribute")
        },
    },
    Class {
        name: "repr of undefined values",
        applies: |d| d.equal_when(|text| text.replace("Undefined", "undefined")),
    },
    Class {
        name: "repr of ranges",
        applies: |d| d.we_write("range(") || d.uses(&["range(4) | string", "range(4) ~"]),
    },
    Class {
        name: "title case",
        applies: |d| {
            d.uses(&["title", "capitalize"]) && d.equal_when(|text| text.to_lowercase().replace("ss", "ß"))
        },
    },
    Class { name: "markup and escapes", applies: |d| d.uses(&["| e)", "safe"]) },
    Class {
        name: "last iteration over text",
        applies: |d| d.uses(&["loop.last"]) && d.equal_when(|text| text.replace(", )", ")")),
    },
    Class { name: "exponents of floats", applies: |d| d.equal_when(plain_exponents) },
    Class { name: "text, dicts and generators as sequences", applies: |d| d.uses(&["is sequence"]) },
    Class { name: "indentation of an empty text", applies: |d| d.uses(&["indent("]) },
    Class { name: "none as an iterable", applies: |d| d.uses(&["is iterable"]) },
    Class { name: "case of values other than text", applies: |d| d.uses(&["is lower", "is upper"]) },
    Class {
        name: "undefined values for names",
        applies: |d| d.uses(&["m(q=", "with x ="]) && d.uses(&["missing", "x[", "d[", "if "]),
    },
];

/// Writes `1e-07` as minijinja writes it: `1e-7` in JSON, `0.0000001` elsewhere; both become the latter.
fn plain_exponents(text: &str) -> String {
    text.replace("1e-07", "0.0000001").replace("1e-7", "0.0000001").replace("1e-05", "0.00001")
}

impl Difference<'_> {
    fn they_fail(&self, message: &str) -> bool {
        matches!(self.theirs, Outcome::Failed(found) if found.contains(message))
    }

    fn we_fail(&self, message: &str) -> bool {
        matches!(self.ours, Outcome::Failed(found) if found.contains(message))
    }

    fn we_write(&self, text: &str) -> bool {
        matches!(self.ours, Outcome::Text(found) if found.to_lowercase().contains(&text.to_lowercase()))
    }

    /// Returns true if the template uses one of these.
    fn uses(&self, features: &[&str]) -> bool {
        features.iter().any(|feature| self.source.contains(feature))
    }

    /// Returns true if both are texts that are equal after `normal`.
    fn equal_when(&self, normal: impl Fn(&str) -> String) -> bool {
        matches!((self.ours, self.theirs), (Outcome::Text(a), Outcome::Text(b)) if normal(a) == normal(b))
    }

    fn class(&self) -> Option<&'static Class> {
        CLASSES.iter().find(|class| (class.applies)(self))
    }
}

/// Counts of agreements and of differences by class.
#[derive(Default)]
pub struct Tally {
    equal: usize,
    differences: BTreeMap<&'static str, usize>,
    unknown: Vec<String>,
}

impl Tally {
    pub fn add(&mut self, name: &str, source: &str, ours: &Outcome, theirs: &Outcome) {
        if ours.agrees(theirs) {
            self.equal += 1;
            return;
        }
        match (Difference { source, ours, theirs }).class() {
            Some(class) => *self.differences.entry(class.name).or_default() += 1,
            None => self.unknown.push(format!("{name}\n  here: {ours:?}\n  there: {theirs:?}")),
        }
    }

    /// Prints the table, and fails if a difference has no class.
    pub fn finish(&self, what: &str) {
        println!(
            "| {what} | {} |\n|---|---|",
            self.equal + self.unknown.len() + self.differences.values().sum::<usize>()
        );
        println!("| equal | {} |", self.equal);
        self.differences.iter().for_each(|(class, count)| println!("| {class} | {count} |"));
        assert!(
            self.unknown.is_empty(),
            "{} without a class:\n{}",
            self.unknown.len(),
            self.unknown.join("\n")
        );
    }
}

/// Every class has examples on which the engines differ and Jinja2 agrees with this one.
#[test]
fn each_class_renders_as_jinja2() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/templates/minijinja.json");
    let data = shared::json(path.into());
    let minijinja = Minijinja::new();
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    for case in data["cases"].as_array().expect("a list") {
        let [class, source] = ["class", "template"].map(|key| case[key].as_str().expect("a text"));
        let (ours, theirs) = (ours(source)(&Map::new()), minijinja.compile(source)(&Map::new()));
        let expected = case["text"].as_str();
        let as_jinja2 = match &ours {
            Outcome::Text(text) => Some(text.as_str()) == expected,
            Outcome::Failed(_) => expected.is_none(),
            Outcome::Raised(_) => false,
        };
        let found = Difference { source, ours: &ours, theirs: &theirs }.class().map(|class| class.name);
        if !as_jinja2 || ours.agrees(&theirs) || found != Some(class) {
            wrong.push(format!("{source}: {ours:?}, {theirs:?}, Jinja2 {expected:?}, class {found:?}"));
        }
        seen.push(class);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let without = CLASSES.iter().map(|class| class.name).filter(|name| !seen.contains(name));
    let without: Vec<&str> = without.collect();
    assert!(without.is_empty(), "classes without an example: {without:?}");
}
