//! Strings: their terminals, with length bounds and patterns.

use std::collections::BTreeSet;

use serde_json::Map;

use lm_template::Value;

use super::super::lark::text_without;
use super::emptiness::Emptiness;
use super::spelling::Strings;
use crate::layout::Layout;
use crate::schema::{escaped_regex, full_match, full_match_in_json, json_character, needs_escape};

/// Maximum length bound that is counted.
const MAX_COUNTED: u64 = 65_536;
/// The longest bound of length that the lexer counts together with excluded texts.
const MAX_COMBINED: u64 = 64;

/// Reason why a schema's strings have no grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum NoText {
    /// No string matches the schema.
    Unsatisfiable,
    /// The syntax can write none of them: all contain a text that ends them.
    Unwritable,
}

/// Escapes of a syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::grammar) enum Escapes {
    /// Strings are written verbatim.
    None,
    /// JSON's, in the spellings of the layout.
    Json(Layout),
    /// Python's: one of two quotes is not the string's own.
    Python,
}

impl Escapes {
    /// Returns true if all texts of the pattern have characters that are escaped.
    fn needed(self, pattern: Option<&str>) -> bool {
        let escaped = match self {
            Self::None | Self::Json(_) => return false,
            Self::Python => "\\",
        };
        pattern.is_some_and(|pattern| needs_escape(pattern, escaped))
    }

    /// Terminal expression for the texts that the syntax writes with a pattern: in Python, without escapes.
    fn plain(self) -> &'static str {
        match self {
            Self::None | Self::Json(_) => "/(?s:.*)/",
            Self::Python => r"/([^\x22\\\x00-\x1f]*|[^'\\\x00-\x1f]*)/",
        }
    }
}

/// Constraints on a string; some can be omitted.
struct Choice {
    counts: TextRules,
    pattern: Vec<String>,
    format: Option<Format>,
    needs_escape: bool,
}

impl Choice {
    /// The strictest rules that a string of the syntax meets, and the keywords that are omitted.
    fn rules(
        &self,
        escapes: Escapes,
        excluded: &[&str],
        searches: &mut Emptiness,
    ) -> Result<(TextRules, Vec<&'static str>), NoText> {
        if self.pattern.is_empty() && self.counts.min == 0 && self.counts.max.is_none() {
            // Each format has texts without escapes and markers.
            return Ok((self.counts.with(&[], self.format.as_ref()), Vec::new()));
        }
        let exact = self.format.as_ref().filter(|format| format.is_exact);
        let schema = self.counts.with(&self.pattern, exact);
        if schema.is_empty(&[], searches) {
            return Err(NoText::Unsatisfiable);
        }
        let pattern = if self.needs_escape { &[][..] } else { &self.pattern };
        let mut omitted = Vec::new();
        if self.needs_escape {
            omitted.push("pattern");
        }
        let mut rules = self.counts.with(pattern, self.format.as_ref());
        let plain = [escapes.plain()];
        if rules.is_empty(&plain, searches) && self.format.is_some() && exact.is_none() {
            omitted.push("format");
            rules = self.counts.with(pattern, None);
        }
        if rules.is_empty(&plain, searches) {
            omitted.push("pattern");
            rules = self.counts.with(&[], exact);
        }
        let without = text_without(excluded);
        let without: Vec<&str> = without.split(" & ").collect();
        match !excluded.is_empty() && rules.is_empty(&[&plain[..], &without].concat(), searches) {
            true => Err(NoText::Unwritable),
            false => Ok((rules, omitted)),
        }
    }
}

/// Constraints of a schema on a string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::grammar) struct TextRules {
    min: u64,
    max: Option<u64>,
    /// Terminal expressions that match the whole text.
    regexes: Vec<String>,
    /// The same for the text as JSON writes it.
    json: Option<JsonRules>,
}

/// Rules of a string as JSON writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JsonRules {
    layout: Layout,
    regexes: Vec<String>,
}

impl TextRules {
    /// These lengths with a pattern and a format.
    fn with(&self, pattern: &[String], format: Option<&Format>) -> Self {
        let format = format.map(|format| format!("/{}/", format.regex));
        Self { regexes: pattern.iter().cloned().chain(format).collect(), json: None, ..*self }
    }

    /// Returns true if no text meets these rules and the other terminal expressions. Lengths alone leave
    /// texts.
    fn is_empty(&self, others: &[&str], searches: &mut Emptiness) -> bool {
        let count = format!("/(?s:.){}/", self.count());
        let terms = self.regexes.iter().map(String::as_str).chain([&*count]).chain(others.iter().copied());
        !self.regexes.is_empty() && searches.is_empty(terms)
    }

