//! End-to-end tests of `lm chat` without a terminal.

use std::io::Read;
use std::io::Write;
#[cfg(unix)]
use std::process::Command;

use crate::program::{self, lm, parse, shown, start};
use serde_json::json;

#[test]
fn tools_that_exceed_their_share_are_chosen_by_the_question() {
    let questions = "How is the weather in Paris?\nHello\nAnd what is the time now?\n";
    let run = lm(&["chat", "--tools", "demo", "--tool-share", "5"], questions);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let notes: Vec<&str> = run.err.lines().filter(|line| line.contains("tools declared")).collect();
    assert_eq!(
        notes[0], "(1 of 4 tools declared: get_weather; --tool-share off declares all)",
        "{}",
        run.err
    );
    assert!(run.err.contains("→ get_weather({\"location\": \"Paris\"})"), "{}", run.err);
    // The called tool stays, so nothing changes.
    assert_eq!(notes.len(), 1, "{}", run.err);
    for share in ["off", "25"] {
        let run = lm(&["chat", "--tools", "demo", "--tool-share", share], questions);
        assert!(run.code == Some(0) && !run.err.contains("tools declared"), "{}", run.err);
    }
    let none = lm(&["chat", "--tools", "demo", "--tool-share", "0"], questions);
    assert!(none.err.contains("(0 of 4 tools declared; --tool-share off declares all)"), "{}", none.err);
    let wrong = lm(&["chat", "--tools", "demo", "--tool-share", "half"], "");
    assert!(
        wrong.code == Some(2) && wrong.err.contains("expected an integer in 0..=100, or `off`"),
        "{}",
        wrong.err
    );
}

#[test]
fn hint_on_a_full_context_names_the_share_of_tools() {
    let hint = |share: &str| {
        let args = ["chat", "--tools", "demo", "--tool-share", share, "--context", "64"];
        let run = lm(&args, &"Hello, you. ".repeat(40));
        run.err.lines().find(|line| line.starts_with("hint: ")).expect("a hint").to_owned()
    };
    assert!(hint("off").ends_with("; without --tool-share off fewer tools are declared"), "{}", hint("off"));
    assert!(!hint("25").contains("--tool-share"), "{}", hint("25"));
}

#[test]
fn demo_tools_are_called_and_answered_from() {
    let questions = "How is the weather in Paris?\n\nWhat is the stock price of Apple?\n";
    let run = lm(&["chat", "--tools", "demo"], questions);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let (answers, notes): (Vec<_>, Vec<_>) = (run.out.lines().collect(), run.err.lines().collect());
    assert_eq!((answers.len(), notes.len()), (2, 4), "{}{}", run.out, run.err);
    assert_eq!(notes[0], "→ get_weather({\"location\": \"Paris\"})");
    let weather = parse(notes[1].strip_prefix("← ").expect("a result"));
    assert!(answers[0].contains(&weather["temperature"].to_string()), "{}", run.out);
    assert!(notes[2].starts_with("→ get_stock_price("), "{}", run.err);
    let price = parse(notes[3].strip_prefix("← ").expect("a result"));
    assert!(answers[1].contains(&price["price"].to_string()), "{}", run.out);
}

#[test]
fn next_line_answers_a_declared_tool() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tools.json");
    let declaration = json!([{
        "name": "get_weather",
        "description": "Returns the weather for a given location.",
        "parameters": {
            "type": "object",
            "properties": {"location": {"type": "string", "description": "The location to get the weather for."}},
            "required": ["location"],
        },
    }]);
    std::fs::write(&file, declaration.to_string()).expect("the file can be written");
    let result = "{\"location\": \"Paris\", \"temperature\": 31, \"unit\": \"C\", \"condition\": \"Rainy\"}";
    let run = lm(&["chat", "--tools", shown(&file)], &format!("How is the weather in Paris?\n{result}\n"));
    let notes: Vec<_> = run.err.lines().collect();
    assert_eq!(notes, ["→ get_weather({\"location\": \"Paris\"})", &format!("← {result}")]);
    assert!(run.out.contains("31") && run.out.lines().count() == 1, "{}", run.out);
}

