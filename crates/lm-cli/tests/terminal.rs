//! Sessions on a terminal (a pty): keys in, screen and exit code out; standard output and standard error
//! apart where they are redirected.
#![cfg(unix)]

use std::fs;
use std::io::Write;

use crate::pty::{ALT_ENTER, ENTER, Terminal, UP, state};
use serde_json::Value;

/// Without its end tokens the model generates until the context is full.
const ENDLESS: [&str; 4] = ["--logit-bias", "2037=-inf", "--logit-bias", "2039=-inf"];

#[test]
fn lines_of_one_read_are_all_answered() {
    let state = state();
    let mut terminal = Terminal::chat(&[], state.path());
    terminal.send("/system Be brief.\rHello\r/history\r/exit\r");
    terminal.expect("system: Be brief.");
    terminal.expect("user: Hello");
    terminal.expect("assistant: ");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn waiting_commands_say_so_and_end_at_first_interrupt() {
    for command in ["batch", "embed", "parse"] {
        let state = state();
        let mut terminal = Terminal::start(&[command], state.path());
        terminal.expect("reading lines of JSON from standard input");
        terminal.interrupt();
        assert_eq!(terminal.end(), 130, "{command}");
    }
}

#[test]
fn failures_and_invalid_utf8_keep_the_conversation() {
    let state = state();
    let mut terminal = Terminal::chat(&[], state.path());
    terminal.ask("Hello", "> ");
    terminal.ask("/save /nowhere/chat.json", "`/nowhere/chat.json` cannot be written");
    terminal.ask("/load /nowhere/chat.json", "`/nowhere/chat.json` cannot be loaded");
    terminal.ask("/nothing", "there is no command `/nothing`");
    terminal.expect("> ");
    let mut keys = terminal.session.process().get_file_handle().expect("the terminal");
    keys.write_all(b"caf\xe9 noir").and_then(|()| keys.flush()).expect("the program reads");
    terminal.expect("the line up to them is `caf`");
    terminal.expect("> ");
    terminal.send(UP);
    terminal.expect("caf");
    terminal.send("\x15");
    terminal.ask("/history", "user: Hello");
    terminal.line("/bye");
    assert_eq!(terminal.end(), 0, "on a terminal the user has seen the errors");
}

#[test]
fn interrupted_reply_is_kept_and_can_be_undone() {
    let state = state();
    let mut terminal = Terminal::chat(&ENDLESS, state.path());
    terminal.line("Hello");
    terminal.expect("Hello\r\nHello! How can I help you?");
    terminal.interrupt();
    terminal.expect("(interrupted; the reply so far is kept, /undo takes the turn back)");
    terminal.expect("> ");
    terminal.ask("/history", "user: Hello");
    terminal.expect("assistant: Hello! How can I help you?");
    terminal.ask("/undo", "(taken back: Hello)");
    terminal.ask("/undo", "there is no turn to take back");
    terminal.expect("> ");
    terminal.interrupt();
    terminal.expect("Ctrl-C again");
    terminal.expect("> ");
    terminal.interrupt();
    assert_eq!(terminal.end(), 130);
}

#[test]
fn history_persists_unless_disabled() {
    let state = state();
    let mut terminal = Terminal::chat(&[], state.path());
    terminal.ask("Hello there", "> ");
    terminal.exit();
    let mut terminal = Terminal::chat(&[], state.path());
    terminal.send(UP);
    terminal.expect("/exit");
    terminal.send(UP);
    terminal.expect("Hello there");
    terminal.send("\x15");
    terminal.exit();
    let file = state.path().join("lm/history");
    let kept = fs::read_to_string(&file).expect("a history");
    let mut terminal = Terminal::chat(&["--no-history"], state.path());
    terminal.ask("a secret", "> ");
    terminal.exit();
    assert_eq!(fs::read_to_string(&file).expect("a history"), kept);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&file).expect("a history").permissions().mode() & 0o077, 0, "for its user only");
}

