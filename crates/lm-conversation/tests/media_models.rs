//! Images and audio from files through conversations to the tiny checkpoints of `testdata/vision` and
//! `testdata/audio`: token ids and greedy tokens as transformers has them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lm_conversation::{
    ContentTokens, Conversation, ConversationConfig, GenerationPrompt, LoadOptions, Message, ModelFolder,
    Part, PromptTemplate,
};
use lm_model::{ALL_AUDIO_FAMILIES, ALL_VISION_FAMILIES};
use lm_session::{
    Engine, EngineSettings, GenerateParams, ImageOptions, Media, MediaKind, Prompt, SamplerParams,
    SessionConfig, SessionEvent, TokenId,
};
use lm_template::Content;
use safetensors::SafeTensors;
use serde_json::Value;

/// A file of an image or an audio clip.
#[derive(Clone)]
struct MediumFile(MediaKind, Vec<u8>);

impl MediumFile {
    fn part(&self) -> Part {
        let media = lm_template::Media::from_bytes(self.1.clone());
        match self.0 {
            MediaKind::Image => Part::Image(media),
            MediaKind::Audio => Part::Audio(media),
        }
    }

    fn media(&self, engine: &Engine) -> Arc<Media> {
        let medium = match self.0 {
            MediaKind::Image => engine.image(&self.1[..], &ImageOptions::default()),
            MediaKind::Audio => engine.audio(&self.1[..]),
        };
        medium.unwrap()
    }
}

/// A prompt of the reference, with a placeholder for each medium.
struct Case {
    folder: PathBuf,
    text: String,
    files: Vec<MediumFile>,
    ids: Vec<TokenId>,
    greedy: Vec<TokenId>,
}

/// A BMP file of `[height, width, 3]` bytes.
fn bmp(shape: &[usize], rgb: &[u8]) -> Vec<u8> {
    let (height, width) = (shape[0], shape[1]);
    let row_bytes = (width * 3).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    let sizes = [54 + row_bytes * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0];
    sizes.iter().for_each(|&field| file.extend((field as u32).to_le_bytes()));
    for row in rgb.chunks_exact(width * 3).rev() {
        let pixels = row.chunks_exact(3).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]);
        file.extend(pixels);
        file.resize(file.len() + row_bytes - width * 3, 0);
    }
    file
}

/// A WAV file of floats in one channel at 16 kHz: the noise that `testdata/audio/generate.py` describes, or
/// silence.
fn wav(recipe: &Value) -> Vec<u8> {
    let samples = recipe["samples"].as_u64().unwrap() as u32;
    let mut state = recipe["seed"].as_u64().unwrap_or(0) as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + samples * 4).to_le_bytes());
    file.extend(b"WAVEfmt ");
    // Floats in one channel, 16,000 samples and 64,000 bytes a second, four bytes and 32 bits a sample.
    [16, 3 | 1 << 16, 16_000, 64_000, 4 | 32 << 16]
        .iter()
        .for_each(|&field| file.extend(u32::to_le_bytes(field)));
    file.extend(b"data");
    file.extend((samples * 4).to_le_bytes());
    for index in 0..samples {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = ((state >> 16) as f32 / 32_768.0 - 1.0) * (index / 800 % 4) as f32 / 4.0;
        file.extend(if recipe["seed"].is_null() { 0.0_f32 } else { noise }.to_le_bytes());
    }
    file
}

/// The files of the images whose names begin with `prefix`.
fn images(tensors: &SafeTensors<'_>, prefix: &str) -> Vec<MediumFile> {
    let found = (0..).map_while(|index| tensors.tensor(&format!("{prefix}{index}.rgb")).ok());
    found.map(|rgb| MediumFile(MediaKind::Image, bmp(rgb.shape(), rgb.data()))).collect()
}

fn case(folder: &Path, golden: &Value, text: &str, files: Vec<MediumFile>) -> Case {
    let list = |key: &str| -> Vec<TokenId> { serde_json::from_value(golden[key].clone()).unwrap() };
    let text = golden[text].as_str().unwrap().to_owned();
    Case { folder: folder.to_owned(), text, files, ids: list("ids"), greedy: list("greedy") }
}

/// `golden.json` and `golden.safetensors` of a folder of `testdata`.
fn read(folder: &Path) -> (Value, Vec<u8>) {
    let json = std::fs::read(folder.join("golden.json")).unwrap();
    (serde_json::from_slice(&json).unwrap(), std::fs::read(folder.join("golden.safetensors")).unwrap())
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn vision_case(name: &str) -> Case {
    let folder = testdata("vision").join(name);
    let (golden, bytes) = read(&folder);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    case(&folder, &golden, "prompt", images(&tensors, "pictures."))
}

fn audio_cases(name: &str) -> Vec<Case> {
    let folder = testdata("audio").join(name);
    let (golden, bytes) = read(&folder);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let prompts = golden["prompts"].as_array().unwrap().iter().enumerate();
    let of_prompt = |(index, prompt): (usize, &Value)| {
        let audios: Vec<usize> = serde_json::from_value(prompt["sounds"].clone()).unwrap();
        let audios = audios.iter().map(|&audio| MediumFile(MediaKind::Audio, wav(&golden["sounds"][audio])));
        let files = images(&tensors, &format!("prompts.{index}.pictures.")).into_iter().chain(audios);
        case(&folder, prompt, "text", files.collect())
    };
    prompts.map(of_prompt).collect()
}

fn load(folder: &Path, prefill_chunk: usize) -> Engine {
    let settings = EngineSettings { prefill_chunk, ..EngineSettings::default() };
    let folder = ModelFolder::open(folder).unwrap();
    Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).unwrap()
}