#[test]
fn manual_tools_file_works_as_shown() {
    let manual = include_str!("../../../docs/cli.md");
    let json = manual.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a file");
    let shown_chat = manual.split("> What is the population").nth(1).expect("a chat");
    let mut lines = shown_chat.lines();
    let question = format!("What is the population{}", lines.next().expect("the rest of the question"));
    let call = lines.next().expect("a call");
    let typed = lines.next().and_then(|line| line.split_once("> ")).expect("a result").1;
    let result = lines.next().expect("the result");
    let file = program::text_file(json.as_bytes());
    let run = lm(&["chat", "--tools", shown(file.path())], &format!("{question}\n{typed}\n"));
    assert_eq!(run.err.lines().collect::<Vec<_>>(), [call, result], "{}", run.out);
    assert_eq!(run.out.lines().next(), lines.next(), "{}", run.err);
}

#[test]
fn chat_commands_work_without_a_terminal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("chat.json");
    let save = format!("/save {}\n", shown(&file));
    let run = lm(
        &["chat", "--system", "Be brief."],
        &format!("Hello\n{save}/history\n/reset\n/history\n/quit\nHello\n"),
    );
    assert_eq!(run.code, Some(0));
    let reply = run.out.strip_suffix('\n').expect("a line");
    let expected = format!(
        "(saved to {})\nsystem: Be brief.\nuser: Hello\nassistant: {reply}\n(started over)\nsystem: Be brief.\n",
        file.display()
    );
    let notes: String = run
        .err
        .lines()
        .filter(|line| !line.starts_with("[thinking]"))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(notes, expected);
    let saved = parse(&std::fs::read_to_string(&file).expect("was saved"));
    let roles: Vec<_> =
        saved["messages"].as_array().expect("a list").iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
}

#[test]
fn kv_cache_is_saved_and_resumed_on_request() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, small) = (folder.path().join("chat.json"), folder.path().join("small.json"));
    let chat = |args: &[&str], input: &str| {
        let run = lm(&[&["chat", "--stats", "-n", "8"], args].concat(), input);
        assert_eq!(run.code, Some(0), "{}", run.err);
        run
    };
    let run = chat(&["--save-cache", "1GB"], &format!("Hello\n/save {}\n", shown(&file)));
    assert!(run.err.contains(" with the KV cache of "), "{}", run.err);
    let run = chat(&["--save-cache", "1kB"], &format!("Hello\n/save {}\n", shown(&small)));
    assert!(run.err.contains("; its KV cache has "), "{}", run.err);
    assert!(run.err.contains(", more than --save-cache"), "{}", run.err);
    let (with, without) =
        (chat(&["--resume", shown(&file)], "And now?\n"), chat(&["--resume", shown(&small)], "And now?\n"));
    assert_eq!(with.out, without.out);
    assert!(!with.err.contains(" 0 of them cached"), "{}", with.err);
    assert!(without.err.contains(" 0 of them cached"), "{}", without.err);
    // Other KV pages than this model's: the messages are resumed without them.
    let run = chat(&["--resume", shown(&file), "--kv", "f32"], "And now?\n");
    assert!(run.err.contains("(the KV cache in it is not used: "), "{}", run.err);
    assert!(run.err.contains("(2 messages loaded from "), "{}", run.err);
    // A file that was cut off in its KV pages.
    let bytes = std::fs::read(&file).expect("it is there");
    std::fs::write(&file, &bytes[..bytes.len() - 1]).expect("can be written");
    let run = chat(&["--resume", shown(&file)], "And now?\n");
    assert_eq!(run.out, without.out);
    assert!(run.err.contains("(the KV cache in it is not used: the file has "), "{}", run.err);
    // Every byte after the JSON belongs to the pages: damage there leaves the messages.
    let pages = bytes.iter().position(|&byte| byte == 0).expect("pages");
    for at in [pages, pages + 1, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&file, damaged).expect("can be written");
        let run = chat(&["--resume", shown(&file)], "And now?\n");
        assert_eq!(run.out, without.out, "byte {at}");
        assert!(run.err.contains("(the KV cache in it is not used: "), "byte {at}: {}", run.err);
    }
    // Damage in the JSON: without its checksum it is read unchecked.
    let text = String::from_utf8(bytes[..pages].to_vec()).expect("text");
    std::fs::write(&file, text.replace("Hello", "Hullo")).expect("can be written");
    let run = lm(&["chat", "--resume", shown(&file)], "");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("without the key `checksum` it is read unchecked"), "{}", run.err);
    let mut json = parse(&text.replace("Hello", "Hullo"));
    json.as_object_mut().expect("an object").remove("checksum");
    std::fs::write(&file, json.to_string()).expect("can be written");
    let run = chat(&["--resume", shown(&file)], "/history\n");
    assert!(run.err.contains("user: Hullo"), "{}", run.err);
}

