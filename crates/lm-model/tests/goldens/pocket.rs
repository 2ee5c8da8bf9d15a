//! Token ids and greedy turns of the pocket model: `testdata/templates/pocket.json`.

use anyhow::ensure;
use lm_tokenizer::{TextSegment, TokenId, Tokenizer};
use serde::Deserialize;
use serde_json::Value;

use crate::common::{alone, devices, is_thorough};
use crate::goldens::run::greedy;
use crate::goldens::{load, root};

/// One rendered conversation.
#[derive(Deserialize)]
struct Case {
    name: String,
    messages: Vec<Value>,
    text: String,
    ids: Vec<TokenId>,
    /// Greedy reply of the model, the end token included.
    greedy: Option<Vec<TokenId>>,
}

impl Case {
    fn all() -> anyhow::Result<Vec<Self>> {
        Ok(serde_json::from_slice(&std::fs::read(root().join("testdata/templates/pocket.json"))?)?)
    }

    /// The rendered text; the last message's content is a separate segment if it tests special tokens in
    /// content.
    fn segments(&self) -> Vec<TextSegment<'_>> {
        let content =
            self.messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default();
        match self.text.split_once(content) {
            Some((before, after)) if self.name.starts_with("special tokens") => {
                vec![
                    TextSegment::Template(before),
                    TextSegment::Content(content),
                    TextSegment::Template(after),
                ]
            }
            _ => vec![TextSegment::Template(&self.text)],
        }
    }
}

#[test]
fn ids_equal_the_reference_and_decode() -> anyhow::Result<()> {
    let tokenizer = Tokenizer::from_json(&std::fs::read(root().join("models/pocket/model/tokenizer.json"))?)?;
    for case in Case::all()? {
        let ids = tokenizer.encode_segments(&case.segments())?;
        ensure!(ids == case.ids, "{}: {ids:?}, expected {:?}", case.name, case.ids);
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| tokenizer.token_bytes(id)).copied().collect();
        ensure!(bytes == case.text.as_bytes(), "{}: {:?}", case.name, String::from_utf8_lossy(&bytes));
    }
    Ok(())
}

#[test]
fn documented_turns_equal_the_reference() -> anyhow::Result<()> {
    // On a GPU in software a turn takes up to half a minute; there `lm-tools` compares one conversation.
    for device in devices().into_iter().filter(|&device| is_thorough(device)) {
        let _alone = alone(device);
        let loaded = load(&root().join("models/pocket/model"), device)?;
        let mut turns = 0;
        for case in Case::all()? {
            let Some(wanted) = case.greedy else { continue };
            let tokens = greedy(loaded.model.as_ref(), &case.ids, wanted.len())?;
            ensure!(tokens == wanted, "{} on {device}: {tokens:?}, expected {wanted:?}", case.name);
            turns += 1;
        }
        ensure!(turns >= 25, "{turns} documented turns");
        println!("pocket on {device}: {turns} turns");
    }
    Ok(())
}
