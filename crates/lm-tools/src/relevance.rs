//! Choice of the tools that fit a question, for sets whose declarations would fill the context.

use lm_template::ToolSpec;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

/// Saturation of a word's count, and weight of a declaration's length (BM25).
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Number of times that the words of a tool's name count.
const NAME_WEIGHT: usize = 2;
/// Letters of scripts without spaces between words: Thai and Lao, Burmese, Khmer, Japanese, Chinese.
const UNSPACED: [RangeInclusive<char>; 6] = [
    '\u{e00}'..='\u{eff}',
    '\u{1000}'..='\u{109f}',
    '\u{1780}'..='\u{17ff}',
    '\u{3040}'..='\u{30ff}',
    '\u{3400}'..='\u{9fff}',
    '\u{20000}'..='\u{3ffff}',
];

/// Chooses tools whose declarations fit a budget by the words that they share with a question: BM25 over
/// names, descriptions and names of parameters. Returns their names, in the order of the declarations; all of
/// them if all fit.
///
/// `size` is the size of a declaration, in the budget's unit, such as tokens. Tools named in `kept` are
/// always chosen, such as those that the conversation has called. The others follow by relevance, as far as
/// the budget lasts; equally relevant ones, and those that share no word, in the order of their declarations.
///
/// ```
/// use lm_tools::{ToolSpec, demo, select_tools};
///
/// let specs = demo().specs();
/// let one = |_: &ToolSpec| 1;
/// assert_eq!(select_tools(&specs, "How is the weather in Paris?", &[], 1, one), ["get_weather"]);
/// assert_eq!(select_tools(&specs, "And the stock price?", &["get_weather"], 2, one), ["get_weather", "get_stock_price"]);
/// assert_eq!(select_tools(&specs, "", &[], 4, one).len(), 4);
/// ```
pub fn select_tools<'a>(
    specs: &'a [ToolSpec],
    question: &str,
    kept: &[&str],
    budget: usize,
    size: impl Fn(&ToolSpec) -> usize,
) -> Vec<&'a str> {
    let sizes: Vec<usize> = specs.iter().map(size).collect();
    let mut chosen = vec![true; specs.len()];
    if sizes.iter().sum::<usize>() > budget {
        let is_kept = |spec: &ToolSpec| kept.contains(&spec.name());
        chosen = specs.iter().map(is_kept).collect();
        let taken = chosen.iter().zip(&sizes).filter_map(|(chosen, size)| chosen.then_some(size));
        let mut left = budget.saturating_sub(taken.sum());
        for index in by_relevance(specs, question) {
            if !chosen[index] && sizes[index] <= left {
                left -= sizes[index];
                chosen[index] = true;
            }
        }
    }
    specs.iter().zip(chosen).filter_map(|(spec, chosen)| chosen.then_some(spec.name())).collect()
}

/// Indices of the tools, the most relevant first.
fn by_relevance(specs: &[ToolSpec], question: &str) -> Vec<usize> {
    let documents: Vec<Document> = specs.iter().map(Document::of).collect();
    let mut asked: Vec<String> = words(question).collect();
    let mut seen = HashSet::new();
    asked.retain(|word| seen.insert(word.clone()));
    let weights: Vec<(&str, f64)> = asked.iter().map(|word| (&**word, rarity(&documents, word))).collect();
    let total: usize = documents.iter().map(|document| document.length).sum();
    let average = total as f64 / documents.len().max(1) as f64;
    let scores: Vec<f64> = documents.iter().map(|document| document.score(&weights, average)).collect();
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a])); // Stable.
    order
}

/// Weight of a word: the fewer declarations have it, the more it says.
fn rarity(documents: &[Document], word: &str) -> f64 {
    let having = documents.iter().filter(|document| document.counts.contains_key(word)).count() as f64;
    (1.0 + (documents.len() as f64 - having + 0.5) / (having + 0.5)).ln()
}

/// The words of a declaration.
struct Document {
    counts: HashMap<String, usize>,
    length: usize,
}

impl Document {
    fn of(spec: &ToolSpec) -> Self {
        let mut document = Self { counts: HashMap::new(), length: 0 };
        (0..NAME_WEIGHT).for_each(|_| document.add(spec.name()));
        document.add(spec.description());
        let parameters = spec.parameters().get("properties").and_then(Value::as_object);
        parameters.into_iter().flatten().for_each(|(name, _)| document.add(name));
        document
    }

