//! Text files and PDF files: a text within the limits whose prompt is fenced, or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lm_documents::Document;

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = Document::read(bytes) else { return };
    assert!(document.pages.is_some() || !document.text.contains('\r'));
    assert!(document.pages.is_none() || document.text.contains("--- page 1 ---"));
    let prompt = document.prompt("a\n```");
    let (head, rest) = prompt.split_once('\n').expect("lines");
    assert_eq!(head, r#"File "a\n```":"#);
    let fence = rest.lines().next().expect("a fence");
    assert!(fence.len() >= 3 && !document.text.contains(fence));
    assert!(prompt.ends_with(&format!("\n{fence}")));
});
