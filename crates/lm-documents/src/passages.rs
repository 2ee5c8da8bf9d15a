//! Passages of a text that is too long for a prompt.

use std::ops::Range;

use bm25::{SearchEngine, SearchEngineBuilder, Tokenizer};

use crate::document;

/// Length at which a passage ends at the next paragraph, line, sentence or word, in bytes: some 300 tokens.
const PASSAGE: usize = 1_200;
/// Length at which it ends anywhere.
const LONGEST: usize = 1_800;
/// Score of a passage with a word that a tenth of 20 passages has, or one of three of 100.
const RELEVANT: f32 = 1.8;

/// Part of the best score that a chosen passage has at least: others share only words that are everywhere.
const NEAR_BEST: f32 = 0.2;

/// A text that is cut into passages, for questions about it: those that rank highest by BM25 are chosen.
///
/// ```
/// use lm_documents::Passages;
///
/// let text = format!("{}\n\nThe warranty lasts two years.\n\n{}", "Parts. ".repeat(300), "Care. ".repeat(300));
/// let passages = Passages::new(text);
/// let chosen = passages.choose("How long is the warranty?", 2_000);
/// assert!(chosen.len() < passages.len());
/// assert!(passages.excerpt(&chosen).contains("two years"));
/// ```
pub struct Passages {
    text: String,
    ranges: Vec<Range<usize>>,
    index: SearchEngine<u32, u32, Words>,
}

impl std::fmt::Debug for Passages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passages").field("ranges", &self.ranges).finish_non_exhaustive()
    }
}

impl Passages {
    /// Cuts a text into passages.
    pub fn new(text: String) -> Self {
        let ranges = cut(&text);
        let parts = ranges.iter().map(|range| &text[range.clone()]);
        let index = SearchEngineBuilder::<u32, u32, Words>::with_tokenizer_and_corpus(Words, parts).build();
        Self { text, ranges, index }
    }

    /// Number of passages.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Chooses passages of at most `bytes` together that share words with a question, in the order of the
    /// text: those that rank near the best one. Empty if no passage shares words with it.
    pub fn choose(&self, question: &str, bytes: usize) -> Vec<usize> {
        let found = self.index.search(question, None);
        let least = found.first().map_or(0.0, |best| best.score * NEAR_BEST);
        let near = found.iter().take_while(|result| result.score >= least);
        self.within(bytes, near.map(|result| result.document.id as usize))
    }

    /// Chooses further passages for a later question, as [`choose`](Self::choose): not those of `sent`, and
    /// those only that share words with it which few passages have. Short words do not count, as most have
    /// no content, but for those in capitals: the question need not be about the text.
    pub fn choose_more(&self, question: &str, bytes: usize, sent: &[usize]) -> Vec<usize> {
        let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| has_content(word));
        let found = self.index.search(&words.collect::<Vec<_>>().join(" "), None);
        let relevant = found.iter().filter(|result| result.score >= RELEVANT);
        let ranked = relevant.map(|result| result.document.id as usize);
        self.within(bytes, ranked.filter(|passage| !sent.contains(passage)))
    }

    /// Chooses the first passages, of at most `bytes` together.
    pub fn first(&self, bytes: usize) -> Vec<usize> {
        let mut left = bytes;
        let fits = |range: &&Range<usize>| {
            let fits = range.len() <= left;
            left = left.saturating_sub(range.len());
            fits
        };
        (0..self.ranges.iter().take_while(fits).count()).collect()
    }

    fn within(&self, bytes: usize, ranked: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut left = bytes;
        let mut chosen = Vec::new();
        for passage in ranked {
            let length = self.ranges[passage].len();
            if length <= left {
                left -= length;
                chosen.push(passage);
            }
        }
        chosen.sort_unstable();
        chosen
    }

    /// Text of passages in ascending order: `[…]` stands for what is left out, and a passage of a page begins
    /// with the line of that page.
    ///
    /// # Panics
    /// When there is no such passage.
    pub fn excerpt(&self, chosen: &[usize]) -> String {
        let (mut excerpt, mut next, mut page) = (String::new(), 0, None);
        for &passage in chosen {
            let range = self.ranges[passage].clone();
            if passage != next {
                leave_out(&mut excerpt);
                let line = page_line(&self.text[..range.start]);
                if line != page && !self.text[range.clone()].starts_with(PAGE) {
                    excerpt.extend(line.into_iter().flat_map(|line| [line, "\n"]));
                }
            }
            excerpt += &self.text[range.clone()];
            page = page_line(&self.text[..range.end]);
            next = passage + 1;
        }
        if next < self.ranges.len() {
            leave_out(&mut excerpt);
        }
        excerpt
    }

    /// Passages as a part of a prompt: as [`Document::prompt`](crate::Document::prompt), and the name says
    /// that they are excerpts.
    ///
    /// # Panics
    /// When there is no such passage.
    pub fn prompt(&self, name: &str, chosen: &[usize]) -> String {
        document::prompt(&format!("{name} (excerpts)"), &self.excerpt(chosen))
    }

    /// Numbers of the pages that passages are of; empty for a text without pages.
    ///
    /// # Panics
    /// When there is no such passage.
    pub fn pages(&self, chosen: &[usize]) -> Vec<usize> {
        let excerpt = self.excerpt(chosen);
        let number = |line: &str| line.strip_prefix(PAGE)?.strip_suffix(" ---")?.parse().ok();
        excerpt.lines().filter_map(number).collect()
    }

    /// Bytes of the text.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }
}