    /// Reads the constraints of `schema`; also returns the keywords that are omitted. In Python, a string
    /// matches its pattern without escapes: a pattern none of whose texts can be written so is omitted. A
    /// format is omitted if none of the texts that a grammar writes for it match the pattern.
    ///
    /// # Errors
    /// [`NoText`].
    pub(super) fn of(
        schema: &Map<String, Value>,
        escapes: Escapes,
        excluded: &[&str],
        searches: &mut Emptiness,
    ) -> Result<(Self, Vec<&'static str>), NoText> {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let mut unenforced = Vec::new();
        let min = count("minLength").unwrap_or(0);
        let max = count("maxLength");
        if max.is_some_and(|max| max < min) {
            return Err(NoText::Unsatisfiable);
        }
        if min > MAX_COUNTED {
            unenforced.push("minLength");
        }
        if max.is_some_and(|max| max > MAX_COUNTED) {
            unenforced.push("maxLength");
        }
        let min = if min > MAX_COUNTED { 0 } else { min };
        let counts = Self { min, max: max.filter(|max| *max <= MAX_COUNTED), ..Self::default() };
        let pattern: Vec<String> = text("pattern").and_then(full_match).into_iter().flatten().collect();
        let format = text("format").and_then(format_regex);
        let choice = Choice { counts, pattern, format, needs_escape: escapes.needed(text("pattern")) };
        let (mut rules, omitted) = choice.rules(escapes, excluded, searches)?;
        if let (Escapes::Json(layout), false) = (escapes, rules.regexes.is_empty()) {
            let pattern = text("pattern").filter(|_| !omitted.contains(&"pattern"));
            let format = text("format").filter(|_| !omitted.contains(&"format"));
            rules.json = JsonRules::of(pattern, format, layout);
        }
        unenforced.extend(omitted);
        Ok((rules, unenforced))
    }

    /// Terminal expression for verbatim strings that contain none of `excluded` and do not start with `start`
    /// after optional blanks.
    pub(in crate::grammar) fn raw<T: AsRef<str>>(&self, excluded: &[T], start: Option<&str>) -> String {
        let excluded: BTreeSet<&str> = excluded.iter().map(AsRef::as_ref).collect();
        let counted = self.min > 0 || self.max.is_some();
        let mut all = vec![text_without(&excluded.iter().copied().collect::<Vec<_>>())];
        if counted {
            all.push(format!("/(?s:.){}/", self.count()));
        }
        all.extend(self.regexes.iter().cloned());
        all.extend(start.map(|start| format!("~/\\s*{}(?s:.*)/", escaped_regex(start))));
        let exact = all.join(" & ");
        if !counted || !self.regexes.is_empty() {
            return format!("({exact})");
        }
        // Alternative for strings without the first characters of excluded texts: while a string stays in it,
        // the lexer knows that it can end without exploring the rest of the count.
        let first: BTreeSet<char> =
            excluded.into_iter().chain(start).filter_map(|text| text.chars().next()).collect();
        let first: String = first.into_iter().map(|c| escaped_regex(&c.to_string())).collect();
        let plain = if first.is_empty() { "(?s:.)".to_owned() } else { format!("[^{first}]") };
        match self.is_long() {
            true => format!("/{plain}{}/", self.count()),
            false => format!("(/{plain}{}/ | ({exact}))", self.count()),
        }
    }

    /// Terminal expression for strings in `quote` that contain none of `excluded`. A string with a regular
    /// expression is written without escapes, except in JSON.
    pub(super) fn quoted(&self, quote: char, escapes: &str, excluded: &[String]) -> String {
        let any = self.quoted_without(quote, escapes, "");
        if excluded.is_empty() {
            return any;
        }
        let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
        let exact = format!("({any}) & {}", text_without(&excluded));
        let first: BTreeSet<char> = excluded.iter().filter_map(|text| text.chars().next()).collect();
        let counted = self.min > 0 || self.max.is_some();
        // As for raw strings; a marker that may start with an escape is not distinguished this way.
        if !counted || !self.regexes.is_empty() || !first.is_subset(&BTreeSet::from(['<', '[', ']'])) {
            return exact;
        }
        let first: String = first.into_iter().map(|c| escaped_regex(&c.to_string())).collect();
        let plain = self.quoted_without(quote, escapes, &first);
        if self.is_long() { plain } else { format!("{plain} | ({exact})") }
    }

