//! Images and audio in messages: their places in prompts, their files, and conversations that hold them.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use lm_conversation::{
    Conversation, ConversationConfig, DroppedHistory, Error, GenerationPrompt, MediaFiles, MediaSettings,
    Message, Overflow, Part, Preface, PromptTemplate, SaveOptions, TurnOptions,
};
use lm_model::testing::{FakeAudio, FakeVision};
use lm_session::testing::{FakeLm, audio_file, image_file, loaded, tokenizer};
use lm_session::{
    AudioLimits, Engine, EngineSettings, FinishReason, ImageOptions, LoadedModel, MediaKind, SpecialTokens,
    TokenId,
};
use lm_template::{Content, Media, Role};
use serde_json::{Value, json};

/// A template that writes a placeholder for each image and each audio, and parts of text.
const TEMPLATE: &str = "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}\
    {% for p in m.content %}{% if p.type == 'image' %}<tool_response>{% elif p.type == 'audio' %}</tool_response>\
    {% elif p.type == 'text' %}{{ p.text }}{% endif %}\
    {% endfor %}{% endif %}{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
/// Placeholder token for rows and, in templates, for an image.
const ROW: &str = "<tool_response>";
/// Placeholder token for rows and, in templates, for an audio clip.
const AUDIO_ROW: &str = "</tool_response>";

/// Encoders of both kinds.
#[derive(Clone, Default)]
struct Fakes {
    vision: Arc<FakeVision>,
    audio: Arc<FakeAudio>,
}

impl Fakes {
    fn encodings(&self) -> usize {
        self.vision.encodings() + self.audio.encodings()
    }

    fn engine(&self, settings: EngineSettings) -> Engine {
        let model = FakeLm::random(11, tokenizer().logits_width());
        let (vision, audio) = (self.vision.clone(), self.audio.clone());
        let loaded = LoadedModel { vision: Some(vision), audio: Some(audio), ..loaded(model) };
        Engine::new(loaded, settings).unwrap()
    }
}

/// An engine that reads images and audio.
fn engine() -> (Engine, Fakes) {
    let fakes = Fakes::default();
    (fakes.engine(EngineSettings::default()), fakes)
}

fn config() -> ConversationConfig {
    let template = Some(PromptTemplate::new(TEMPLATE).unwrap());
    let media = MediaSettings { files: MediaFiles::Opened, ..MediaSettings::default() };
    let mut config = ConversationConfig { template, media, ..ConversationConfig::default() };
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
    Part::Image(Media::from_bytes(image_file(3, 2, seed)))
}

fn audio(seed: u8) -> Part {
    Part::Audio(Media::from_bytes(audio_file(4001, seed.into())))
}

/// Media of one size, of each kind.
const MEDIA: [fn(u8) -> Part; 2] = [blob, audio];

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn user(parts: Vec<Part>) -> Message {
    let mut message = Message::user("");
    message.content = Content::Parts(parts);
    message
}

/// Text of an image of 3 × 2 pixels.
fn rows() -> String {
    format!("[{}\n{}]", ROW.repeat(2), ROW.repeat(6))
}

/// Text of an audio clip of 4,001 samples.
fn audio_rows() -> String {
    format!("({})", AUDIO_ROW.repeat(3))
}

fn is_row(id: &TokenId) -> bool {
    id >> 31 == 1
}

