//! Images and audio in `lm chat` without a terminal.

use crate::program;
use crate::program::{Run, lm, shown};

/// A model that reads images and audio.
const READS_ALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/audio/gemma4-tiny");
const IMAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/media/rgb_37x53.png");
const AUDIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/sound/pcm16_16k.wav");

/// Runs a chat with that model.
fn chat_with_media(args: &[&str], lines: &str) -> Run {
    lm(&[&["chat", "-m", READS_ALL, "--temperature", "0", "-n", "2"], args].concat(), lines)
}

#[test]
fn unreadable_file_does_not_end_the_chat() {
    let url = "https://example.com/cat.png";
    let lines = format!("/image nofile.png\n/audio nofile.wav\n/image .\n/image {url}\nHello\n/history\n");
    let run = chat_with_media(&[], &lines);
    for expected in ["nofile.png", "nofile.wav", "https://example.com/cat.png: URLs are not fetched"] {
        assert!(run.err.contains(expected), "{expected}: {}", run.err);
    }
    let is_answered = run.err.contains("user: Hello\n");
    assert_eq!((run.code, is_answered), (Some(1), true), "{}", run.err);
}

#[test]
fn media_join_the_next_message_or_are_dropped() {
    // A line of paths is one of files that were dropped on the terminal.
    let lines = format!(
        "/audio {AUDIO}\n{AUDIO}\n/image file://{IMAGE}\n'{AUDIO}' {IMAGE} \nWhat is it?\n/audio {IMAGE}\n/audio {AUDIO}\n\
         /audio\nHello\n/history\n"
    );
    let run = chat_with_media(&["--image", IMAGE, "--audio", AUDIO], &lines);
    let notes: Vec<_> = run.err.lines().filter(|line| line.contains("of the next message")).collect();
    let note = |kind: &str, count, command: &str| {
        format!("({kind} {count} of the next message; {command} alone drops them)")
    };
    let expected = [
        note("audio", 2, "/audio"),
        note("audio", 3, "/audio"),
        note("image", 2, "/image"),
        note("audio", 4, "/audio"),
        note("image", 3, "/image"),
        note("audio", 1, "/audio"),
    ];
    assert_eq!(notes, expected, "{}", run.err);
    let sent = "user: [image] [audio] [audio] [audio] [image] [audio] [image] What is it?\n";
    assert!(run.err.contains(sent), "{}", run.err);
    assert!(run.err.contains("rgb_37x53.png") && run.err.contains("expected WAV"), "{}", run.err);
    assert!(run.err.contains("(no audio)") && run.err.contains("user: Hello\n"), "{}", run.err);
    assert_eq!(run.code, Some(1), "{}", run.err);
}

#[test]
fn files_dropped_together_are_added_all_or_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let damaged = folder.path().join("damaged.png");
    std::fs::write(&damaged, "x").expect("can be written");
    let run = chat_with_media(&[], &format!("{IMAGE} {}\nHello\n/history\n", shown(&damaged)));
    assert!(run.err.contains(shown(&damaged)) && run.err.contains("user: Hello\n"), "{}", run.err);
}

/// The header of the file is right, and the rest is missing.
#[test]
fn damaged_file_is_refused_at_once_and_the_others_stay() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cut = |name: &str, whole: &str| {
        let bytes = std::fs::read(whole).expect("the repository has it");
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("can be written");
        path
    };
    let image = cut("cut.png", IMAGE);
    let lines = format!("/image {IMAGE}\n/image {}\nHello\n/history\n", shown(&image));
    let run = chat_with_media(&[], &lines);
    let errors: Vec<_> = run.err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{}", run.err);
    assert!(errors[0].starts_with(&format!("error: {}", shown(&image))), "{}", run.err);
    assert!(run.err.contains("user: [image] Hello\n"), "{}", run.err);
    assert!(program::error(&["chat", "-m", READS_ALL, "--image", shown(&image)], "").contains("cut.png"));
}

#[test]
fn text_model_rejects_files_at_once() {
    let run = lm(&["chat"], &format!("/image {IMAGE}\n/audio {AUDIO}\n{IMAGE}\nHello\n"));
    let errors: Vec<_> = run.err.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    let [image, audio] = ["images", "audio"].map(|kind| format!("the model `pocket` reads no {kind}"));
    let named =
        [(IMAGE, &image), (AUDIO, &audio), (IMAGE, &image)].map(|(file, error)| format!("{file}: {error}"));
    assert_eq!(errors, named, "{}", run.err);
    assert_eq!((run.code, run.out.lines().count()), (Some(1), 1), "the message is answered: {}", run.err);
    let error = program::error(&["chat", "--image", IMAGE], "Hello\n");
    assert_eq!(error, format!("{IMAGE}: {image}"));
}

#[test]
fn cleared_chat_has_no_images() {
    let run = chat_with_media(&[], &format!("/image {IMAGE}\n/clear\nHello\n/history\n"));
    assert_eq!((run.code, run.err.contains("user: Hello\n")), (Some(0), true), "{}", run.err);
}

#[test]
fn recorded_image_is_not_replayed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("talk.jsonl");
    let run = chat_with_media(&["--image", IMAGE, "--record", shown(&file)], "Hello\n");
    assert_eq!(run.code, Some(0), "{}", run.err);
    let replay = lm(&["replay", shown(&file), READS_ALL], "");
    assert!(replay.out.contains("request 1: not replayed: its prompt has images"), "{}", replay.err);
    assert!(replay.out.ends_with("0 equal, 0 different, 1 not replayed\n"), "{}", replay.out);
    assert!(replay.err.contains("can be replayed") && replay.code == Some(1), "{}", replay.err);
}
