//! Text of PDF files, by page.

use std::panic;

use hayro_interpret::font::{Glyph as PdfGlyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf};
use hayro_interpret::kurbo::{BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, TransformExt, interpret_page,
};

use crate::document::Document;
use crate::error::{Error, Result};
use crate::layout::{Glyph, Lines};

/// Largest number of pages, and largest text in bytes; a line says which pages are left out.
const LIMITS: (usize, usize) = (5_000, 16 << 20);
/// Side of a glyph's design square, which outlines and advances are measured in.
const EM: f64 = 1000.0;

/// Reads the text of a file.
pub(crate) fn read(bytes: &[u8]) -> Result<Document> {
    // A file that its parser did not expect is an error, too.
    panic::catch_unwind(|| read_pages(bytes, LIMITS)).unwrap_or(Err(Error::DamagedPdf))
}

fn read_pages(bytes: &[u8], (max_pages, max_text): (usize, usize)) -> Result<Document> {
    let pdf = Pdf::new(bytes.to_vec()).map_err(|error| match error {
        LoadPdfError::Decryption(_) => Error::EncryptedPdf,
        LoadPdfError::Invalid => Error::DamagedPdf,
    })?;
    let cache = InterpreterCache::new();
    let (pages, mut text, mut has_text) = (pdf.pages().len(), String::new(), false);
    for (index, page) in pdf.pages().iter().enumerate() {
        if index == max_pages || text.len() >= max_text {
            text += &format!("--- pages {} to {pages} are left out ---\n", index + 1);
            break;
        }
        let lines = page_text(page, &pdf, &cache, max_text.saturating_sub(text.len()));
        has_text |= !lines.is_empty();
        text += &format!("--- page {} ---\n{lines}\n", index + 1);
    }
    if !has_text {
        return Err(Error::NoText { pages });
    }
    Ok(Document { text, encoding: None, pages: Some(pages) })
}

fn page_text<'a>(page: &Page<'a>, pdf: &'a Pdf, cache: &InterpreterCache<'a>, room: usize) -> String {
    let (width, height) = page.render_dimensions();
    let transform = page.initial_transform(true).to_kurbo();
    let area = Rect::new(0.0, 0.0, width.into(), height.into());
    let mut context = Context::new(transform, area, cache, pdf.xref(), InterpreterSettings::default());
    let mut text = PageText { lines: Lines::default(), room };
    interpret_page(page, &mut context, &mut text);
    let is_cut = text.room == 0;
    text.lines.finish() + if is_cut { "\n--- the rest of the page is left out ---" } else { "" }
}

/// Takes the glyphs of a page.
struct PageText {
    lines: Lines,
    /// Bytes of text that may follow.
    room: usize,
}

impl<'a> Device<'a> for PageText {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            let (text, advance) = (unicode(glyph), advance(glyph));
            self.room = self.room.saturating_sub(text.len());
            if self.room == 0 {
                return;
            }
            let transform = props.transform * glyph.transform();
            let start = transform * Point::ZERO;
            let [em, top] = [Point::new(EM, 0.0), Point::new(0.0, EM)].map(|end| transform * end - start);
            let along = em / em.hypot().max(f64::EPSILON);
            let advance = advance / EM * em.hypot();
            self.lines.push(Glyph { text, start, along, advance, size: top.hypot() });
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// Text of a glyph; U+FFFD if the file does not say it.
fn unicode(glyph: &PdfGlyph<'_>) -> String {
    match glyph.as_unicode() {
        Some(BfString::Char(c)) => ligature(c).map_or_else(|| c.to_string(), str::to_owned),
        Some(BfString::String(text)) => text,
        None => '\u{fffd}'.to_string(),
    }
}

/// Letters of a Latin ligature, which models know better than its character.
fn ligature(c: char) -> Option<&'static str> {
    let letters = ["ff", "fi", "fl", "ffi", "ffl", "st", "st"];
    letters.get((c as usize).checked_sub(0xfb00)?).copied()
}

fn advance(glyph: &PdfGlyph<'_>) -> f64 {
    let advance = match glyph {
        PdfGlyph::Outline(glyph) => glyph.advance_width(),
        PdfGlyph::Type3(glyph) => glyph.advance_width(),
    };
    advance.unwrap_or(0.0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_beyond_the_limits_are_named() {
        let file = include_bytes!("../tests/files/columns.pdf");
        let text = |limits| read_pages(file, limits).expect("a text").text;
        let whole = text(LIMITS);
        let first = text((1, LIMITS.1));
        assert!(first.ends_with("\n--- pages 2 to 2 are left out ---\n"), "{first}");
        assert!(whole.starts_with(first.trim_end_matches("--- pages 2 to 2 are left out ---\n")));
        let cut = text((9, 100));
        assert!(cut.contains("\n--- the rest of the page is left out ---\n"), "{cut}");
        assert!(cut.len() < 250 && cut.ends_with("--- pages 2 to 2 are left out ---\n"), "{cut}");
    }
}