#[test]
fn continued_reply_stats_count_the_addition() {
    let run = lm(&["chat", "--stats"], "Hello\n/continue\n/set max-tokens 4\nHello\n/continue\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let stats: Vec<_> = run.err.lines().filter(|line| line.starts_with('[')).collect();
    let [complete, again, cut, rest] = stats[..] else { panic!("{}", run.err) };
    assert!(complete.starts_with("[9 prompt tokens, 0 of them cached; 14 output tokens, "), "{}", run.err);
    let expected = "[9 prompt tokens, 9 of them cached; 1 output token after 13 earlier ones; first after ";
    assert!(again.starts_with(expected), "{}", run.err);
    assert!(run.err.contains("(nothing was added: the model ends its reply here)\n[9 prompt"), "{}", run.err);
    assert!(
        cut.contains("; 4 output tokens, ") && rest.contains("; 4 output tokens after 4 earlier ones, "),
        "{}",
        run.err
    );
}

#[test]
fn failed_save_does_not_end_the_chat() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let run = lm(&["chat"], &format!("/save {}\n/save /nowhere/a/b\nHello\n", shown(file.path())));
    assert_eq!(run.code, Some(1));
    let errors: Vec<_> = run.err.lines().collect();
    assert!(errors[0].contains("exists already; give another name"), "{}", run.err);
    assert!(errors[1].contains("`/nowhere/a/b` cannot be written"), "{}", run.err);
    assert_eq!(run.out.lines().count(), 1, "the turn after them is answered: {}", run.out);
    let below = format!("{}/chat.json", shown(file.path()));
    let run = lm(&["chat"], &format!("/save {below}\n"));
    assert!(run.err.starts_with(&format!("error: `{below}` cannot be written: ")), "{}", run.err);
    assert!(!run.err.contains("unfinished"), "the temporary file is not the user's: {}", run.err);
}

#[test]
fn invalid_utf8_and_quoted_lines_are_messages() {
    let mut child = start(&["chat", "-n", "2"]);
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(b"caf\xe9\n\"\"\"one\ntwo\"\"\"\n/history\n").expect("the program reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let notes = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{notes}");
    assert!(notes.contains("user: caf\u{fffd}\n") && notes.contains("user: one\ntwo\n"), "{notes}");
}

/// A model may write a call although there are no tools, as the embedded one does to its second greeting.
#[test]
fn reply_without_tools_has_no_call() {
    let run = lm(&["chat"], "hello\nhello\nhello\n");
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 3), "{}", run.out);
    assert!(!run.out.contains("tool_call"), "{}", run.out);
}

#[test]
fn failed_turn_sets_exit_code_and_keeps_the_others() {
    let long = "word ".repeat(3000);
    let run = lm(&["chat"], &format!("{long}\n/nothing\nHello\n"));
    assert_eq!(run.code, Some(1));
    let errors: Vec<_> = run.err.lines().collect();
    assert!(errors[0].starts_with("error: ") && errors[0].contains("2048"), "{}", run.err);
    assert!(errors[1].starts_with("hint: ") && errors[1].contains("/clear"), "{}", run.err);
    assert!(errors[2].contains("no command `/nothing`"), "{}", run.err);
    assert_eq!(run.out.lines().count(), 1, "the last turn is answered: {}", run.out);
}

/// Ctrl-C is the signal SIGINT: without a terminal it ends the program with its turn.
#[cfg(unix)]
#[test]
fn interrupt_ends_a_piped_chat() {
    // Without its end tokens the model generates until the context is full.
    let endless = ["chat", "--logit-bias", "2037=-inf", "--logit-bias", "2039=-inf"];
    let mut child = start(&endless);
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(b"Hello\nHello\n").expect("the program reads");
    let mut stdout = child.stdout.take().expect("is piped");
    let mut first = [0];
    stdout.read_exact(&mut first).expect("the reply begins");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("output is text");
    assert_eq!(rest.lines().count(), 1, "the second turn is not run: {rest}");
    assert_eq!(child.wait().expect("the program ends").code(), Some(130));
}

