//! The program as its user runs it: started twice on one folder.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;

/// Runs the program with these lines on standard input, and returns its answers and its questions.
fn run(folder: &Path, input: &str) -> (String, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_price-list"))
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    program.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = program.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

/// The rows of the database: written by the tools, not by the words of the model.
fn rows(folder: &Path) -> Vec<(String, f64)> {
    let db = Connection::open(folder.join("prices.db")).expect("a database");
    let mut select = db.prepare("SELECT product, price FROM prices").expect("the table");
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("two columns")
}

#[test]
fn prices_are_written_after_approval_only_and_the_conversation_survives_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = "Add the product tea with the price 4\ny\nAdd the product gold with the price 9\nn\n";
    let (answers, questions) = run(folder.path(), input);
    assert_eq!(answers, "The product has been added.\nSorry, that did not work: permission denied.\n");
    let asked = ["{\"product\":\"tea\",\"price\":4}", "{\"product\":\"gold\",\"price\":9}"];
    assert_eq!(questions, asked.map(|arguments| format!("insert {arguments}? [y/N] ")).concat());
    assert_eq!(rows(folder.path()), [("tea".to_owned(), 4.0)]);

    // The second process knows the first one's conversation and its rows: "And …" continues a question.
    let (answers, _) = run(folder.path(), "What is the price of gold?\nAnd the price of tea?\n");
    assert_eq!(answers, "Sorry, that did not work: not found.\nThe price of tea is 4.0.\n");
    assert_eq!(rows(folder.path()).len(), 1);
    let saved = std::fs::read_to_string(folder.path().join("chat-prices.json")).expect("the conversation");
    for question in ["Add the product tea", "And the price of tea?"] {
        assert!(saved.contains(question), "{question}");
    }
}

#[test]
fn the_program_has_at_most_sixty_lines_without_comments() {
    let text = include_str!("../src/main.rs");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = text.lines().filter(is_code).count();
    assert!(lines <= 60, "{lines}");
}