/// Shortest word with content, in ASCII letters and digits.
const SHORTEST: usize = 4;

/// Returns true for a word that a question may be about: no short one of ASCII letters, unless it is in
/// capitals.
fn has_content(word: &str) -> bool {
    let is_short = word.is_ascii() && word.len() < SHORTEST;
    !is_short || word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Adds the line that stands for what is left out.
fn leave_out(excerpt: &mut String) {
    if !excerpt.is_empty() && !excerpt.ends_with('\n') {
        excerpt.push('\n');
    }
    *excerpt += "[…]\n";
}

/// Beginning of the lines that begin pages.
const PAGE: &str = "--- page ";

/// Line of the last page that begins in a text.
fn page_line(text: &str) -> Option<&str> {
    let start = text.rfind(&format!("\n{PAGE}")).map(|at| at + 1);
    let start = start.or_else(|| text.starts_with(PAGE).then_some(0))?;
    text[start..].lines().next()
}

/// Ranges of the passages.
fn cut(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = end_of_passage(text, start);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

fn end_of_passage(text: &str, start: usize) -> usize {
    if text.len() - start <= LONGEST {
        return text.len();
    }
    let earliest = text.ceil_char_boundary(start + PASSAGE / 2);
    let wanted = text.ceil_char_boundary(start + PASSAGE);
    let latest = text.floor_char_boundary(start + LONGEST);
    let window = &text[earliest..latest];
    let at = wanted - earliest;
    // The mark nearest to the wanted length, of the best kind that there is.
    let nearest = |mark: &str, kept: usize| {
        let ends = window.match_indices(mark).map(|(index, _)| index + kept);
        ends.min_by_key(|end| end.abs_diff(at))
    };
    let marks = ["\n\n", "\n", ". ", "。", " "].into_iter().find_map(|mark| nearest(mark, mark.len()));
    let end = nearest(&format!("\n{PAGE}"), 1).or(marks);
    end.map_or(latest, |end| earliest + end)
}

/// Words of a text in lower case; letters of scripts without spaces are words.
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for c in text.chars().flat_map(char::to_lowercase) {
            let is_whole =
                matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{e00}'..='\u{eff}');
            match words.last_mut() {
                Some(word) if c.is_alphanumeric() && !is_whole => word.push(c),
                _ if is_whole => words.extend([c.to_string(), String::new()]),
                _ => words.push(String::new()),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Passages {
        let page = |number: usize| {
            let topic = ["coal", "wind", "solar", "tidal", "nuclear"][number % 5];
            format!(
                "--- page {number} ---\n{}\n",
                format!("Page {number} is about {topic} power. ").repeat(120)
            )
        };
        Passages::new((1..=20).map(page).collect())
    }

    #[test]
    fn passages_are_the_text_in_pieces_of_bounded_length() {
        for text in ["", "short", &"é".repeat(5_000), &"word ".repeat(2_000), &"line of a log\n".repeat(500)]
        {
            let ranges = cut(text);
            let joined: String = ranges.iter().map(|range| &text[range.clone()]).collect();
            assert_eq!(joined, text);
            assert!(ranges.iter().all(|range| (1..=LONGEST).contains(&range.len())), "{ranges:?}");
        }
        let text = format!("{}\n\n{}", "a. ".repeat(350), "b. ".repeat(900));
        assert_eq!(cut(&text)[0], 0..1_052, "a paragraph before a sentence");
    }

    #[test]
    fn question_chooses_passages_that_share_its_words() {
        let report = report();
        let chosen = report.choose("What of TIDAL energy?", 4_000);
        let excerpt = report.excerpt(&chosen);
        assert!(excerpt.contains("tidal") && excerpt.len() < 4_300, "{excerpt}");
        assert!(!excerpt.contains("coal"), "{excerpt}");
        let common =
            Passages::new(format!("{} A quokka is an animal of this text. {}", report.text, report.text));
        let found = common.choose("What is a quokka about?", 1 << 20);
        assert!(found.len() < 4, "words that are everywhere choose nothing: {found:?}");
        let report_of_one = Passages::new(format!("{} A quokka. {}", report.text, report.text));
        let found = report_of_one.choose_more("And the quokka?", 4_000, &[]);
        assert_eq!(found.len(), 1);
        assert_eq!(report_of_one.choose_more("And the quokka?", 4_000, &found), Vec::<usize>::new());
        assert_eq!(report_of_one.choose_more("What is it about?", 4_000, &[]), Vec::<usize>::new());
        let short = Passages::new(format!("{} A one of 12 by the API. {}", report.text, report.text));
        assert_eq!(short.choose_more("Count from 1 to 12, one by one.", 4_000, &[]), Vec::<usize>::new());
        assert_eq!(short.choose_more("Which API?", 4_000, &[]).len(), 1, "capitals have content");
        assert_eq!(report.choose("xyzzy", 4_000), Vec::<usize>::new());
        assert_eq!(report.choose("tidal", 10), Vec::<usize>::new());
        let first = report.first(4_000);
        assert_eq!(first, (0..first.len()).collect::<Vec<_>>());
        assert!(first.len() >= 2);
    }

    #[test]
    fn excerpt_says_what_is_left_out_and_its_page() {
        let report = report();
        let in_page = (0..report.len()).find(|passage| {
            let text = &report.text[report.ranges[*passage].clone()];
            !text.contains(PAGE) && text.contains("Page 7 ")
        });
        let in_page = in_page.expect("a passage within page 7");
        let excerpt = report.excerpt(&[in_page]);
        assert!(excerpt.starts_with("[…]\n--- page 7 ---\nPage 7 is"), "{excerpt}");
        assert!(excerpt.ends_with("\n[…]\n"), "{excerpt}");
        assert_eq!(report.pages(&[in_page]), [7]);
        let prompt = report.prompt("energy.pdf", &[in_page]);
        assert!(prompt.starts_with("File \"energy.pdf (excerpts)\":\n```\n[…]\n--- page 7"), "{prompt}");
        let all: Vec<usize> = (0..report.len()).collect();
        assert_eq!(report.pages(&all), (1..=20).collect::<Vec<_>>());
        assert!(report.excerpt(&all) == report.text);
    }

    #[test]
    fn words_are_of_every_script() {
        assert_eq!(Words.tokenize("Grüße, err_42! 日本x"), ["grüße", "err", "42", "日", "本", "x"]);
    }
}
