//! Lines of text from positioned glyphs.

use std::collections::VecDeque;

use hayro_interpret::kurbo::{Point, Vec2};

/// A glyph on a page whose axis `y` points down. Lengths are in points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Glyph {
    pub text: String,
    /// Start on the baseline.
    pub start: Point,
    /// Direction of the baseline, of length 1.
    pub along: Vec2,
    /// Advance to the next glyph along the line; 0 if unknown.
    pub advance: f64,
    /// Font size.
    pub size: f64,
}

impl Glyph {
    /// Distances to another glyph, in font sizes: along the line from the end of this one, and down.
    fn distance(&self, next: &Self) -> (f64, f64) {
        let size = self.size.max(next.size).max(f64::EPSILON);
        let between = next.start - (self.start + self.along * self.advance);
        (between.dot(self.along) / size, self.along.cross(between) / size)
    }
}

/// Gap between glyphs that is a space, in font sizes: a space is a quarter to a third wide, kerning less than
/// a tenth.
const SPACE: f64 = 0.15;
/// Gap between columns of a table.
const COLUMN: f64 = 1.5;
/// Distance of baselines that begins another line; less is a superscript.
const LINE: f64 = 0.6;
/// Distance of baselines that begins a paragraph, and how much more it is than that of the last two lines.
const PARAGRAPH: f64 = 1.9;
const WIDER: f64 = 1.3;
/// Cosine of the angle between baselines that are the same line.
const SAME_DIRECTION: f64 = 0.9;
/// Distance of the same glyph that is drawn again, for a bold or a shadow.
const AGAIN: f64 = 0.1;
/// Number of last glyphs that one is compared with.
const RECENT: usize = 256;

/// Text of a page in the order of its content stream, which is the reading order in most files, with several
/// columns too.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: String,
    recent: VecDeque<Glyph>,
    /// Distance of the last two lines of a paragraph.
    pitch: Option<f64>,
}

impl Lines {
    /// Adds the next glyph.
    pub fn push(&mut self, glyph: Glyph) {
        if self.recent.iter().any(|other| is_again(&glyph, other)) {
            return;
        }
        if let Some(last) = self.recent.back() {
            let (gap, down) = last.distance(&glyph);
            if down.abs() > LINE || gap < -COLUMN || last.along.dot(glyph.along) < SAME_DIRECTION {
                let widest = self.pitch.map_or(PARAGRAPH, |pitch| PARAGRAPH.min(WIDER * pitch));
                let is_paragraph = !(-LINE..=widest).contains(&down);
                if down > LINE && !is_paragraph {
                    let is_same_size = (last.size - glyph.size).abs() < AGAIN * glyph.size;
                    self.pitch = is_same_size.then_some(down);
                }
                self.end_line(is_paragraph);
            } else if gap > SPACE && !self.text.ends_with(char::is_whitespace) && !glyph.text.starts_with(' ')
            {
                self.text.push_str(if gap > COLUMN { "   " } else { " " });
            }
        }
        self.text.push_str(&glyph.text);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(glyph);
    }

    fn end_line(&mut self, is_paragraph: bool) {
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        // A word that is divided at the end of a line by U+00AD, which is not shown elsewhere.
        if self.text.ends_with('\u{ad}') && !is_paragraph {
            self.text.pop();
            return;
        }
        self.text.push_str(if is_paragraph { "\n\n" } else { "\n" });
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text.trim().replace('\u{ad}', "")
    }
}

/// Returns true if a glyph is another one, drawn again.
fn is_again(glyph: &Glyph, other: &Glyph) -> bool {
    (glyph.start - other.start).hypot() < AGAIN * glyph.size && glyph.text == other.text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of words at these places, with glyphs of 5 points in a font of 10.
    fn text(words: &[(&str, f64, f64)]) -> String {
        let mut lines = Lines::default();
        for (word, x, y) in words {
            for (index, c) in word.chars().enumerate() {
                let start = Point::new(x + 5.0 * index as f64, *y);
                let along = Vec2::new(1.0, 0.0);
                lines.push(Glyph { text: c.to_string(), start, along, advance: 5.0, size: 10.0 });
            }
        }
        lines.finish()
    }

    #[test]
    fn gaps_are_spaces_and_columns() {
        assert_eq!(text(&[("ab", 0.0, 0.0), ("c", 11.0, 0.0)]), "abc", "kerning");
        assert_eq!(text(&[("ab", 0.0, 0.0), ("c", 13.0, 0.0)]), "ab c");
        assert_eq!(text(&[("ab ", 0.0, 0.0), ("c", 18.0, 0.0)]), "ab c");
        assert_eq!(text(&[("ab", 0.0, 0.0), ("c", 30.0, 0.0)]), "ab   c");
    }

    #[test]
    fn distances_of_baselines_are_lines_and_paragraphs() {
        assert_eq!(text(&[("x", 0.0, 0.0), ("2", 5.0, -4.0), ("y", 12.0, 0.0)]), "x2 y", "a superscript");
        assert_eq!(text(&[("one ", 0.0, 0.0), ("two", 0.0, 12.0)]), "one\ntwo");
        assert_eq!(text(&[("one", 0.0, 0.0), ("two", 0.0, 20.0)]), "one\n\ntwo");
        let lines = [("a", 0.0, 0.0), ("b", 0.0, 12.0), ("c", 0.0, 30.0), ("d", 0.0, 42.0)];
        assert_eq!(text(&lines), "a\nb\n\nc\nd", "further apart than the lines before");
        assert_eq!(
            text(&[("a", 0.0, 0.0), ("b", 0.0, 18.0), ("c", 0.0, 36.0)]),
            "a\nb\nc",
            "rows of a table"
        );
        assert_eq!(text(&[("end", 0.0, 90.0), ("top", 200.0, 0.0)]), "end\n\ntop", "the next column");
        assert_eq!(text(&[("right", 200.0, 0.0), ("left", 0.0, 0.0)]), "right\nleft");
    }

    #[test]
    fn text_of_another_direction_is_another_line() {
        let mut lines = Lines::default();
        for (text, along) in [("a", Vec2::new(1.0, 0.0)), ("b", Vec2::new(0.0, -1.0))] {
            let start = Point::new(if text == "a" { 0.0 } else { 5.0 }, 0.0);
            lines.push(Glyph { text: text.to_owned(), start, along, advance: 5.0, size: 10.0 });
        }
        assert_eq!(lines.finish(), "a\nb");
    }

    #[test]
    fn soft_hyphen_joins_a_word() {
        assert_eq!(text(&[("exam\u{ad}", 0.0, 0.0), ("ple", 0.0, 12.0)]), "example");
        assert_eq!(text(&[("ex\u{ad}ample", 0.0, 0.0)]), "example");
        assert_eq!(text(&[("end\u{ad}", 0.0, 0.0), ("next", 0.0, 30.0)]), "end\n\nnext");
    }

    #[test]
    fn text_that_is_drawn_twice_is_read_once() {
        assert_eq!(text(&[("bold", 0.0, 0.0), ("bold", 0.3, 0.0), ("er", 20.0, 0.0)]), "bolder");
        assert_eq!(text(&[("aa", 0.0, 0.0)]), "aa");
        assert_eq!(text(&[("one", 0.0, 0.0), ("one", 0.0, 12.0)]), "one\none");
    }
}