#[test]
fn reply_without_text_is_noted() {
    // Only the end of a reply is possible.
    let ends = (0..2048).filter(|id| ![2037, 2039].contains(id)).map(|id: u32| id.to_string());
    let others = ends.collect::<Vec<_>>().join(",");
    let run = lm(&["chat", "--suppress-tokens", &others], "Hello\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("(empty reply)"), "{}", run.err);
    let run = lm(&["chat", "--temperature", "0", "-n", "3"], "Hello\n");
    assert!(!run.err.contains("(empty reply)") && !run.out.is_empty(), "{}", run.err);
}

#[test]
fn record_of_a_longer_context_names_the_model_that_made_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("talk.jsonl");
    let run = lm(&["chat", "-n", "2", "--record", shown(&file)], "Hello\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let tiny = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/llama-tiny");
    let error = program::error(&["replay", shown(&file), tiny], "");
    assert!(error.contains("recorded with the model pocket") && !error.contains("--context"), "{error}");
}

#[test]
fn recorded_chat_is_replayed_token_by_token() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("talk.jsonl");
    let record = ["chat", "--tools", "demo", "--temperature", "0.8", "-n", "30", "--record", shown(&file)];
    let run = lm(&record, "How is the weather in Paris?\nHello\n");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", run.err));
    let requests = text.lines().count() - 1;
    assert!(requests >= 2, "{text}");
    let replay = lm(&["replay", shown(&file)], "");
    assert_eq!(replay.code, Some(0), "{}{}", replay.out, replay.err);
    assert!(
        replay.out.ends_with(&format!("{requests} equal, 0 different, 0 not replayed\n")),
        "{}",
        replay.out
    );

    // A file that exists is not overwritten.
    let again = lm(&record, "Hello\n");
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("--record"), "{}", again.err);

    let mut lines: Vec<_> = text.lines().map(parse).collect();
    let tokens = lines[2]["tokens"].as_array_mut().expect("tokens");
    let place = tokens.len() - 1;
    let token = tokens[place].as_u64().expect("an id");
    tokens[place] = (token ^ 1).into();
    let write = |lines: &[serde_json::Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, text).expect("the file can be written");
    };
    write(&lines);
    let replay = lm(&["replay", shown(&file)], "");
    assert_eq!(replay.code, Some(1), "{}{}", replay.out, replay.err);
    assert!(replay.out.contains(&format!("request 2: differs at token {place} of")), "{}", replay.out);

    lines[0]["fingerprint"] = "0".repeat(64).into();
    write(&lines);
    assert!(
        lm(&["replay", shown(&file)], "").err.contains("recorded with the model"),
        "another model is named"
    );
    let half = format!("{}\n{{", text.lines().next().expect("a header"));
    for (text, place) in [("", "line 1"), ("{\"format\": 1}", "line 1"), (half.as_str(), "line 2")] {
        std::fs::write(&file, text).expect("the file can be written");
        let replay = lm(&["replay", shown(&file)], "");
        assert_eq!(replay.code, Some(1));
        assert!(replay.err.contains(place), "{}", replay.err);
    }
}

#[test]
fn cut_reply_continues() {
    let whole = lm(&["chat"], "Hello\n");
    let cut = lm(&["chat", "-n", "2"], "Hello\n/continue\n/history\n");
    assert_eq!(cut.code, Some(0), "{}", cut.err);
    assert!(cut.err.contains("/continue resumes it"), "{}", cut.err);
    let shown: String = cut.out.lines().collect();
    assert!(whole.out.trim_end().starts_with(&shown) && shown.len() > 2, "{shown}");
    assert!(cut.err.lines().any(|line| line == format!("assistant: {shown}")), "{}", cut.err);
    let nothing = lm(&["chat"], "/continue\n");
    assert!(nothing.err.contains("no reply that can be continued"), "{}", nothing.err);
}

#[test]
fn full_context_drops_oldest_turns_or_hints_at_it() {
    let questions = "Tell me about the weather in Paris, please.\n".repeat(12);
    let run = lm(&["chat", "--context", "160", "-n", "20"], &questions);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("--overflow drop-oldest"), "{}", run.err);
    let run = lm(
        &["chat", "--context", "160", "-n", "20", "--overflow", "drop-oldest"],
        &format!("{questions}/history\n"),
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("the oldest, left it"), "{}", run.err);
    assert_eq!(run.err.lines().filter(|line| line.starts_with("user: ")).count(), 12, "the history is whole");
    let run = lm(&["chat", "--context", "160", "-n", "20", "--overflow", "sliding-window"], &questions);
    assert_eq!(run.code, Some(0), "{}", run.err);
}

