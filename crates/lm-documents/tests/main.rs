//! PDF files that `files/make.py` makes, beside what poppler reads in them.

use std::path::PathBuf;

use lm_documents::{Document, Error};

fn file(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/files", name].iter().collect();
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Words of a text, without the lines that begin pages.
fn words(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with("--- page "));
    lines.flat_map(str::split_whitespace).collect()
}

#[test]
fn words_are_those_that_poppler_reads() {
    for name in ["columns", "table", "rotated", "scripts", "restricted"] {
        let document =
            Document::read(&file(&format!("{name}.pdf"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        let reference = String::from_utf8(file(&format!("{name}.txt"))).expect("UTF-8");
        // Text that is drawn twice is read once, and ligatures as letters.
        let reference =
            reference.replace("bold by overprinting\nbold", "bold").replace('ﬁ', "fi").replace('ﬂ', "fl");
        assert_eq!(words(&document.text), words(&reference.replace('\u{c}', "\n")), "{name}");
        assert_eq!(document.pages, Some(reference.matches('\u{c}').count()), "{name}");
    }
}

#[test]
fn lines_paragraphs_and_columns_are_kept() {
    let read = |name| Document::read(&file(name)).expect("a text").text;
    let table =
        "--- page 1 ---\nPrices\nItem   Quantity   Price\nApples   3   1.20\nPears and plums   12   4.80\n";
    assert_eq!(read("table.pdf"), table);
    let columns = read("columns.pdf");
    let line = columns.lines().find(|line| line.starts_with("Paragraph 2.")).expect("a paragraph");
    assert!(line.ends_with("over the lazy"), "a line of its column alone: {line}");
    assert_eq!(columns.matches("\n\nParagraph ").count(), 17, "all but the one after the title");
    assert_eq!(columns.matches("\n--- page ").count() + 1, 2);
}

#[test]
fn files_without_text_say_why() {
    assert_eq!(Document::read(&file("scanned.pdf")), Err(Error::NoText { pages: 2 }));
    assert_eq!(Document::read(&file("encrypted.pdf")), Err(Error::EncryptedPdf));
    assert_eq!(Document::read(b"%PDF-1.7\nnothing\0"), Err(Error::DamagedPdf));
    let large = vec![b' '; Document::MAX_BYTES + 1];
    assert!(matches!(Document::read(&large), Err(Error::TooLarge { .. })));
    let about = "A file that begins with %PDF-1.7 is a PDF file.";
    assert_eq!(Document::read(about.as_bytes()).expect("a text").text, about);
}