#[test]
fn keys_complete_commands_and_insert_lines() {
    let state = state();
    let mut terminal = Terminal::chat(&["-n", "1"], state.path());
    terminal.send("/too\t\r");
    terminal.expect("(none; start with --tools demo, --tools FILE or --mcp SERVER)");
    terminal.expect("> ");
    terminal.send("/set temp\t0.5\r");
    terminal.expect("(temperature 0.5)");
    terminal.expect("> ");
    terminal.send(&format!("one{ALT_ENTER}two{ENTER}"));
    terminal.expect("(the reply was cut: it reached --max-tokens; /continue resumes it)");
    terminal.expect("> ");
    terminal.send("\"\"\"three\rfour\"\"\"\r");
    terminal.expect("(the reply was cut");
    terminal.expect("> ");
    let shown = terminal.ask("/history", "four");
    assert!(shown.contains("user: one\r\ntwo") && shown.contains("user: three\r\n"), "{shown}");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn keys_typed_ahead_wait_in_the_prompt() {
    let state = state();
    let mut terminal = Terminal::start(&["chat", "-n", "1"], state.path());
    terminal.send("one\rtwi\x7fo\r");
    terminal.expect("> one");
    terminal.expect("two");
    terminal.send(ENTER);
    terminal.expect("(the reply was cut");
    let shown = terminal.ask("/history", "assistant");
    assert!(shown.contains("user: one\r\ntwo"), "{shown}");
    terminal.exit();
}

#[test]
fn paste_is_one_message_at_any_time() {
    let state = state();
    let mut terminal = Terminal::chat(&ENDLESS, state.path());
    terminal.send("\x1b[200~first\r  line two\r\rline four\x1b[201~");
    terminal.expect("line four");
    terminal.send(ENTER);
    terminal.expect("I am sorry");
    terminal.send("\x1b[200~while it\rruns\r\x1b[201~");
    terminal.interrupt();
    terminal.expect("(interrupted");
    terminal.expect("> while it");
    terminal.expect("runs");
    terminal.interrupt();
    terminal.expect("> ");
    let shown = terminal.ask("/history", "assistant: ");
    assert!(shown.contains("user: first\r\n  line two\r\n\r\nline four\r\n"), "{shown}");
    terminal.exit();
}

#[test]
fn long_paste_shows_its_length() {
    let state = state();
    let mut terminal = Terminal::chat(&["-n", "1"], state.path());
    let lines = "a line of text\r".repeat(30);
    terminal.send(&format!("\x1b[200~{lines}end\x1b[201~"));
    terminal.expect("[453 characters, 31 lines]");
    terminal.send(ENTER);
    terminal.expect("(the reply was cut");
    terminal.expect("> ");
    terminal.exit();
}

#[test]
fn conversation_is_saved_loaded_and_resumed() {
    let state = state();
    let file = state.path().join("chat.json");
    let path = file.to_str().expect("a path of text");
    let mut terminal = Terminal::chat(&["--system", "Be brief."], state.path());
    terminal.ask("Hello", "> ");
    terminal.ask(&format!("/save {path}"), "(saved to ");
    terminal.ask("/clear", "(started over)");
    terminal.ask("/system Be long.", "(system prompt set)");
    terminal.ask(&format!("/load {path}"), "(2 messages loaded from ");
    terminal.ask("/system", "Be brief.");
    terminal.expect("> ");
    terminal.ask("How are you?", "> ");
    terminal.ask("/save", "(saved to ");
    terminal.exit();
    let saved: Value = serde_json::from_slice(&fs::read(&file).expect("was saved")).expect("JSON");
    assert_eq!(saved["messages"].as_array().map(Vec::len), Some(5));
    let mut terminal = Terminal::start(&["chat", "--resume", path], state.path());
    terminal.expect("(4 messages loaded from ");
    terminal.expect("> ");
    terminal.ask("/history", "user: How are you?");
    terminal.exit();
}

#[test]
fn path_accepts_spaces_and_tilde() {
    let state = state();
    let mut terminal = Terminal::chat(&["-n", "2"], state.path());
    terminal.ask("Hello", "> ");
    terminal.ask("/save ~/my first chat.json", "my first chat.json)");
    assert!(state.path().join("my first chat.json").is_file());
    for line in [r"/load ~/my\ first\ chat.json", "/load \"~/my first chat.json\"", "/load ~/my fir\t"] {
        let shown = terminal.ask(line, "(2 messages loaded from ");
        assert!(!shown.contains("error"), "{line}: {shown}");
        terminal.expect("> ");
    }
    terminal.exit();
}

#[test]
fn loading_reports_the_effective_system_prompt() {
    let state = state();
    let bare = state.path().join("bare.json");
    fs::write(&bare, r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]"#)
        .expect("can be written");
    let mut terminal = Terminal::chat(&["--system", "Be brief."], state.path());
    terminal.ask("/load ~/bare.json", "they have no system prompt, the current one stays)");
    terminal.ask("/system", "Be brief.");
    terminal.ask("/save ~/brief.json", "(saved to ");
    terminal.ask("/system Be long.", "(system prompt set)");
    terminal.ask("/load ~/brief.json", "their system prompt replaces the current one)");
    terminal.ask("/system", "Be brief.");
    terminal.exit();
}

#[test]
fn interrupt_at_a_result_undoes_the_turn() {
    let state = state();
    let tools = state.path().join("tools.json");
    let declaration = r#"[{"name": "get_weather", "description": "Returns the weather for a given location.", "parameters": {
        "type": "object", "properties": {"location": {"type": "string", "description": "The location to get the weather for."}},
        "required": ["location"]}}]"#;
    fs::write(&tools, declaration).expect("can be written");
    let notes = state.path().join("notes.txt");
    fs::write(&notes, "Bring a coat.").expect("can be written");
    let files = ["--tools", tools.to_str().expect("text"), "--file", notes.to_str().expect("text")];
    let mut terminal = Terminal::chat(&files, state.path());
    terminal.ask("How is the weather in Paris?", "result of get_weather(");
    terminal.expect("> ");
    terminal.interrupt();
    terminal.expect("(interrupted before the answer began; the message is taken back, Up recalls it)");
    terminal.expect("> ");
    terminal.ask("/undo", "there is no turn to take back");
    terminal.expect("> ");
    terminal.ask("How is the weather in Paris?", "result of get_weather(");
    terminal.expect("> ");
    terminal.line("{}");
    terminal.expect("> ");
    terminal.ask("/history", "Bring a coat.");
    terminal.exit();
}