    fn add(&mut self, text: &str) {
        for word in words(text) {
            *self.counts.entry(word).or_default() += 1;
            self.length += 1;
        }
    }

    fn score(&self, weights: &[(&str, f64)], average: f64) -> f64 {
        let length = K1 * (1.0 - B + B * self.length as f64 / average.max(1.0));
        let of = |(word, weight): &(&str, f64)| {
            let count = self.counts.get(*word).copied().unwrap_or(0) as f64;
            weight * count * (K1 + 1.0) / (count + length)
        };
        weights.iter().map(of).sum()
    }
}

/// The words of a text in lower case, without a plural's `s`. Parts of names such as `get_stockPrice` are
/// words, and so are pairs of letters of scripts without spaces.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words.into_iter().flat_map(|word| if is_spaced(&word) { vec![stem(word)] } else { pairs(&word) })
}

/// Returns true if a word's script has spaces between words.
fn is_spaced(word: &str) -> bool {
    !word.chars().any(|c| UNSPACED.iter().any(|letters| letters.contains(&c)))
}

fn pairs(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.windows(2).map(String::from_iter).collect()
}

/// A word without a plural's `s`.
fn stem(word: String) -> String {
    match word.strip_suffix('s') {
        Some(singular) if singular.len() > 2 && !singular.ends_with('s') => singular.to_owned(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(name: &str, description: &str, parameters: &[&str]) -> ToolSpec {
        let properties: serde_json::Map<_, _> =
            parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        ToolSpec::new(name, description, json!({"type": "object", "properties": properties}))
    }

    fn specs() -> Vec<ToolSpec> {
        vec![
            spec("files_readText", "Reads the text of a file from the disk.", &["path"]),
            spec("files_write", "Writes the text of a file to the disk.", &["path", "content"]),
            spec("mail_send", "Sends a message to somebody.", &["recipient", "subject"]),
            spec("calendar_add", "Adds an event to a calendar.", &["title", "date"]),
            spec("wetter", "东京天气预报", &["ort"]),
        ]
    }

    fn chosen(question: &str, kept: &[&str], budget: usize) -> Vec<String> {
        select_tools(&specs(), question, kept, budget, |_| 10).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn relevant_tools_are_chosen_in_the_order_of_the_declarations() {
        assert_eq!(
            chosen("Send Ann the dates of my calendar by mail", &[], 20),
            ["mail_send", "calendar_add"]
        );
        assert_eq!(chosen("read it", &[], 10), ["files_readText"]);
        assert_eq!(chosen("Who is the recipient?", &[], 10), ["mail_send"], "names of parameters count");
        assert_eq!(chosen("明天天气", &[], 10), ["wetter"]);
        assert_eq!(chosen("EVENTS!", &[], 10), ["calendar_add"]);
    }

    #[test]
    fn all_tools_are_chosen_if_they_fit() {
        assert_eq!(chosen("mail", &[], 50).len(), 5);
        assert_eq!(chosen("mail", &[], 49).len(), 4);
        assert_eq!(select_tools(&[], "mail", &[], 0, |_| 1), [""; 0]);
    }

    #[test]
    fn kept_tools_come_before_the_budget() {
        assert_eq!(chosen("send a mail", &["wetter"], 10), ["wetter"]);
        assert_eq!(chosen("send a mail", &["wetter", "files_write"], 5), ["files_write", "wetter"]);
        assert_eq!(chosen("send a mail", &["wetter", "absent"], 20), ["mail_send", "wetter"]);
    }

    #[test]
    fn question_without_shared_words_takes_the_first_tools() {
        assert_eq!(chosen("", &[], 20), ["files_readText", "files_write"]);
        assert_eq!(chosen("xylophone", &[], 20), ["files_readText", "files_write"]);
    }

    #[test]
    fn smaller_tool_takes_the_room_of_one_that_does_not_fit() {
        let specs = specs();
        let size = |spec: &ToolSpec| if spec.name() == "mail_send" { 100 } else { 10 };
        assert_eq!(select_tools(&specs, "mail a calendar", &[], 10, size), ["calendar_add"]);
    }
}
