//! Pictures from files through conversations to the tiny vision checkpoints of `testdata/vision`: token ids and greedy tokens as transformers has them.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::path::Path;
use std::sync::Arc;

use lm_conversation::{
    ContentTokens, Conversation, ConversationConfig, GenerationPrompt, LoadOptions, Message, ModelFolder,
    Part, PromptTemplate,
};
use lm_model::ALL_VISION_FAMILIES;
use lm_session::{
    Engine, EngineSettings, GenerateParams, Media, PictureOptions, Prompt, SamplerParams, SessionConfig,
    SessionEvent, TokenId,
};
use lm_template::Content;
use safetensors::SafeTensors;
use serde_json::Value;

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

fn load(folder: &Path, prefill_chunk: usize) -> Engine {
    let folder = ModelFolder::open(folder).unwrap();
    let settings = EngineSettings { prefill_chunk, ..EngineSettings::default() };
    Engine::load(&folder, &LoadOptions::default(), settings, &mut |_| {}).unwrap()
}

/// A conversation whose prompts are the parts of its messages and nothing else.
fn conversation(engine: &Engine, placeholder: &str) -> Conversation {
    let image = format!("{{% if p.type == 'image' %}}{placeholder}{{% else %}}{{{{ p.text }}}}{{% endif %}}");
    let source =
        format!("{{% for m in messages %}}{{% for p in m.content %}}{image}{{% endfor %}}{{% endfor %}}");
    let template = Some(PromptTemplate::new(&source).unwrap());
    let content_tokens = ContentTokens::Recognized;
    Conversation::new(
        engine,
        ConversationConfig { template, content_tokens, ..ConversationConfig::default() },
    )
    .unwrap()
}

/// The texts of a prompt with a picture between each two of them.
fn message(prompt: &str, placeholder: &str, pictures: &[Vec<u8>]) -> Message {
    let mut pictures = pictures.iter();
    let parts = prompt.split(placeholder).flat_map(|text| {
        let picture = pictures.next().map(|file| Part::Image(lm_template::Media::from_bytes(file.clone())));
        [Some(Part::Text(text.to_owned())), picture]
    });
    let mut message = Message::user("");
    message.content = Content::Parts(parts.flatten().collect());
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

#[test]
fn prompts_and_replies_are_those_of_transformers() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vision");
    for name in ALL_VISION_FAMILIES.iter().flat_map(|family| family.goldens) {
        let folder = data.join(name);
        let golden: Value =
            serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
        let list = |key: &str| -> Vec<TokenId> { serde_json::from_value(golden[key].clone()).unwrap() };
        let bytes = std::fs::read(folder.join("golden.safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let files: Vec<Vec<u8>> = (0..)
            .map_while(|index| tensors.tensor(&format!("pictures.{index}.rgb")).ok())
            .map(|rgb| bmp(rgb.shape(), rgb.data()))
            .collect();
        let engine = load(&folder, 512);
        let tokens = engine.media_tokens()[0].clone();
        let conversation = conversation(&engine, &tokens.placeholder);
        let message = message(golden["prompt"].as_str().unwrap(), &tokens.placeholder, &files);
        let rendered = conversation.render(message, GenerationPrompt::Omit).unwrap();
        let media: Vec<_> =
            files.iter().map(|file| engine.picture(&file[..], &PictureOptions::default()).unwrap()).collect();
        let ids: Vec<TokenId> =
            rendered.ids.iter().map(|&id| if id >> 31 == 1 { tokens.row_id } else { id }).collect();
        assert_eq!(ids, list("ids"), "{name}");
        let expected = list("greedy");
        assert_eq!(greedy(&engine, &rendered.ids, &media, expected.len()), expected, "{name}");
        // The prompt is cached: its pictures are not encoded again.
        assert_eq!(greedy(&engine, &rendered.ids, &media, expected.len()), expected, "{name}");
        assert_eq!(engine.activity().encoded_media as usize, files.len(), "{name}");
        // Rows of a picture that attend to each other run together, whatever the chunk.
        let small = load(&folder, 7);
        let media: Vec<_> =
            files.iter().map(|file| small.picture(&file[..], &PictureOptions::default()).unwrap()).collect();
        assert_eq!(greedy(&small, &rendered.ids, &media, expected.len()), expected, "{name}, chunks of 7");
    }
}
