//! Pictures in messages: their places in prompts, their files, and conversations that hold them.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use lm_conversation::{
    Conversation, ConversationConfig, DroppedHistory, Error, GenerationPrompt, Message, Overflow, Part,
    PictureFiles, Pictures, Preface, PromptTemplate, SaveOptions, TurnOptions,
};
use lm_model::testing::FakeVision;
use lm_session::testing::{FakeLm, loaded, picture_file, tokenizer};
use lm_session::{Engine, EngineSettings, FinishReason, LoadedModel, SpecialTokens, TokenId};
use lm_template::{Content, Media, Role};
use serde_json::{Value, json};

/// A template that writes a placeholder for each image, and parts of text.
const TEMPLATE: &str = "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}\
    {% for p in m.content %}{% if p.type == 'image' %}<tool_response>{% elif p.type == 'text' %}{{ p.text }}{% endif %}\
    {% endfor %}{% endif %}{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
/// The token that stands for rows and, in templates, for a picture.
const ROW: &str = "<tool_response>";

fn engine() -> (Engine, Arc<FakeVision>) {
    let vision = Arc::new(FakeVision::default());
    let model = FakeLm::random(11, tokenizer().logits_width());
    let loaded = LoadedModel { vision: Some(vision.clone()), ..loaded(model) };
    (Engine::new(loaded, EngineSettings::default()).unwrap(), vision)
}

fn config() -> ConversationConfig {
    let template = Some(PromptTemplate::new(TEMPLATE).unwrap());
    let pictures = Pictures { files: PictureFiles::Opened, ..Pictures::default() };
    let mut config = ConversationConfig { template, pictures, ..ConversationConfig::default() };
    config.session.max_output_tokens = Some(5);
    // Replies of equal length, however the model's scores fall.
    config.session.sampler.logit_bias =
        tokenizer().end_ids().iter().map(|&id| (id, f32::NEG_INFINITY)).collect();
    config
}

fn conversation() -> Conversation {
    Conversation::new(&engine().0, config()).unwrap()
}

