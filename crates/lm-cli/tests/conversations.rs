//! Kept conversations: `lm chat` with a store, and `lm conversations`.

use crate::program::{Run, lm, parse, shown};
use serde_json::Value;

/// A store of its own.
struct Kept(tempfile::TempDir);

impl Kept {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self) -> String {
        shown(&self.0.path().join("kept.db")).to_owned()
    }

    fn chat(&self, args: &[&str], input: &str) -> Run {
        let fixed: &[&str] = if args.contains(&"--temperature") { &[] } else { &["--temperature", "0"] };
        lm(&[&["chat", "-n", "8", "--store", &self.file()], fixed, args].concat(), input)
    }

    fn conversations(&self, args: &[&str], input: &str) -> Run {
        lm(&[&["conversations"], args, &["--store", &self.file()]].concat(), input)
    }

    /// Titles of the list.
    fn titles(&self) -> Vec<String> {
        let list = self.conversations(&["list", "--json"], "");
        assert_eq!(list.code, Some(0), "{}", list.err);
        list.out.lines().map(|line| parse(line)["title"].as_str().expect("a title").to_owned()).collect()
    }

    fn shown(&self, name: &str) -> Value {
        let run = self.conversations(&["show", name, "--json"], "");
        assert_eq!(run.code, Some(0), "{}", run.err);
        parse(&run.out)
    }
}