fn placeholder(engine: &Engine, kind: MediaKind) -> String {
    let tokens = engine.media_tokens().iter().find(|tokens| tokens.kind == kind);
    tokens.map_or(String::new(), |tokens| tokens.placeholder.clone())
}

/// A conversation whose prompts are the parts of its messages and nothing else.
fn conversation(engine: &Engine) -> Conversation {
    let [image, audio] = MediaKind::ALL.map(|kind| placeholder(engine, kind));
    let part = format!(
        "{{% if p.type == 'image' %}}{image}{{% elif p.type == 'audio' %}}{audio}{{% else %}}{{{{ p.text }}}}{{% endif %}}"
    );
    let source =
        format!("{{% for m in messages %}}{{% for p in m.content %}}{part}{{% endfor %}}{{% endfor %}}");
    let template = Some(PromptTemplate::new(&source).unwrap());
    let content_tokens = ContentTokens::Recognized;
    let config = ConversationConfig { template, content_tokens, ..ConversationConfig::default() };
    Conversation::new(engine, config).unwrap()
}

/// The texts of a prompt, with its files in place of the placeholders.
fn message(case: &Case, engine: &Engine) -> Message {
    let mut rest = &*case.text;
    let mut parts = Vec::new();
    for file in &case.files {
        let (text, after) = rest.split_once(&placeholder(engine, file.0)).unwrap();
        parts.extend([Part::Text(text.to_owned()), file.part()]);
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    let mut message = Message::user("");
    message.content = Content::Parts(parts);
    message
}

fn greedy(engine: &Engine, ids: &[TokenId], media: &[Arc<Media>], count: usize) -> Vec<TokenId> {
    let mut session = engine.session(SessionConfig::default()).unwrap();
    let sampler = SamplerParams { temperature: 0.0, ..SamplerParams::default() };
    let params = GenerateParams {
        sampler: Some(sampler),
        max_output_tokens: Some(count),
        ..GenerateParams::default()
    };
    let events = session.submit(Prompt { ids, media }, params).unwrap();
    let id = |event| match event {
        SessionEvent::Token { id, .. } => Some(id),
        _ => None,
    };
    events.filter_map(|event| id(event.unwrap())).collect()
}

fn check(case: &Case) {
    let name = format!("{} {:?}", case.folder.display(), case.text);
    let engine = load(&case.folder, 512);
    let rendered = conversation(&engine).render(message(case, &engine), GenerationPrompt::Omit).unwrap();
    let media: Vec<_> = case.files.iter().map(|file| file.media(&engine)).collect();
    // Rows have ids of their own, in the places of their tokens.
    let is_row = |id: TokenId| engine.media_tokens().iter().any(|tokens| tokens.row_id == id);
    let same = |(id, expected): (&TokenId, &TokenId)| id == expected || id >> 31 == 1 && is_row(*expected);
    assert_eq!(rendered.ids.len(), case.ids.len(), "{name}");
    assert!(rendered.ids.iter().zip(&case.ids).all(same), "{name}: {:?}", rendered.ids);
    assert_eq!(greedy(&engine, &rendered.ids, &media, case.greedy.len()), case.greedy, "{name}");
    // The prompt is cached: its media are not encoded again, and a file that is there twice was encoded once.
    let mut files: Vec<_> = media.iter().map(Arc::as_ptr).collect();
    files.dedup();
    let encoded = files.len() as u64;
    assert_eq!(greedy(&engine, &rendered.ids, &media, case.greedy.len()), case.greedy, "{name}");
    assert_eq!(engine.activity().encoded_media, encoded, "{name}");
    // Rows of an image that attend to each other run together, whatever the chunk.
    let small = load(&case.folder, 7);
    let media: Vec<_> = case.files.iter().map(|file| file.media(&small)).collect();
    assert_eq!(greedy(&small, &rendered.ids, &media, case.greedy.len()), case.greedy, "{name}, chunks of 7");
}

#[test]
fn image_prompts_and_replies_equal_transformers() {
    ALL_VISION_FAMILIES.iter().flat_map(|family| family.goldens).for_each(|name| check(&vision_case(name)));
}

#[test]
fn audio_prompts_and_replies_equal_transformers() {
    let cases =
        ALL_AUDIO_FAMILIES.iter().flat_map(|family| family.goldens).flat_map(|name| audio_cases(name));
    cases.for_each(|case| check(&case));
}