#[test]
fn settings_change_the_next_reply() {
    let state = state();
    let mut terminal = Terminal::chat(&["--stats", "-n", "8"], state.path());
    terminal.ask("Hello", "greedy]");
    terminal.expect("> ");
    terminal.ask("/regen", "(greedy sampling gives the same reply again; /set temperature 1 samples)");
    terminal.expect("greedy]");
    terminal.expect("> ");
    terminal.ask("/set top_p 0.5", "there is no setting `top_p` (did you mean `top-p`?)");
    terminal.ask("/setting", "there is no command `/setting` (did you mean `/set`?)");
    terminal.ask("/set temperature -1", "temperature is `-1`: expected a number of at least 0");
    terminal.ask("/set temperature 5", "(temperature 5)");
    terminal.ask("/set seed 7", "(seed 7)");
    terminal.ask("/regen", "seed 9]");
    terminal.expect("> ");
    terminal.ask("/regen", "seed 10]");
    terminal.expect("> ");
    let shown = terminal.ask("/set", "top-p");
    assert!(shown.contains("seed               7"), "{shown}");
    terminal.ask("/set speed 1", "there is no setting `speed`");
    terminal.ask("/history", "user: Hello");
    let rest = terminal.ask("/help", "//text");
    assert!(!rest.contains("user: "), "the regenerated turn is in the history once: {rest}");
    terminal.exit();
}

#[test]
fn full_context_has_a_hint() {
    let state = state();
    let args = [&ENDLESS[..], &["--context", "64"]].concat();
    let mut terminal = Terminal::chat(&args, state.path());
    terminal
        .ask("Hello", "(the reply was cut: the context is full; /compact summarises the conversation, --overflow sliding-window or --context allows more)");
    terminal.expect("> ");
    terminal.ask("Hello", "hint: a shorter prompt fits");
    terminal.expect("Enter does neither: ");
    terminal.line("");
    terminal.expect("> ");
    terminal.ask("Hello", "Enter does neither: ");
    terminal.ask("d", "(from now on the oldest turns are left out; /set overflow error ends that)");
    terminal.expect("(the reply was cut");
    terminal.expect("> ");
    terminal.ask("/clear", "(started over)");
    terminal.ask("Hello", "(the reply was cut");
    terminal.expect("> ");
    terminal.exit();
}

#[test]
fn escape_ends_a_reply() {
    let state = state();
    let mut terminal = Terminal::chat(&ENDLESS, state.path());
    terminal.line("Hello");
    terminal.expect("so");
    // The codes of another key are not Esc.
    terminal.send("\x1b[A");
    std::thread::sleep(std::time::Duration::from_millis(200));
    terminal.send("\x1b");
    let shown = terminal.expect("(interrupted; the reply so far is kept");
    assert!(shown.len() > 10, "{shown}");
    terminal.expect("> ");
    terminal.exit();
}

#[test]
fn mentioned_file_is_added() {
    let state = state();
    let path = state.path().join("notes.txt");
    std::fs::write(&path, "the quick brown fox").expect("is written");
    let mut terminal = Terminal::chat(&[], state.path());
    let path = path.display();
    terminal.ask(&format!("What is in @{path}?"), "notes.txt: ");
    terminal.expect("before the next message");
    terminal.expect("> ");
    terminal.ask("/history", "the quick brown fox");
    terminal.expect("> ");
    // Tab completes the path.
    terminal.send(&format!("/system Read @{}\t", path.to_string().trim_end_matches("es.txt")));
    terminal.expect("notes.txt");
    terminal.send("\r");
    terminal.expect("(system prompt set)");
    terminal.exit();
}