#[test]
fn media_replace_placeholders_in_order() {
    let conversation = conversation();
    let tokens = conversation.engine().media_tokens();
    let rows_of = |ids: &[TokenId]| ids.iter().copied().filter(is_row).collect::<Vec<_>>();
    let render = |one, other| {
        let message = user(vec![text("First "), one, text(" and "), other, text("?")]);
        conversation.render(message, GenerationPrompt::Add).unwrap()
    };
    for (medium, shown, tokens) in
        [(blob as fn(_) -> _, rows(), &tokens[0]), (audio, audio_rows(), &tokens[1])]
    {
        let ab = render(medium(1), medium(2));
        assert_eq!(ab.text, format!("<user>First {shown} and {shown}?\n<assistant>"));
        let half = |seed| {
            let rows = rows_of(&render(medium(seed), medium(seed)).ids);
            rows[..rows.len() / 2].to_vec()
        };
        let (a, b) = (half(1), half(2));
        assert_ne!(a, b);
        assert_eq!(rows_of(&ab.ids), [&a[..], &b].concat());
        assert_eq!(rows_of(&render(medium(2), medium(1)).ids), [&b[..], &a].concat());
        // All else is as the tokenizer encodes the text.
        let id = |&id: &TokenId| if is_row(&id) { tokens.row_id } else { id };
        let ids: Vec<TokenId> = ab.ids.iter().map(id).collect();
        assert_eq!(tokenizer().decode(&ids, SpecialTokens::Keep), ab.text);
        assert_eq!((ab.mask.len(), ab.generation_mask.len()), (ab.ids.len(), ab.ids.len()));
        let content: Vec<TokenId> =
            ids.iter().zip(&ab.mask).filter(|(_, mask)| **mask == 1).map(|(id, _)| *id).collect();
        assert_eq!(tokenizer().decode(&content, SpecialTokens::Keep), "First  and ?");
    }
}

#[test]
fn image_and_audio_share_a_message_in_either_order() {
    let (engine, fakes) = engine();
    let conversation = || Conversation::new(&engine, config()).unwrap();
    let parts = |parts: [Part; 2]| {
        let [first, second] = parts;
        user(vec![text("First "), first, text(" and "), second, text("?")])
    };
    let rendered = |message: Message| conversation().render(message, GenerationPrompt::Omit).unwrap();
    let (one, other) = (parts([blob(1), audio(2)]), parts([audio(2), blob(1)]));
    let [ab, ba] = [&one, &other].map(|message| rendered(message.clone()));
    assert_eq!(ab.text, format!("<user>First {} and {}?\n", rows(), audio_rows()));
    assert_eq!(ba.text, format!("<user>First {} and {}?\n", audio_rows(), rows()));
    let rows_of = |ids: &[TokenId]| ids.iter().copied().filter(is_row).collect::<Vec<_>>();
    let image = rows_of(&rendered(user(vec![blob(1)])).ids);
    let audio = rows_of(&rendered(user(vec![self::audio(2)])).ids);
    assert_eq!((image.len(), audio.len()), (8, 3));
    assert_eq!(rows_of(&ab.ids), [&image[..], &audio].concat());
    assert_eq!(rows_of(&ba.ids), [&audio[..], &image].concat());
    let [one, other] = [one, other].map(|message| conversation().send(message).unwrap().text());
    assert_ne!(one, other);
    assert_eq!((fakes.vision.encodings(), fakes.audio.encodings()), (1, 1));
    // A template may write one kind before the other: each has its own order.
    let template = "{% for m in messages %}{% for kind in ['audio', 'image'] %}{% for p in m.content if p.type == kind %}\
        {{ '</tool_response>' if kind == 'audio' else '<tool_response>' }}{% endfor %}{% endfor %}{% endfor %}";
    let config = ConversationConfig { template: Some(PromptTemplate::new(template).unwrap()), ..config() };
    let sorting = Conversation::new(&engine, config).unwrap();
    let message = user(vec![blob(3), self::audio(3), blob(1), self::audio(2)]);
    let sorted = rows_of(&sorting.render(message, GenerationPrompt::Omit).unwrap().ids);
    assert_eq!(sorted[3..6], audio, "the second audio");
    assert_eq!(sorted[14..], image, "the second image");
}

#[test]
fn placeholder_in_a_message_is_text() {
    let conversation = conversation();
    let typed = format!("{ROW} or {AUDIO_ROW}{ROW}: ");
    let message = user(vec![text(&typed), blob(1), audio(1)]);
    let rendered = conversation.render(message.clone(), GenerationPrompt::Omit).unwrap();
    assert_eq!(rendered.text, format!("<user>{typed}{}{}\n", rows(), audio_rows()));
    assert_eq!(rendered.ids.iter().filter(|id| is_row(id)).count(), 8 + 3);
    for tokens in conversation.engine().media_tokens() {
        assert!(!rendered.ids.contains(&tokens.row_id), "the typed ones are plain text");
    }
    // Where content may spell tokens, it may not spell those of its images and audio.
    let config =
        ConversationConfig { content_tokens: lm_conversation::ContentTokens::Recognized, ..config() };
    let trusting = Conversation::new(&engine().0, config).unwrap();
    for (message, kind, counts) in
        [(message, MediaKind::Image, (10, 8)), (user(vec![text(&typed), audio(1)]), MediaKind::Audio, (4, 3))]
    {
        let error = trusting.render(message, GenerationPrompt::Omit).unwrap_err();
        let Error::MediaRows { kind: named, found, expected, .. } = error else { panic!("{error}") };
        assert_eq!((named, (found, expected)), (kind, counts));
    }
    assert!(
        trusting.render(typed, GenerationPrompt::Omit).is_ok(),
        "without media they are tokens like others"
    );
}

