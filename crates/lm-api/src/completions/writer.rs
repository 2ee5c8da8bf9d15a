//! Responses of completions.

use lm_conversation::{ConversationEvent, Reply, ScoredToken, TokenId};
use lm_session::Tokenizer;
use serde_json::{Value, json};

use super::logprobs::{Logprobs, chars};
use super::request::CompletionRequest;
use crate::chat_completions::{CompletionHead, finish_reason, usage};
use crate::error::ApiError;
use crate::response_writer::{Choice, Frame, Framing, ResponseWriter};
use crate::text_inputs::TextInput;
use crate::timings::PromptProgress;

/// Writer of `text_completion` objects: whole, or one for each piece of a choice's text, with the usage last
/// if it is requested.
#[derive(Debug)]
pub struct TextWriter {
    head: CompletionHead,
    include_usage: bool,
    with_logprobs: bool,
    progress: PromptProgress,
    /// Number of choices of each prompt.
    per_prompt: usize,
    /// Prompts that begin the texts; empty without `echo`.
    echoes: Vec<Echo>,
    choices: Vec<ChoiceState>,
}

/// A prompt that begins a text.
#[derive(Debug)]
struct Echo {
    text: Vec<u8>,
    tokens: Vec<Vec<u8>>,
}

/// State of one choice.
#[derive(Debug, Default)]
struct ChoiceState {
    /// True after the prompt, if it is part of the text.
    opened: bool,
    /// Offset of the next token.
    offset: usize,
    /// Log probabilities for the next object.
    scored: Vec<ScoredToken>,
    reply: Option<Reply>,
}

impl TextWriter {
    /// Creates a writer for the response to a request whose prompts have these tokens.
    pub(crate) fn new(
        request: &CompletionRequest,
        model: &str,
        prompts: &[Vec<TokenId>],
        tokenizer: &Tokenizer,
    ) -> Self {
        let echoes = request.prompts.texts().iter().zip(prompts).filter(|_| request.echo);
        Self {
            head: CompletionHead::with_id("cmpl-", model),
            include_usage: request.options.stream.is_some_and(|stream| stream.include_usage),
            with_logprobs: request.options.turn.logprobs.is_some(),
            progress: PromptProgress::new(&request.options),
            per_prompt: request.per_prompt(),
            echoes: echoes.map(|(input, ids)| Echo::new(input, ids, tokenizer)).collect(),
            choices: (0..request.options.choices).map(|_| ChoiceState::default()).collect(),
        }
    }

    fn echo(&self, choice: usize) -> Option<&Echo> {
        self.echoes.get(choice / self.per_prompt)
    }

    fn choice(&self, index: usize, Choice { reply, logprobs, prompt_logprobs }: &Choice) -> Value {
        let (mut text, mut scores, mut offset) = (String::new(), Logprobs::default(), 0);
        if let Some(echo) = self.echo(index) {
            text = echo.text();
            echo.score(prompt_logprobs, &mut scores, &mut offset);
        }
        scores.extend(logprobs.as_deref().unwrap_or_default(), &mut offset);
        text += &reply.text();
        self.choice_object(index, text, scores, Some(finish_reason(reply)))
    }

    fn choice_object(&self, index: usize, text: String, scores: Logprobs, finish: Option<&str>) -> Value {
        let logprobs = self.with_logprobs.then(|| scores.json());
        json!({"text": text, "index": index, "logprobs": logprobs, "finish_reason": finish})
    }

    /// Writes the next piece of a choice, with the log probabilities since the last one.
    fn piece(&mut self, index: usize, text: String, finish: Option<&str>) -> Value {
        let (mut scores, state) = (Logprobs::default(), &mut self.choices[index]);
        scores.extend(&std::mem::take(&mut state.scored), &mut state.offset);
        self.chunk(vec![self.choice_object(index, text, scores, finish)])
    }

    /// Writes the prompt as the first piece of a choice.
    fn open(&mut self, index: usize, event: &ConversationEvent) -> Option<Value> {
        if matches!(event, ConversationEvent::Prefill(_))
            || std::mem::replace(&mut self.choices[index].opened, true)
        {
            return None;
        }
        let echo = self.echo(index)?;
        let scored = match event {
            ConversationEvent::PromptLogprobs(scored) => &scored[..],
            _ => &[],
        };
        let (mut scores, mut offset) = (Logprobs::default(), 0);
        echo.score(scored, &mut scores, &mut offset);
        let chunk = self.chunk(vec![self.choice_object(index, echo.text(), scores, None)]);
        self.choices[index].offset = offset;
        Some(chunk)
    }

    fn chunk(&self, choices: Vec<Value>) -> Value {
        self.head.chunk("text_completion", choices, self.include_usage)
    }

    /// Object of the usage, when all choices are finished.
    fn usage(&self) -> Option<Value> {
        let replies: Option<Vec<&Reply>> = self.choices.iter().map(|choice| choice.reply.as_ref()).collect();
        let replies = replies.filter(|_| self.include_usage)?;
        let mut chunk = self.chunk(Vec::new());
        chunk["usage"] = usage(replies.into_iter(), self.per_prompt);
        Some(chunk)
    }
}

impl ResponseWriter for TextWriter {
    const FRAMING: Framing = Framing::EventsUntilDone;

    fn object(&mut self, choices: &[Choice]) -> Value {
        let objects = choices.iter().enumerate().map(|(index, choice)| self.choice(index, choice));
        let mut object = self.head.chunk("text_completion", objects.collect(), true);
        object["usage"] = usage(choices.iter().map(|choice| &choice.reply), self.per_prompt);
        object
    }

    fn frames(&mut self, choice: usize, event: &ConversationEvent) -> Vec<Frame> {
        let mut objects: Vec<_> = self.open(choice, event).into_iter().collect();
        match event {
            ConversationEvent::Text(text) => objects.push(self.piece(choice, text.clone(), None)),
            ConversationEvent::Logprobs(scored) => self.choices[choice].scored.push(scored.clone()),
            ConversationEvent::Finished(reply) => {
                objects.push(self.piece(choice, String::new(), Some(finish_reason(reply))));
                self.choices[choice].reply = Some(reply.clone());
                objects.extend(self.usage());
            }
            event => objects.extend(self.progress.of(event).map(|progress| {
                let nothing = self.choice_object(choice, String::new(), Logprobs::default(), None);
                let mut object = self.chunk(vec![nothing]);
                object["prompt_progress"] = progress;
                object
            })),
        }
        objects.into_iter().map(Frame::new).collect()
    }

    fn error(&mut self, error: &ApiError) -> Frame {
        Frame::new(error.to_json())
    }
}

impl Echo {
    fn new(input: &TextInput, ids: &[TokenId], tokenizer: &Tokenizer) -> Self {
        let tokens: Vec<Vec<u8>> = ids.iter().map(|&id| tokenizer.token_bytes(id).to_vec()).collect();
        let text = match input {
            TextInput::Text(text) => text.clone().into_bytes(),
            TextInput::Ids(_) => tokens.concat(),
        };
        Self { text, tokens }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Adds the scores of the prompt's tokens. Tokens that are not in its text, such as BOS, take no place in
    /// it.
    fn score(&self, scored: &[ScoredToken], scores: &mut Logprobs, offset: &mut usize) {
        let mut rest = &self.text[..];
        for (index, bytes) in self.tokens.iter().enumerate() {
            scores.push(bytes, index.checked_sub(1).and_then(|index| scored.get(index)), *offset);
            if let Some(after) = rest.strip_prefix(&bytes[..]) {
                rest = after;
                *offset += chars(bytes);
            }
        }
    }
}