#[test]
fn conversation_is_replaced_by_a_summary() {
    let state = state();
    let mut terminal = Terminal::chat(&["--tools", "demo"], state.path());
    terminal.ask("/compact", "there is nothing to summarise");
    terminal.expect("> ");
    terminal.ask("How is the weather in Paris?", "humidity of 50%");
    terminal.expect("> ");
    terminal.ask("/compact", "Enter uses it, Ctrl-C does not> ");
    terminal.send("\x03");
    terminal.expect("(the conversation stays as it is)");
    terminal.ask("/history", "user: How is the weather in Paris?");
    terminal.expect("> ");
    terminal.ask("/compact", "Enter uses it, Ctrl-C does not> ");
    // Ctrl-E, Ctrl-U: the text is one of our own.
    terminal.send("\x05\x15It is sunny in Paris.\r");
    terminal.expect("(the conversation goes on from this summary)");
    terminal.ask("/history", "user: Summarise the conversation above");
    let rest = terminal.expect("assistant: It is sunny in Paris.") + &terminal.expect("> ");
    assert!(!rest.contains("How is the weather"), "{rest}");
    terminal.exit();
}

#[test]
fn full_context_hint_omits_the_active_policy() {
    let state = state();
    let long = "so ".repeat(60);
    for (policy, cut_by_reply) in
        [("drop-oldest", "--overflow sliding-window"), ("sliding-window", "--context")]
    {
        let args = [&ENDLESS[..], &["--context", "64", "--overflow", policy]].concat();
        let mut terminal = Terminal::chat(&args, state.path());
        let hint = terminal.ask(&long, "; /clear begins again") + &terminal.expect("> ");
        assert!(
            hint.contains("hint: a shorter prompt fits") && !hint.contains("--overflow"),
            "{policy}: {hint}"
        );
        // More than half of the context: a window would leave the reply no room.
        terminal.line(&"so ".repeat(16));
        let note = terminal
            .expect("(the reply was cut: the context is full; /compact summarises the conversation, ");
        let rest = terminal.expect("allows more)");
        assert!(rest.starts_with(cut_by_reply), "{policy}: {note} {rest}");
        assert_eq!(rest.contains("--overflow"), policy != "sliding-window", "{rest}");
        terminal.expect("> ");
        terminal.exit();
    }
}

#[test]
fn benchmark_shows_the_current_measurement() {
    let state = state();
    let args = [
        "bench",
        "--only",
        "prefill,decode",
        "--prefill",
        "8",
        "--decode",
        "16",
        "--sequences",
        "2",
        "--runs",
        "2",
    ];
    let out = state.path().join("out");
    let mut terminal = Terminal::start_redirected(&args, state.path(), &format!("> {}", out.display()));
    for expected in ["prefill 8: run 2 of 2", "decode 16: warm-up", "decode 64, 2 sequences: run 1 of 2"] {
        terminal.expect(&format!("measuring {expected}"));
    }
    assert_eq!(terminal.end(), 0);
    assert!(!fs::read_to_string(out).expect("figures").contains("measuring"));
}

#[test]
fn redirected_answers_keep_the_prompt_on_the_terminal() {
    let state = state();
    let (out, err) = (state.path().join("out"), state.path().join("err"));
    let redirect = format!("> {} 2> {}", out.display(), err.display());
    let mut terminal = Terminal::start_redirected(&["chat", "--tools", "demo"], state.path(), &redirect);
    terminal.expect("> ");
    terminal.ask("How is the weather in Paris?", "> ");
    terminal.exit();
    let (out, err) = (fs::read_to_string(out).expect("answers"), fs::read_to_string(err).expect("notes"));
    assert!(out.contains("Paris") && out.lines().count() == 1, "the answer alone: {out}");
    assert!(err.contains("/help shows the commands") && err.contains("→ get_weather("), "{err}");
}

#[test]
fn ctrl_c_ends_generate_with_last_event_and_130() {
    let state = state();
    let out = state.path().join("out");
    let args = [&["generate", "--json", "Hello"], &ENDLESS[..]].concat();
    let mut terminal = Terminal::start_redirected(&args, state.path(), &format!("> {}", out.display()));
    let lines = || fs::read_to_string(&out).unwrap_or_default().lines().count();
    while lines() < 4 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    terminal.interrupt();
    assert_eq!(terminal.end(), 130);
    let out = fs::read_to_string(out).expect("events");
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = events.last().expect("an event");
    assert_eq!((&last["type"], &last["finish_reason"]), (&"finished".into(), &"cancelled".into()));
    let text: String = events.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(last["message"]["content"], text);
}
