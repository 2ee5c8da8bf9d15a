//! PDF files that are read by another process: this program with `--child`.

use std::path::Path;

use lm_documents::{Document, Error, Reader};

fn main() {
    if std::env::args().any(|argument| argument == "--child") {
        lm_documents::run_child(std::io::stdin(), std::io::stdout()).expect("pipes");
        return;
    }
    let reader = Reader::isolated(std::env::current_exe().expect("a path"), ["--child".into()]);
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    for name in ["columns.pdf", "scanned.pdf", "encrypted.pdf"] {
        assert_eq!(reader.read(file(name)), Document::read(&file(name)), "{name}");
    }
    assert_eq!(reader.read(b"a text".to_vec()).expect("a text").text, "a text");
    // Its content stream has 4 GiB.
    let bomb = reader.read(file("bomb.pdf"));
    if cfg!(unix) {
        let Err(Error::Unreadable(reason)) = bomb else { panic!("{bomb:?}") };
        assert!(reason.contains("1024 MiB"), "{reason}");
    }
    let missing = Reader::isolated("/nowhere/lm".into(), []).read(file("table.pdf"));
    assert!(matches!(missing, Err(Error::Unreadable(_))), "{missing:?}");
    println!("files are read by another process");
}