fn blob(seed: u8) -> Part {
    Part::Image(Media::from_bytes(picture_file(3, 2, seed)))
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn user(parts: Vec<Part>) -> Message {
    let mut message = Message::user("");
    message.content = Content::Parts(parts);
    message
}

/// Text of a picture of 3 × 2 pixels.
fn rows() -> String {
    format!("[{}\n{}]", ROW.repeat(2), ROW.repeat(6))
}

fn is_row(id: &TokenId) -> bool {
    id >> 31 == 1
}

#[test]
fn pictures_take_the_places_of_their_placeholders_in_order() {
    let conversation = conversation();
    let rendered = |one, other| {
        let message = user(vec![text("First "), blob(one), text(" and "), blob(other), text("?")]);
        conversation.render(message, GenerationPrompt::Add).unwrap()
    };
    let ab = rendered(1, 2);
    assert_eq!(ab.text, format!("<user>First {} and {}?\n<assistant>", rows(), rows()));
    let rows_of = |ids: &[TokenId]| ids.iter().copied().filter(is_row).collect::<Vec<_>>();
    let (a, b) = (rows_of(&rendered(1, 1).ids)[..8].to_vec(), rows_of(&rendered(2, 2).ids)[..8].to_vec());
    assert_ne!(a, b);
    assert_eq!(rows_of(&ab.ids), [&a[..], &b].concat());
    assert_eq!(rows_of(&rendered(2, 1).ids), [&b[..], &a].concat());
    // All else is as the tokenizer encodes the text.
    let token = conversation.engine().picture_tokens().unwrap().row_id;
    let ids: Vec<TokenId> = ab.ids.iter().map(|&id| if is_row(&id) { token } else { id }).collect();
    assert_eq!(tokenizer().decode(&ids, SpecialTokens::Keep), ab.text);
    assert_eq!((ab.mask.len(), ab.generation_mask.len()), (ab.ids.len(), ab.ids.len()));
    let content: Vec<TokenId> =
        ids.iter().zip(&ab.mask).filter(|(_, mask)| **mask == 1).map(|(id, _)| *id).collect();
    assert_eq!(tokenizer().decode(&content, SpecialTokens::Keep), "First  and ?");
}

#[test]
fn a_placeholder_in_a_message_is_text() {
    let conversation = conversation();
    let typed = format!("{ROW} or {ROW}: ");
    let message = user(vec![text(&typed), blob(1)]);
    let rendered = conversation.render(message, GenerationPrompt::Omit).unwrap();
    assert_eq!(rendered.text, format!("<user>{typed}{}\n", rows()));
    assert_eq!(rendered.ids.iter().filter(|id| is_row(id)).count(), 8);
    let token = conversation.engine().picture_tokens().unwrap().row_id;
    assert!(!rendered.ids.contains(&token), "the typed ones are plain text");
    // Where content may spell tokens, it may not spell those of pictures.
    let config =
        ConversationConfig { content_tokens: lm_conversation::ContentTokens::Recognized, ..config() };
    let trusting = Conversation::new(&engine().0, config).unwrap();
    let message = user(vec![text(&typed), blob(1)]);
    let error = trusting.render(message, GenerationPrompt::Omit).unwrap_err();
    assert!(matches!(error, Error::PictureRows { found: 10, expected: 8, .. }), "{error}");
}

#[test]
fn ranges_of_generated_text_move_with_the_pictures_before_them() {
    let template = "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}\
        {% else %}{% for p in m.content %}<tool_response>{% endfor %}{% endif %}\n{% endfor %}";
    let config = ConversationConfig { template: Some(PromptTemplate::new(template).unwrap()), ..config() };
    let mut conversation = Conversation::new(&engine().0, config).unwrap();
    conversation.set_history(vec![
        user(vec![blob(1)]),
        Message::assistant("One."),
        user(vec![blob(2), blob(3)]),
        Message::assistant("Two."),
    ]);
    let rendered = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap();
    let marked = rendered.ids.iter().zip(&rendered.generation_mask).filter(|(_, mask)| **mask == 1);
    let marked: Vec<TokenId> = marked.map(|(id, _)| *id).collect();
    assert_eq!(tokenizer().decode(&marked, SpecialTokens::Keep), "One.Two.");
}

/// The page on LiteRT-LM's conversation API, with files that exist.
#[test]
fn messages_of_the_litert_lm_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, seed| {
        let path = folder.path().join(name);
        std::fs::write(&path, picture_file(3, 2, seed)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (image, image1, image2) = (file("image.jpg", 1), file("image1.jpg", 2), file("image2.jpg", 3));
    let (engine, vision) = engine();
    let mut conversation = Conversation::new(&engine, config()).unwrap();
    conversation
        .send(json!({
            "role": "user",
            "content": [
                {"type": "text", "text": "Describe the following image: "},
                {"type": "image", "path": image}
            ],
        }))
        .unwrap();
    assert_eq!(vision.encodings(), 1);
    let two = json!({
        "role": "user",
        "content": [
            {"type": "text", "text": "First briefly describe the two images "},
            {"type": "image", "path": image1},
            {"type": "text", "text": "and "},
            {"type": "image", "path": image2},
        ],
    });
    conversation.send(two.clone()).unwrap();
    assert_eq!(vision.encodings(), 3, "the first picture is in the cache");
    assert_eq!(conversation.history()[2].to_json(), two, "the history has the path");
    let rendered = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap();
    assert!(
        rendered.text.starts_with(&format!("<user>Describe the following image: {}\n<assistant>", rows()))
    );
    // The same bytes as a blob are the same picture.
    use base64::Engine as _;
    let blob = base64::engine::general_purpose::STANDARD.encode(picture_file(3, 2, 1));
    let mut other = Conversation::new(&engine, config()).unwrap();
    let parts = json!([
        {"type": "text", "text": "Describe the following image: "},
        {"type": "image", "blob": blob},
    ]);
    let reply = other.send(json!({"role": "user", "content": parts})).unwrap();
    assert_eq!(reply.message, conversation.history()[1]);
    assert_eq!(vision.encodings(), 3);
    // Audio is refused by name.
    let error = conversation
        .send(json!({
            "role": "user",
            "content": [
                {"type": "text", "text": "Transcribe the audio: "},
                {"type": "audio", "path": "/file/path/to/audio.wav"}
            ],
        }))
        .unwrap_err();
    let Error::Processor(lm_processors::Error::UnsupportedPart { part, index, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!((part.as_str(), index), ("audio", 1));
}

/// Replies of two turns about two pictures, the second of which asks about the first.
fn replies(conversation: &mut Conversation, seeds: [u8; 2]) -> Vec<String> {
    seeds
        .map(|seed| {
            conversation.send(user(vec![blob(seed), text("Describe it, word by word.")])).unwrap().text()
        })
        .into()
}

#[test]
fn conversations_with_pictures_are_forked_edited_and_restored() {
    let (engine, vision) = engine();
    let new = || Conversation::new(&engine, config()).unwrap();
    let mut first = new();
    let expected = replies(&mut first, [1, 2]);
    let other = replies(&mut new(), [2, 1]);
    assert_ne!(expected, other);
    assert_eq!(vision.encodings(), 2);
    let ask = |conversation: &mut Conversation| conversation.send("Which was the first?").unwrap().text();
    let mut fork = first.fork().unwrap();
    let answer = ask(&mut fork);
    // The other order is another prompt.
    let mut edited = first.fork().unwrap();
    let mut history = first.history();
    history.swap(0, 2);
    edited.set_history(history);
    assert_ne!(ask(&mut edited), answer);
    // Through a file, with the pages of the cache, on another engine.
    let folder = tempfile::tempdir().unwrap();
    let (saved, _) = first.save(SaveOptions { cache: Some(1 << 26) }).unwrap();
    saved.write(folder.path().join("saved")).unwrap();
    let (restarted, vision) = self::engine();
    let mut restored = Conversation::new(&restarted, config()).unwrap();
    let saved = lm_conversation::SavedConversation::read(folder.path().join("saved")).unwrap();
    assert!(restored.restore(saved).unwrap() > 0);
    assert_eq!(ask(&mut restored), answer);
    assert_eq!(vision.encodings(), 0, "the pages are those of the pictures");
    // Without pages.
    let mut again = Conversation::new(&restarted, config()).unwrap();
    again.set_history(first.history());
    assert_eq!(ask(&mut again), answer);
    assert_eq!(
        again.count_tokens("Hi.").unwrap(),
        again.render("Hi.", GenerationPrompt::Add).unwrap().ids.len()
    );
}

#[test]
fn a_reply_to_a_picture_goes_on() {
    let (engine, _) = engine();
    let mut whole = Conversation::new(&engine, config()).unwrap();
    let mut long = config();
    long.session.max_output_tokens = Some(10);
    let mut other = Conversation::new(&engine, long).unwrap();
    let message = user(vec![blob(1), text("Describe it.")]);
    let first = whole.send(message.clone()).unwrap();
    assert_eq!(first.finish.reason, FinishReason::MaxOutputTokens);
    whole.continue_reply(TurnOptions::default()).unwrap().into_reply().unwrap();
    let expected = other.send(message.clone()).unwrap();
    assert_eq!(whole.history()[1], expected.message);
    let score = whole.score(message, "Yes").unwrap();
    assert!(score.sum() < 0.0);
}

#[test]
fn turns_with_pictures_are_dropped_with_them() {
    let vision = Arc::new(FakeVision::default());
    let model = FakeLm::random(11, tokenizer().logits_width());
    let loaded = LoadedModel { vision: Some(vision.clone()), ..loaded(model) };
    let settings = EngineSettings { max_context: Some(160), ..EngineSettings::default() };
    let engine = Engine::new(loaded, settings).unwrap();
    for overflow in [Overflow::DropOldest(DroppedHistory::Kept), Overflow::SlidingWindow] {
        let mut config = config();
        config.session.max_output_tokens = Some(60);
        let mut conversation = Conversation::new(&engine, ConversationConfig { overflow, ..config }).unwrap();
        for seed in 0..4 {
            conversation.send(user(vec![blob(seed), text("Describe it.")])).unwrap();
        }
        let rows: Vec<TokenId> = conversation.tokens().into_iter().filter(is_row).collect();
        assert!(!rows.is_empty() && rows.len().is_multiple_of(8) && rows.len() < 32, "{} rows", rows.len());
    }
}

#[test]
fn pictures_in_the_preface_and_in_results_of_tools() {
    let mut system = user(vec![text("This is you: "), blob(9)]);
    system.role = Role::System;
    let messages = vec![system];
    let config = config().with_preface(Preface { messages, ..Preface::default() });
    let (engine, vision) = engine();
    let mut conversation =
        Conversation::new(&engine, ConversationConfig { prefill_on_init: true, ..config.clone() }).unwrap();
    assert_eq!(vision.encodings(), 1, "the preface is prefilled");
    conversation.send("Hi.").unwrap();
    let mut result = Message::tool(None, "look", Value::Null);
    result.content = Content::Parts(vec![text("I saw "), blob(3)]);
    let history = vec![Message::user("Look."), Message::tool_calls(vec![]), result];
    conversation.set_history(history.clone());
    let rendered = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap();
    assert_eq!(rendered.ids.iter().filter(|id| is_row(id)).count(), 16);
    // The path of a result is not opened.
    let mut history = history;
    history[2].content = Content::Parts(vec![Part::Image(Media::from_path("/etc/passwd"))]);
    conversation.set_history(history);
    let error = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap_err();
    let Error::PictureFile { message: 3, part: 0, source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn templates_that_lose_pictures_or_make_some_up() {
    for (template, found) in [
        ("{% for m in messages %}{{ m.role }}{% endfor %}", 0),
        ("{% for m in messages %}<tool_response><tool_response>{% endfor %}", 2),
    ] {
        let config =
            ConversationConfig { template: Some(PromptTemplate::new(template).unwrap()), ..config() };
        let conversation = Conversation::new(&engine().0, config).unwrap();
        let error = conversation.render(user(vec![blob(1)]), GenerationPrompt::Omit).unwrap_err();
        let Error::Placeholders { placeholder, found: wrote, expected } = &error else { panic!("{error}") };
        assert_eq!((&**placeholder, *wrote, *expected), (ROW, found, 1));
    }
}

#[test]
fn pictures_that_cannot_be_shown() {
    let mut conversation = conversation();
    conversation.send("Hi.").unwrap();
    let before = (conversation.history(), conversation.tokens());
    let mut refused = |part: Value| {
        let parts = json!([{"type": "text", "text": "This?"}, part]);
        let error = conversation.send(json!({"role": "user", "content": parts})).unwrap_err();
        assert_eq!((conversation.history(), conversation.tokens()), before);
        error
    };
    let image = |path: &Path| json!({"type": "image", "path": path});
    use base64::Engine as _;
    let blob = |bytes: &[u8]| json!({"type": "image", "blob": base64::engine::general_purpose::STANDARD.encode(bytes)});
    let whole = picture_file(3, 2, 1);
    let error = refused(blob(&whole[..whole.len() - 4]));
    assert_eq!(error.to_string(), "part 1 of message 2 is no picture for this model");
    assert!(error.source().unwrap().to_string().starts_with("the BMP file cannot be decoded"), "{error:?}");
    let mut huge = whole;
    huge[18..22].copy_from_slice(&10_000_u32.to_le_bytes());
    huge[22..26].copy_from_slice(&10_000_u32.to_le_bytes());
    let error = refused(blob(&huge));
    assert!(error.source().unwrap().to_string().contains("10000 × 10000 pixels"), "{error:?}");
    let folder = tempfile::tempdir().unwrap();
    for (path, kind) in [
        (folder.path().join("none"), std::io::ErrorKind::NotFound),
        (folder.path().to_owned(), std::io::ErrorKind::InvalidInput),
    ] {
        let error = refused(image(&path));
        let Error::PictureFile { message: 2, part: 1, path: named, source } = error else {
            panic!("{error}")
        };
        assert_eq!((named, source.kind()), (path, kind));
    }
}

#[test]
fn files_are_opened_by_permission_only() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), picture_file(3, 2, 1)).unwrap();
    let message = user(vec![Part::Image(Media::from_path(file.path()))]);
    assert!(conversation().send(message.clone()).is_ok());
    let config = ConversationConfig { pictures: Pictures::default(), ..config() };
    let mut strict = Conversation::new(&engine().0, config).unwrap();
    let error = strict.send(message).unwrap_err();
    let Error::PictureFile { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(strict.send(user(vec![blob(1)])).is_ok(), "a blob needs no permission");
}
