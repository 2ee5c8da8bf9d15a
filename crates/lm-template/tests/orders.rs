//! Random conversations, in any order of roles, through every published template: no text is lost.

use crate::shared;
use lm_template::{GenerationPrompt, Map, PolyfilledTemplate, Polyfills, PromptTemplate, RenderInput, Value};
use serde_json::json;

/// Default number of conversations, each through all templates; `LM_PROPERTY_CASES` overrides it, and
/// `LM_PROPERTY_SEED` the first seed (0).
const CASES: u64 = 200;

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// A conversation, and the words that its prompt must have.
#[derive(Debug, Default)]
struct Conversation {
    messages: Vec<Value>,
    tools: Value,
    words: Vec<String>,
    written: usize,
    /// Ids and names of calls without a result.
    open: Vec<(Option<String>, String)>,
}

impl Conversation {
    fn random(seed: u64) -> Self {
        let mut random = Random(seed);
        let tools = json!([{"type": "function", "function": {"name": "look_up", "description": "Looks it up.",
            "parameters": {"type": "object", "properties": {"key": {"type": "string", "description": "A key."}}}}}]);
        let tools = if random.one_in(2) { tools } else { Value::Null };
        let mut conversation = Self { tools, ..Self::default() };
        for _ in 0..=random.below(7) {
            conversation.push(&mut random);
        }
        conversation
    }

    fn push(&mut self, random: &mut Random) {
        match random.below(12) {
            0 | 1 => self.say("system", random),
            2 => self.say("developer", random),
            3..=5 => self.say("user", random),
            6 | 7 => self.answer(random),
            8 => self.call(random),
            9 | 10 => self.result(random),
            _ => self.say(["critic", "ipython", "observer"][random.below(3) as usize], random),
        }
    }

    /// A word that no other text contains.
    fn word(&mut self) -> String {
        self.written += 1;
        format!("word{}q", self.written)
    }

    /// A message whose text must be in the prompt.
    fn say(&mut self, role: &str, random: &mut Random) {
        let word = self.word();
        let content = match random.below(12) {
            0 => json!(""),
            1 => Value::Null,
            2 | 3 => json!([{"type": "text", "text": format!("Say {word}.")}]),
            4 => {
                let other = self.word();
                self.words.push(other.clone());
                json!([{"type": "text", "text": format!("Say {word}")}, {"type": "text", "text": format!("and {other}.")}])
            }
            _ => format!("Say {word}.").into(),
        };
        if content.to_string().contains(&word) {
            self.words.push(word);
        }
        self.messages.push(json!({"role": role, "content": content}));
    }

    /// A message of the assistant, whose text templates may drop.
    fn answer(&mut self, random: &mut Random) {
        let mut message = json!({"role": "assistant", "content": "Very well."});
        match random.below(5) {
            0 => message["content"] = "".into(),
            1 => message["content"] = Value::Null,
            2 => message["content"] = json!([{"type": "text", "text": "Very well."}]),
            _ => {}
        }
        if random.one_in(4) {
            message["reasoning_content"] = "I think so.".into();
        }
        self.messages.push(message);
    }

    fn call(&mut self, random: &mut Random) {
        let mut calls = Vec::new();
        for _ in 0..=random.below(2) {
            let id = (!random.one_in(4)).then(|| format!("call_{}", self.word()));
            let arguments = json!({"key": "k", "count": [1, null]});
            let arguments = if random.one_in(2) { arguments } else { arguments.to_string().into() };
            let mut call =
                json!({"type": "function", "function": {"name": "look_up", "arguments": arguments}});
            if let Some(id) = &id {
                call["id"] = id.as_str().into();
            }
            self.open.push((id, "look_up".to_owned()));
            calls.push(call);
        }
        self.answer(random);
        if let Some(message) = self.messages.last_mut() {
            message["tool_calls"] = calls.into();
        }
    }

    fn result(&mut self, random: &mut Random) {
        let word = self.word();
        let content = match random.below(5) {
            0 => json!({"found": [word]}),
            1 => json!([word, 2]),
            2 => json!([{"type": "text", "text": format!("Found {word}.")}]),
            _ => format!("Found {word}.").into(),
        };
        self.words.push(word);
        let mut message = json!({"role": "tool", "content": content});
        let of_call = !self.open.is_empty() && !random.one_in(4);
        let (id, name) = match of_call {
            true => self.open.remove(random.below(self.open.len() as u64) as usize),
            false => (random.one_in(2).then(|| "call_gone".to_owned()), "look_up".to_owned()),
        };
        if let Some(id) = id {
            message["tool_call_id"] = id.into();
        }
        if !random.one_in(3) {
            message["name"] = name.into();
        }
        self.messages.push(message);
    }

    /// Renders the conversation; an error is a failure or the words that the prompt lacks.
    fn check(&self, template: &PolyfilledTemplate) -> Result<(), String> {
        let input = RenderInput {
            messages: &self.messages,
            tools: &self.tools,
            generation_prompt: GenerationPrompt::Add,
            extra_context: &Map::new(),
        };
        let rendered = template.render(&input).map_err(|error| error.to_string())?;
        let text = rendered.prompt.text();
        let lost: Vec<&String> = self.words.iter().filter(|word| !text.contains(*word)).collect();
        if lost.is_empty() {
            Ok(())
        } else {
            Err(format!("without {lost:?} ({:?}): {text}", rendered.polyfills))
        }
    }
}

fn templates(folder: &std::path::Path) -> Vec<(String, PolyfilledTemplate)> {
    let index = shared::json(folder.join("index.json"));
    let rows = index["templates"].as_array().expect("a list of templates");
    let read = |row: &Value| {
        let id = row["id"].as_str().expect("an id");
        let source = std::fs::read_to_string(folder.join(format!("{id}.jinja"))).expect("a template");
        let context = row["context"].as_object().cloned().unwrap_or_default();
        let template = PromptTemplate::new(&source).expect("it compiles").with_context(context);
        (id.to_owned(), PolyfilledTemplate::new(template, Polyfills::default()))
    };
    rows.iter().map(read).collect()
}

#[test]
fn random_conversations_lose_no_text() {
    let Some(folder) = shared::path("goldens/templates") else { return };
    let number = |name, default| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (cases, first) = (number("LM_PROPERTY_CASES", CASES), number("LM_PROPERTY_SEED", 0));
    let conversations: Vec<Conversation> = (first..first + cases).map(Conversation::random).collect();
    let templates = templates(&folder);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let check = |(id, template): &(String, PolyfilledTemplate)| -> Vec<String> {
        let failure = |(seed, conversation): (u64, &Conversation)| {
            let why = conversation.check(template).err()?;
            Some(format!("{id}, seed {seed}: {why}\n{}", Value::from(conversation.messages.clone())))
        };
        (first..).zip(&conversations).filter_map(failure).collect()
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let parts = templates.chunks(templates.len().div_ceil(threads));
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(|| part.iter().flat_map(check).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().expect("no panic")).collect()
    });
    let shown = failures.iter().take(12).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(failures.is_empty(), "{} failures\n{shown}", failures.len());
}