#[test]
fn title_is_the_text_of_the_user() {
    let kept = Kept::new();
    let file = kept.0.path().join("notes.txt");
    std::fs::write(&file, "the quick brown fox").expect("is written");
    let run = kept.chat(&["--file", shown(&file)], "What jumps?\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(kept.titles(), ["What jumps?"]);
}

#[test]
fn kv_cache_of_a_conversation_is_kept() {
    let kept = Kept::new();
    let question = format!("{}\n", "Tell me about the weather in Paris, please. ".repeat(20));
    let folder = kept.0.path().join("kept.cache");
    let stats = |run: Run| {
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.err
    };
    stats(kept.chat(&["--keep-cache", "100MB"], &question));
    let size = || std::fs::read_dir(&folder).map_or(0, |files| files.count());
    assert_eq!(size(), 1);
    let with = stats(kept.chat(&["--continue", "--stats", "--keep-cache", "100MB"], "And now?\n"));
    assert!(with.contains("tokens cached)") && !with.contains(", 0 of them cached"), "{with}");
    let small = stats(kept.chat(&["--keep-cache", "1kB"], &question));
    assert!(small.contains("(its KV cache has ") && small.contains("more than --keep-cache)"), "{small}");
    assert_eq!(size(), 1);
    let list = kept.conversations(&["list", "--json"], "");
    for line in list.out.lines() {
        let id = parse(line)["id"].as_str().expect("an id").to_owned();
        assert_eq!(kept.conversations(&["delete", &id], "").code, Some(0));
    }
    assert_eq!(size(), 0);
}

#[test]
fn chats_are_continued_and_opened() {
    let kept = Kept::new();
    let first = kept.chat(&["--system", "Be brief."], "Hello\nHow are you?\n");
    assert_eq!(first.code, Some(0), "{}", first.err);
    let whole = kept.chat(&["--system", "Be brief.", "--no-store"], "Hello\nHow are you?\nAnd now?\n");
    let continued = kept.chat(&["--continue"], "/history\nAnd now?\n");
    assert_eq!(continued.code, Some(0), "{}", continued.err);
    assert!(continued.err.contains("(4 messages loaded from \"Hello\")"), "{}", continued.err);
    assert!(continued.err.contains("system: Be brief.\nuser: Hello\n"), "{}", continued.err);
    assert_eq!(whole.out, first.out + &continued.out, "the same conversation");
    assert_eq!(kept.titles(), ["Hello"]);
    kept.chat(&[], "Another subject\n");
    assert_eq!(kept.titles(), ["Another subject", "Hello"]);
    let opened = kept.chat(&["--open", "hel"], "/conversations\n/open another\n/history\n/open nothing\n");
    assert!(opened.err.contains("(6 messages loaded from \"Hello\")"), "{}", opened.err);
    assert!(
        opened.err.contains("6 messages  Hello\n") && opened.err.contains("2 messages  Another subject\n"),
        "{}",
        opened.err
    );
    assert!(
        opened.err.contains("(2 messages loaded from \"Another subject\"; they have no system prompt"),
        "{}",
        opened.err
    );
    assert!(opened.err.contains("error: there is no conversation `nothing`"), "{}", opened.err);
    let shown = kept.conversations(&["show", "Hello"], "");
    assert!(shown.out.starts_with("system: Be brief.\n\nuser: Hello\n\nassistant: "), "{}", shown.out);
    assert_eq!(kept.shown("Hello")["settings"]["system"], "Be brief.");
    for (args, expected) in [
        (&["--open", "nothing"][..], "there is no conversation `nothing`"),
        (&["--open", "e"], "is in the titles of 2 conversations"),
    ] {
        let run = kept.chat(args, "Hello\n");
        assert!(run.code == Some(1) && run.err.contains(expected) && run.out.is_empty(), "{}", run.err);
    }
}

#[test]
fn undone_turns_leave_and_regenerated_ones_branch() {
    let kept = Kept::new();
    let run = kept.chat(&["--temperature", "9", "--seed", "1"], "Hello\n/regen\nMore\n/undo\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let nodes = kept.shown("Hello")["nodes"].as_object().expect("messages").len();
    assert_eq!(nodes, 3, "a question and two replies");
    kept.chat(&["--continue"], "/undo\n/clear\nNext\n");
    assert_eq!(kept.titles(), ["Next", "Hello"]);
    assert_eq!(kept.shown("Hello")["nodes"].as_object().expect("messages").len(), 0);
}

#[test]
fn calls_and_results_are_kept() {
    let kept = Kept::new();
    let run = lm(&["chat", "--tools", "demo", "--store", &kept.file()], "How is the weather in Paris?\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let talk = kept.shown("How is the weather");
    let roles: Vec<_> =
        talk["nodes"].as_object().expect("messages").values().map(|node| &node["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let shown = kept.conversations(&["show", "weather"], "");
    assert!(shown.out.contains("→ get_weather({\"location\":\"Paris\"})"), "{}", shown.out);
    let again = lm(&["chat", "--tools", "demo", "--store", &kept.file(), "--continue"], "/history\n");
    assert!(again.err.contains("get_weather({\"location\": \"Paris\"})"), "{}", again.err);
}

#[test]
fn conversations_are_searched_exported_imported_and_deleted() {
    let kept = Kept::new();
    for question in ["Hello", "Why is the sky blue?"] {
        kept.chat(&[], &format!("{question}\n"));
    }
    let found = kept.conversations(&["search", "sky", "bl", "--json"], "");
    let found: Vec<Value> = found.out.lines().map(parse).collect();
    assert_eq!((found.len(), &found[0]["excerpt"]), (1, &"Why is the sky blue?".into()));
    let file = kept.0.path().join("backup.jsonl");
    let export = kept.conversations(&["export", "-o", shown(&file)], "");
    assert_eq!((export.code, export.out.as_str()), (Some(0), ""), "{}", export.err);
    let text = std::fs::read_to_string(&file).expect("is written");
    assert_eq!(text.lines().count(), 2);
    let twice = kept.conversations(&["export", "-o", shown(&file)], "");
    assert!(
        twice.code == Some(1) && twice.err.contains("backup.jsonl"),
        "an export replaces no file: {}",
        twice.err
    );
    assert_eq!(kept.conversations(&["export", "Hello"], "").out.lines().count(), 1);
    let part = kept.conversations(&["delete", "sky"], "");
    assert!(part.code == Some(1) && part.err.contains("is a part of the title"), "{}", part.err);
    let deleted = kept.conversations(&["delete", "Hello", "Why is the sky blue?"], "");
    assert_eq!((deleted.code, kept.titles().len()), (Some(0), 0), "{}", deleted.err);
    assert_eq!(kept.conversations(&["list"], "").err, "no conversations\n");
    let other = Kept::new();
    for (input, expected, code) in [
        (text.clone(), "2 imported\n", 0),
        (text.clone(), "0 imported, 2 there already\n", 0),
        (format!("{{}}\n{text}\n[[[\n"), "0 imported, 2 there already, 2 invalid\n", 1),
    ] {
        let run = other.conversations(&["import", "-"], &input);
        assert!(run.err.ends_with(expected) && run.code == Some(code), "{}", run.err);
    }
    assert_eq!(other.conversations(&["export"], "").out, text);
    let folder = other.conversations(&["import", shown(kept.0.path())], "");
    assert_eq!(folder.code, Some(1), "a folder ends: {}", folder.err);
}

#[test]
fn newer_database_is_refused_and_the_chat_needs_none() {
    let kept = Kept::new();
    std::fs::write(kept.file(), "this is no database").expect("can be written");
    for args in [&["list"][..], &["export"]] {
        let run = kept.conversations(args, "");
        assert!(
            run.code == Some(1) && run.err.contains("is not a store of conversations; it is left as it is"),
            "{}",
            run.err
        );
    }
    let run = kept.chat(&["--continue"], "Hello\n");
    assert!(run.code == Some(1) && run.out.is_empty(), "{}", run.err);
    let run = kept.chat(&[], "Hello\n");
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 1), "{}", run.err);
    assert!(run.err.contains("warning: this conversation is not kept: "), "{}", run.err);
    assert_eq!(std::fs::read(kept.file()).expect("is there"), b"this is no database");
}

#[test]
fn nothing_is_kept_without_a_terminal() {
    let kept = Kept::new();
    kept.chat(&["--no-store"], "Hello\n");
    assert!(!std::path::Path::new(&kept.file()).exists());
}