#[test]
fn generated_ranges_shift_by_preceding_images() {
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
        std::fs::write(&path, image_file(3, 2, seed)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (image, image1, image2) = (file("image.jpg", 1), file("image1.jpg", 2), file("image2.jpg", 3));
    let audio = folder.path().join("audio.wav").to_str().unwrap().to_owned();
    std::fs::write(&audio, audio_file(4001, 1)).unwrap();
    let (engine, fakes) = engine();
    let (vision, heard) = (fakes.vision, fakes.audio);
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
    conversation
        .send(json!({
            "role": "user",
            "content": [
                {"type": "text", "text": "Transcribe the audio: "},
                {"type": "audio", "path": audio}
            ],
        }))
        .unwrap();
    assert_eq!(heard.encodings(), 1);
    let several = json!({
        "role": "user",
        "content": [
            {"type": "text", "text": "First briefly describe the two images "},
            {"type": "image", "path": image1},
            {"type": "text", "text": "and "},
            {"type": "image", "path": image2},
            {"type": "text", "text": " then transcribe the content in the audio"},
            {"type": "audio", "path": audio}
        ],
    });
    conversation.send(several.clone()).unwrap();
    assert_eq!((vision.encodings(), heard.encodings()), (3, 1), "the others are in the cache");
    assert_eq!(conversation.history()[4].to_json(), several, "the history has the paths");
    let rendered = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap();
    assert!(
        rendered.text.starts_with(&format!("<user>Describe the following image: {}\n<assistant>", rows()))
    );
    // The same bytes as a blob are the same medium.
    use base64::Engine as _;
    for (index, kind, prompt, file) in [
        (0, "image", "Describe the following image: ", image_file(3, 2, 1)),
        (2, "audio", "Transcribe the audio: ", audio_file(4001, 1)),
    ] {
        let mut other = Conversation::new(&engine, config()).unwrap();
        other.set_history(conversation.history()[..index].to_vec());
        let blob = base64::engine::general_purpose::STANDARD.encode(file);
        let parts = json!([{"type": "text", "text": prompt}, {"type": kind, "blob": blob}]);
        let reply = other.send(json!({"role": "user", "content": parts})).unwrap();
        assert_eq!(reply.message, conversation.history()[index + 1]);
    }
    assert_eq!((vision.encodings(), heard.encodings()), (3, 1));
}

/// Replies of two turns about two media.
fn replies(conversation: &mut Conversation, medium: fn(u8) -> Part, seeds: [u8; 2]) -> Vec<String> {
    let message = |seed| user(vec![medium(seed), text("Describe it, word by word.")]);
    seeds.map(|seed| conversation.send(message(seed)).unwrap().text()).into()
}

#[test]
fn conversations_with_media_are_forked_edited_and_restored() {
    for medium in MEDIA {
        let (engine, fakes) = engine();
        let new = || Conversation::new(&engine, config()).unwrap();
        let mut first = new();
        let expected = replies(&mut first, medium, [1, 2]);
        let other = replies(&mut new(), medium, [2, 1]);
        assert_ne!(expected, other);
        assert_eq!(fakes.encodings(), 2);
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
        let (restarted, fakes) = self::engine();
        let mut restored = Conversation::new(&restarted, config()).unwrap();
        let saved = lm_conversation::SavedConversation::read(folder.path().join("saved")).unwrap();
        assert!(restored.restore(saved).unwrap() > 0);
        assert_eq!(ask(&mut restored), answer);
        assert_eq!(fakes.encodings(), 0, "the pages are those of the media");
        // Without pages.
        let mut again = Conversation::new(&restarted, config()).unwrap();
        again.set_history(first.history());
        assert_eq!(ask(&mut again), answer);
        assert_eq!(
            again.count_tokens("Hi.").unwrap(),
            again.render("Hi.", GenerationPrompt::Add).unwrap().ids.len()
        );
    }
}

#[test]
fn reply_to_an_image_continues() {
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
fn turn_has_its_own_options_of_images() {
    let (engine, fakes) = engine();
    let mut conversation = Conversation::new(&engine, config()).unwrap();
    let rows = |conversation: &Conversation| {
        let rendered = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap();
        rendered.ids.iter().filter(|id| is_row(id)).count()
    };
    let short = || ImageOptions { token_budget: Some(3) };
    conversation.send(user(vec![blob(1)])).unwrap();
    assert_eq!(rows(&conversation), 8);
    let turn = TurnOptions { media: Some(short()), ..TurnOptions::default() };
    conversation.send_with(user(vec![blob(2)]), turn).unwrap();
    assert_eq!(rows(&conversation), 8 + 5, "the message keeps them");
    conversation.send(user(vec![blob(3)])).unwrap();
    assert_eq!((rows(&conversation), fakes.encodings()), (8 + 5 + 8, 3));
    assert_eq!(rows(&conversation.fork().unwrap()), 8 + 5 + 8);
    conversation.set_history(conversation.history());
    assert_eq!(rows(&conversation), 3 * 8, "a new history has none");
    // Those of the conversation.
    let media = MediaSettings { images: short(), ..MediaSettings::default() };
    let mut conversation = Conversation::new(&engine, ConversationConfig { media, ..config() }).unwrap();
    conversation.send(user(vec![blob(1)])).unwrap();
    let turn = TurnOptions { media: Some(ImageOptions::default()), ..TurnOptions::default() };
    conversation.send_with(user(vec![blob(1)]), turn).unwrap();
    assert_eq!(rows(&conversation), 5 + 8);
}

#[test]
fn turns_with_images_are_dropped_with_them() {
    let engine =
        Fakes::default().engine(EngineSettings { max_context: Some(160), ..EngineSettings::default() });
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
fn images_in_the_preface_and_in_results_of_tools() {
    let mut system = user(vec![text("This is you: "), blob(9)]);
    system.role = Role::System;
    let messages = vec![system];
    let config = config().with_preface(Preface { messages, ..Preface::default() });
    let (engine, fakes) = engine();
    let mut conversation =
        Conversation::new(&engine, ConversationConfig { prefill_on_init: true, ..config.clone() }).unwrap();
    assert_eq!(fakes.vision.encodings(), 1, "the preface is prefilled");
    conversation.send("Hi.").unwrap();
    let mut result = Message::tool(None, "look", Value::Null);
    result.content = Content::Parts(vec![text("I saw "), blob(3)]);
    let history = vec![Message::user("Look."), Message::tool_calls(vec![]), result];
    conversation.set_history(history.clone());
    let rendered = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap();
    assert_eq!(rendered.ids.iter().filter(|id| is_row(id)).count(), 16);
    // The path of a result is not opened.
    let mut history = history;
    for (part, kind) in [
        (Part::Image(Media::from_path("/etc/passwd")), MediaKind::Image),
        (Part::Audio(Media::from_path("/etc/passwd")), MediaKind::Audio),
    ] {
        history[2].content = Content::Parts(vec![part]);
        conversation.set_history(history.clone());
        let error = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap_err();
        let Error::MediaFile { kind: named, message: 3, part: 0, source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((named, source.kind()), (kind, std::io::ErrorKind::PermissionDenied));
    }
}

fn result(parts: Vec<Part>) -> Message {
    let mut result = Message::tool(None, "look", Value::Null);
    result.content = Content::Parts(parts);
    result
}

#[test]
fn unusable_media_of_results_are_notes() {
    let shown = |engine: &Engine, parts: Vec<Part>| {
        let mut conversation = Conversation::new(engine, config()).unwrap();
        conversation.set_history(vec![Message::user("Look."), Message::tool_calls(vec![]), result(parts)]);
        let rendered = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap();
        rendered.text.split_once("<tool>").unwrap().1.to_owned()
    };
    let image = |bytes: Vec<u8>| Part::Image(Media::from_bytes(bytes));
    let (engine, _) = engine();
    let whole = image_file(3, 2, 1);
    let broken = image(whole[..whole.len() - 4].to_vec());
    let text_before = |parts| shown(&engine, parts);
    let noted = text_before(vec![text("I saw "), broken, text(" and "), blob(2)]);
    let start = "I saw [image: image/bmp, 74 bytes, not shown: the BMP file cannot be decoded";
    assert!(noted.starts_with(start), "{noted}");
    assert!(noted.ends_with(&format!("] and {}\n", rows())), "{noted}");
    let foreign = text_before(vec![Part::Audio(Media::from_bytes(&b"hello"[..])), audio(1)]);
    assert!(foreign.starts_with("[audio: unknown type, 5 bytes, not shown: "), "{foreign}");
    assert!(foreign.ends_with(&format!("]{}\n", audio_rows())), "{foreign}");
    let small = EngineSettings { max_context: Some(20), ..EngineSettings::default() };
    let large = text_before(vec![image(image_file(12, 12, 1))]);
    assert_eq!(large.matches(ROW).count(), 18, "it fits a larger context");
    let noted = shown(&Fakes::default().engine(small), vec![image(image_file(12, 12, 1)), blob(2)]);
    assert!(noted.contains("tokens do not fit the context]"), "{noted}");
    assert!(noted.ends_with(&format!("{}\n", rows())), "{noted}");
}

#[test]
fn media_of_results_are_notes_for_a_model_that_reads_none() {
    let engine =
        Engine::new(loaded(FakeLm::random(11, tokenizer().logits_width())), EngineSettings::default());
    let mut conversation = Conversation::new(&engine.unwrap(), config()).unwrap();
    conversation.send("Hi.").unwrap();
    let png = Part::Image(Media::from_bytes([0; 8]).with_mime_type("image/png"));
    for (part, note) in [
        (png, "[image: image/png, 8 bytes, not shown]"),
        (blob(1), "[image: image/bmp, 78 bytes, not shown]"),
        (audio(1), "[audio: audio/wav, 8046 bytes, not shown]"),
    ] {
        let rendered = conversation.render(result(vec![part.clone()]), GenerationPrompt::Omit).unwrap();
        assert!(rendered.text.ends_with(&format!("<tool>{note}\n")), "{}", rendered.text);
        assert!(conversation.send(result(vec![part])).is_ok());
    }
    let error = conversation.send(user(vec![blob(1)])).unwrap_err();
    assert!(matches!(error, Error::UnreadMedium { kind: MediaKind::Image, .. }), "of a user: {error}");
}

#[test]
fn media_follow_results_that_the_template_moves() {
    let (engine, _) = engine();
    let call = |id: &str| lm_template::ToolCall::new("look", Default::default()).with_id(id);
    let answered = |id: &str, seed| {
        let mut message = result(vec![blob(seed)]);
        message.tool_call_id = Some(id.to_owned());
        message
    };
    let rows_of = |results: [Message; 2]| {
        let mut conversation = Conversation::new(&engine, config()).unwrap();
        let [first, second] = results;
        let calls = Message::tool_calls(vec![call("a"), call("b")]);
        conversation.set_history(vec![Message::user("Look."), calls, first, second]);
        let ids = conversation.render(Vec::new(), GenerationPrompt::Omit).unwrap().ids;
        ids.into_iter().filter(is_row).collect::<Vec<_>>()
    };
    let (a, b) = (answered("a", 1), answered("b", 2));
    let in_order = rows_of([a.clone(), b.clone()]);
    assert_eq!(rows_of([b, a]), in_order);
    assert_ne!(rows_of([answered("a", 2), answered("b", 1)]), in_order);
}

#[test]
fn templates_that_lose_or_invent_media_are_errors() {
    for (medium, token) in [(blob as fn(_) -> _, ROW), (audio, AUDIO_ROW)] {
        let two = format!("{{% for m in messages %}}{token}{token}{{% endfor %}}");
        for (template, found) in [("{% for m in messages %}{{ m.role }}{% endfor %}", 0), (&two, 2)] {
            let config =
                ConversationConfig { template: Some(PromptTemplate::new(template).unwrap()), ..config() };
            let conversation = Conversation::new(&engine().0, config).unwrap();
            let error = conversation.render(user(vec![medium(1)]), GenerationPrompt::Omit).unwrap_err();
            let Error::Placeholders { placeholder, found: wrote, expected, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!((&**placeholder, *wrote, *expected), (token, found, 1));
        }
    }
}

#[test]
fn undecodable_media_are_errors() {
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
    let whole = image_file(3, 2, 1);
    let error = refused(blob(&whole[..whole.len() - 4]));
    assert_eq!(error.to_string(), "the image, part 1 of message 2, cannot be given to the model");
    assert!(error.source().unwrap().to_string().starts_with("the BMP file cannot be decoded"), "{error:?}");
    let mut huge = whole;
    huge[18..22].copy_from_slice(&10_000_u32.to_le_bytes());
    huge[22..26].copy_from_slice(&10_000_u32.to_le_bytes());
    let error = refused(blob(&huge));
    assert!(error.source().unwrap().to_string().contains("10000 × 10000 pixels"), "{error:?}");
    let audio = |bytes: &[u8]| json!({"type": "audio", "blob": base64::engine::general_purpose::STANDARD.encode(bytes)});
    let whole = audio_file(16_000, 1);
    let error = refused(audio(&whole[..whole.len() - 4]));
    assert_eq!(error.to_string(), "the audio, part 1 of message 2, cannot be given to the model");
    assert!(error.source().unwrap().to_string().starts_with("the WAV file cannot be decoded"), "{error:?}");
    let mut hours = whole;
    hours[4..8].copy_from_slice(&(36 + 36_000 * 4_000 * 2_u32).to_le_bytes());
    hours[24..28].copy_from_slice(&4_000_u32.to_le_bytes());
    hours[40..44].copy_from_slice(&(36_000 * 4_000 * 2_u32).to_le_bytes());
    let error = refused(audio(&hours));
    assert!(error.source().unwrap().to_string().contains("longer than 600 seconds"), "{error:?}");
    let error = refused(audio(&image_file(3, 2, 1)));
    assert!(error.source().unwrap().to_string().contains("not audio data"), "{error:?}");
    let folder = tempfile::tempdir().unwrap();
    let error = refused(json!({"type": "audio", "path": folder.path().join("none.wav")}));
    assert!(error.to_string().starts_with("the audio `"), "{error}");
    for (path, kind) in [
        (folder.path().join("none"), std::io::ErrorKind::NotFound),
        (folder.path().to_owned(), std::io::ErrorKind::InvalidInput),
    ] {
        let error = refused(image(&path));
        let Error::MediaFile { message: 2, part: 1, path: named, source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((named, source.kind()), (path, kind));
    }
}

/// The last file is damaged: an error before it shows that it was not decoded.
#[test]
fn media_are_not_decoded_after_end_or_overflow() {
    let engine =
        Fakes::default().engine(EngineSettings { max_context: Some(160), ..EngineSettings::default() });
    let send = |images: usize, options: TurnOptions| {
        let damaged = Part::Image(Media::from_bytes(b"BM".to_vec()));
        let parts = (0..images).map(|seed| blob(seed as u8)).chain([damaged]).collect();
        let mut conversation = Conversation::new(&engine, config()).unwrap();
        conversation.send_with(user(parts), options).unwrap_err()
    };
    let options = TurnOptions::default();
    options.cancel.cancel();
    assert!(matches!(send(1, options), Error::Cancelled));
    let deadline = Some(std::time::Instant::now());
    let late = send(1, TurnOptions { deadline, ..TurnOptions::default() });
    assert!(matches!(late, Error::DeadlineExceeded));
    let decoded = |error: Error| matches!(error, Error::Medium { message: 0, .. });
    assert!(decoded(send(20, TurnOptions::default())), "twenty images of 8 rows are 160 tokens");
    let full = send(21, TurnOptions::default());
    assert!(matches!(full, Error::TooManyMediaRows { media: 21, rows: 168, context_tokens: 160 }), "{full}");
    let overflow = Some(Overflow::SlidingWindow);
    assert!(decoded(send(21, TurnOptions { overflow, ..TurnOptions::default() })), "turns may be dropped");
}

#[test]
fn cancelled_continuation_does_not_decode_media() {
    let mut conversation = conversation();
    let damaged = Part::Image(Media::from_bytes(b"BM".to_vec()));
    conversation.set_history(vec![user(vec![damaged]), Message::assistant("Hi.")]);
    let options = TurnOptions::default();
    options.cancel.cancel();
    assert!(matches!(conversation.continue_reply(options), Err(Error::Cancelled)));
}

#[test]
fn rows_of_all_messages_count_toward_the_context() {
    let engine =
        Fakes::default().engine(EngineSettings { max_context: Some(160), ..EngineSettings::default() });
    let mut conversation = Conversation::new(&engine, config()).unwrap();
    conversation.set_history(vec![user((0..20).map(blob).collect()), Message::assistant("Hi.")]);
    let damaged = Part::Image(Media::from_bytes(b"BM".to_vec()));
    let error = conversation.send(user(vec![blob(20), damaged])).unwrap_err();
    assert!(matches!(error, Error::TooManyMediaRows { media: 21, rows: 168, .. }), "{error}");
}

/// The limit of a file's size is that of the engine; a larger file is not read.
#[test]
fn file_one_byte_over_the_limit_is_rejected() {
    let file = [&audio_file(4001, 1)[..], &[0]].concat();
    let named = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(named.path(), &file).unwrap();
    for (max_bytes, is_read) in [(file.len(), true), (file.len() - 1, false)] {
        let audio_limits = AudioLimits { max_bytes, ..AudioLimits::default() };
        let engine = Fakes::default().engine(EngineSettings { audio_limits, ..EngineSettings::default() });
        let mut conversation = Conversation::new(&engine, config()).unwrap();
        let sent = conversation.send(user(vec![Part::Audio(Media::from_path(named.path()))]));
        assert_eq!(sent.is_ok(), is_read, "{max_bytes}: {sent:?}");
    }
}

#[test]
fn files_are_opened_only_with_permission() {
    for (file, part) in
        [(image_file(3, 2, 1), Part::Image as fn(Media) -> Part), (audio_file(4001, 1), Part::Audio)]
    {
        let named = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(named.path(), &file).unwrap();
        let message = user(vec![part(Media::from_path(named.path()))]);
        assert!(conversation().send(message.clone()).is_ok());
        let config = ConversationConfig { media: MediaSettings::default(), ..config() };
        let mut strict = Conversation::new(&engine().0, config).unwrap();
        let error = strict.send(message).unwrap_err();
        let Error::MediaFile { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
        assert!(strict.send(user(vec![part(Media::from_bytes(file))])).is_ok(), "a blob needs no permission");
    }
}

#[test]
fn unsupported_media_kind_is_named() {
    let model = || FakeLm::random(11, tokenizer().logits_width());
    let seeing = LoadedModel { vision: Some(Arc::new(FakeVision::default())), ..loaded(model()) };
    let hearing = LoadedModel { audio: Some(Arc::new(FakeAudio::default())), ..loaded(model()) };
    for (model, read, other, kind) in
        [(seeing, blob(1), audio(1), MediaKind::Audio), (hearing, audio(1), blob(1), MediaKind::Image)]
    {
        let engine = Engine::new(model, EngineSettings::default()).unwrap();
        let mut conversation = Conversation::new(&engine, config()).unwrap();
        conversation.send(user(vec![read.clone()])).unwrap();
        let before = (conversation.history(), conversation.tokens());
        let error = conversation.send(user(vec![text("And"), read, other])).unwrap_err();
        let Error::UnreadMedium { kind: named, message: 2, part: 2 } = error else { panic!("{error}") };
        assert_eq!(named, kind);
        assert!(error.to_string().ends_with(&format!("and the model reads no {}", kind.plural())), "{error}");
        assert_eq!((conversation.history(), conversation.tokens()), before);
    }
}

#[test]
fn media_of_results_count_toward_the_context_together() {
    let engine =
        Fakes::default().engine(EngineSettings { max_context: Some(160), ..EngineSettings::default() });
    let mut conversation = Conversation::new(&engine, config()).unwrap();
    conversation.set_history(vec![user((0..20).map(blob).collect()), Message::tool_calls(vec![])]);
    let error = conversation.send(result(vec![blob(20)])).unwrap_err();
    assert!(!matches!(error, Error::TooManyMediaRows { .. }), "the result's image is a note: {error}");
}