#[test]
fn reply_longer_than_the_context_slides() {
    let args = [
        "chat",
        "--context",
        "64",
        "-n",
        "300",
        "--overflow",
        "sliding-window",
        "--temperature",
        "3",
        "--seed",
        "5",
    ];
    let run = lm(&[&args[..], &["--top-k", "0", "--top-p", "1"]].concat(), "Tell me a story.\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("more tokens of the reply left it"), "{}", run.err);
}

#[test]
fn pdf_file_is_sent_as_text_and_cannot_take_all_memory() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../lm-documents/tests/files/");
    let (table, bomb) = (format!("{folder}table.pdf"), format!("{folder}bomb.pdf"));
    let chat = lm(&["chat", "--file", &table, "--no-store"], "Hello\n/history\n");
    assert!(chat.err.contains("table.pdf: ") && chat.err.contains(" tokens, 1 page before"), "{}", chat.err);
    assert!(chat.err.contains("Apples   3   1.20"), "{}", chat.err);
    let refused = lm(&["chat", "--file", &bomb, "--no-store"], "Hello\n");
    assert_eq!(refused.code, Some(1));
    if cfg!(unix) {
        assert!(refused.err.contains("bomb.pdf: it is a PDF file that cannot be read"), "{}", refused.err);
    }
}

#[test]
fn passages_of_a_large_file_are_those_that_fit_the_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.md");
    let filler =
        |number: usize| format!("Entry {number}: {}\n\n", "nothing of interest happened today. ".repeat(30));
    let text = |number: usize| match number {
        31 => filler(31) + "The quokka escaped on a Tuesday.\n\n",
        44 => filler(44) + "The wombat was found asleep.\n\n",
        _ => filler(number),
    };
    std::fs::write(&file, (0..60).map(text).collect::<String>()).expect("a file");
    let args = ["chat", "--file", shown(&file), "--no-store", "--file-share", "40", "-n", "4"];
    let chat = lm(&args, "When did the quokka escape?\nThanks\n/history\n");
    let sent = chat.err.rsplit_once("user: ").map_or("", |(before, _)| before);
    assert!(
        chat.err.contains("passages, those that fit the message; --file-share off sends all"),
        "{}",
        chat.err
    );
    assert!(sent.contains("quokka escaped on a Tuesday") && sent.contains("[…]"), "{}", chat.err);
    assert!(!chat.err.contains("wombat"), "{}", chat.err);
    let more = lm(&args, "When did the quokka escape?\nAnd the wombat?\n/history\n");
    assert!(more.err.contains("passages, more; "), "{}", more.err);
    assert!(more.err.contains("The wombat was found asleep."), "{}", more.err);
    let saved = folder.path().join("talk.json");
    let loaded = format!(
        "When did the quokka escape?\n/save {0}\n/load {0}\nAnd the wombat?\n/history\n",
        shown(&saved)
    );
    let loaded = lm(&args, &loaded);
    assert!(
        loaded.err.contains("loaded from ") && !loaded.err.contains("passages, more; "),
        "{}",
        loaded.err
    );
    let whole = lm(&["chat", "--file", shown(&file), "--no-store", "--file-share", "off"], "Hello\n");
    assert_eq!(whole.code, Some(1), "it does not fit the context");
}

#[test]
fn preset_gives_options_that_the_line_overrides() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("short.toml");
    std::fs::write(&file, "temperature = 0\nmax-tokens = 2\nstats = true\n").expect("a file");
    let short = lm(&["chat", "--preset", shown(&file)], "Hello\n");
    assert!(short.err.contains("greedy]") && short.err.contains("it reached --max-tokens"), "{}", short.err);
    let longer = lm(&["chat", "--preset", shown(&file), "-n", "50"], "Hello\n");
    assert!(longer.err.contains("greedy]") && !longer.err.contains("it reached"), "{}", longer.err);
    let precise = lm(&["chat", "--preset", "precise", "--stats"], "Hello\n");
    assert!(precise.err.contains("greedy]"), "{}", precise.err);
    std::fs::write(&file, "speed = 3\n").expect("a file");
    for (preset, message) in
        [(shown(&file), "--speed"), ("precice", "did you mean `precise`?"), ("./none.toml", "none.toml")]
    {
        let refused = lm(&["chat", "--preset", preset], "Hello\n");
        assert_eq!(refused.code, Some(2), "{preset}: {}", refused.err);
        assert!(refused.err.contains(message), "{preset}: {}", refused.err);
    }
}