    /// The same without the characters `left_out`.
    fn quoted_without(&self, quote: char, escapes: &str, left_out: &str) -> String {
        let plain = format!("[^{left_out}{}\\\\\\x00-\\x1f]", if quote == '"' { "\\x22" } else { "'" });
        let hex = if quote == '"' { "\\x22" } else { "'" };
        if self.regexes.is_empty() {
            let count = if self.min == 0 && self.max.is_none() { "*".to_owned() } else { self.count() };
            return format!("/{hex}({plain}|{escapes}){count}{hex}/");
        }
        let (character, mut all) = match &self.json {
            Some(json) => (json_character(json.layout), json.regexes.clone()),
            None => ("(?s:.)", [vec![format!("/{plain}*/")], self.regexes.clone()].concat()),
        };
        if self.json.is_some() || self.min > 0 || self.max.is_some() {
            all.push(format!("/{character}{}/", self.count()));
        }
        format!("/{hex}/ ({}) /{hex}/", all.join(" & "))
    }

    /// Returns true if the count is too long for the lexer to combine with excluded texts: such strings are
    /// written without the first characters of those.
    fn is_long(&self) -> bool {
        self.min.max(self.max.unwrap_or(0)) > MAX_COMBINED
    }

    fn count(&self) -> String {
        self.max.map_or(format!("{{{},}}", self.min), |max| format!("{{{},{max}}}", self.min))
    }
}

impl JsonRules {
    /// Rules of the texts in which `pattern` is found and which have `format`; `None` if they are too large.
    fn of(pattern: Option<&str>, format: Option<&str>, layout: Layout) -> Option<Self> {
        // The texts that a grammar writes for a format have no escapes.
        let format = format.and_then(format_regex).map(|format| format!("/{}/", format.regex));
        let found = match pattern.filter(|pattern| full_match(pattern).is_some()) {
            Some(pattern) => full_match_in_json(pattern, layout)?,
            None => Vec::new(),
        };
        Some(Self { layout, regexes: found.into_iter().chain(format).collect() })
    }
}

impl Strings {
    /// Kind of the escapes of the syntax.
    pub(super) fn kind_of_escapes(self, layout: Layout) -> Escapes {
        match self {
            Self::Json => Escapes::Json(layout),
            Self::Python(_) => Escapes::Python,
            Self::Fenced(_) => Escapes::None,
        }
    }

    /// Escapes in quoted strings, as a regular expression.
    pub(super) fn escapes(self, layout: Layout) -> &'static str {
        match (self, layout) {
            (Self::Json, Layout::Exact) => r"\\[\x22\\bfnrt]|\\u00[01][0-9a-f]",
            // A surrogate is half a character and needs its other half.
            (Self::Json, Layout::Any) => {
                r"\\[\x22\\\/bfnrt]|\\u([0-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
            }
            _ => r"\\[\\'\x22nrt]",
        }
    }
}

macro_rules! date {
    () => {
        concat!(
            r"((000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-",
            r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))",
            r"|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)"
        )
    };
}

macro_rules! time {
    () => {
        r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
    };
}

/// A string format as a regular expression.
#[derive(Debug, Clone, Copy)]
struct Format {
    /// At most as permissive as the RFC.
    regex: &'static str,
    /// The RFC allows no other text, except for leap seconds and letters of the other case.
    is_exact: bool,
}

/// Formats of strings; dates are those from the year 1 on.
fn format_regex(format: &str) -> Option<Format> {
    let (regex, is_exact) = match format {
        "date" => (date!(), true),
        "time" => (time!(), false),
        "date-time" => (concat!(date!(), "T", time!()), false),
        "duration" => (
            r"P([0-9]{1,6}W|[0-9]{1,6}Y([0-9]{1,6}M([0-9]{1,6}D)?)?|[0-9]{1,6}M([0-9]{1,6}D)?|[0-9]{1,6}D|([0-9]{1,6}D)?T([0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?|[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S))",
            false,
        ),
        "email" => (
            r"[A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,31})?@[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?){1,3}",
            false,
        ),
        "hostname" => (
            r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?){0,2}",
            false,
        ),
        "ipv4" => (
            r"((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])",
            true,
        ),
        "ipv6" => (r"([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|::([0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4}|::", false),
        "uri" => (
            r"[a-z][a-z0-9+.-]{0,15}:(\/\/[A-Za-z0-9._~-]+(:[0-9]{1,5})?)?[A-Za-z0-9._~\/+,;=:@&$!()*-]*(\?[A-Za-z0-9._~+,;=:@&$!()*\/?-]*)?(#[A-Za-z0-9._~+,;=:@&$!()*\/?-]*)?",
            false,
        ),
        "uuid" => (r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", true),
        _ => return None,
    };
    Some(Format { regex, is_exact })
}
