//! Prompts of a conversation: new messages after the history, or the history with its last reply open.

use std::borrow::Cow;
use std::sync::Arc;

use lm_session::{ImageOptions, Media, TokenId};
use lm_template::{
    ContinueField, GenerationPrompt, Map, Message, Origin, PolyfilledPrompt, Prompt, RenderInput, Role,
    Value, results_with_names,
};

use crate::config::TurnOptions;
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::history_cut::HistoryCut;
use crate::media::{self, MediaBounds, MediaPrompt, MediaReader};
use crate::overflow::{DroppedHistory, DroppedTurns, Overflow, cuts};
use crate::rendered::RenderedPrompt;
use crate::turn_prompt::{CutReply, HistoryChange, SinkPrompt, TurnPrompt};

/// Messages as passed to a template: preface, history and turn.
pub(crate) struct PromptMessages {
    /// Each message as one template input, or several if it holds several tool results, and its media.
    inputs: Vec<(Vec<Value>, Vec<Arc<Media>>)>,
    preface: usize,
}

impl PromptMessages {
    /// Converts `messages` with the options of their images, if they have their own; the first `preface` ones
    /// are never dropped.
    fn new(
        conversation: &Conversation,
        messages: &[Message],
        images: &[Option<ImageOptions>],
        preface: usize,
        bounds: &MediaBounds,
    ) -> Result<Self> {
        let Conversation { processor, engine, settings, .. } = conversation;
        let mut media = MediaReader::new(&settings.media, engine, bounds);
        let mut input = |index: usize, parts: &[Cow<'_, Message>]| -> Result<_> {
            let (mut values, mut all) = (Vec::with_capacity(parts.len()), Vec::new());
            for message in parts {
                let read = media.read(message, index, images.get(index).copied().flatten())?;
                let refused = |error| media::unread(error, message, index);
                values.push(processor.message_to_template_input(&read.message).map_err(refused)?);
                all.extend(read.media);
            }
            Ok((values, all))
        };
        let messages = results_with_names(messages);
        let inputs = messages.iter().enumerate().map(|(index, parts)| input(index, parts));
        let inputs = inputs.collect::<Result<_>>()?;
        Ok(Self { inputs, preface })
    }

    /// The messages without the first `dropped` ones after the preface, and their media.
    fn without(&self, dropped: usize) -> (Vec<Value>, Vec<Arc<Media>>) {
        let (preface, others) = self.inputs.split_at(self.preface);
        let kept = || preface.iter().chain(&others[dropped.min(others.len())..]);
        let media = kept().flat_map(|(_, media)| media.clone());
        (kept().flat_map(|(inputs, _)| inputs.clone()).collect(), media.collect())
    }
}

impl Conversation {
    /// Renders preface, history and `messages`.
    pub(crate) fn prompt(
        &self,
        messages: &[Message],
        generation_prompt: GenerationPrompt,
        extra_context: &Map<String, Value>,
    ) -> Result<MediaPrompt> {
        let (all, dropped) = self.prompt_messages(messages, None, &MediaBounds::default())?;
        self.render_messages(all.without(dropped), generation_prompt, extra_context)
    }

    /// Returns all messages, and the number of history messages omitted from prompts. `media`: options of the
    /// images of `messages`, in place of the conversation's.
    fn prompt_messages(
        &self,
        messages: &[Message],
        media: Option<ImageOptions>,
        bounds: &MediaBounds,
    ) -> Result<(PromptMessages, usize)> {
        let state = self.shared.lock();
        let preface = self.preface.messages.len();
        let (all, dropped) = ([&self.preface.messages, &state.history, messages].concat(), state.dropped);
        let mut images = vec![None; preface];
        images.extend(&state.image_options);
        images.resize(preface + state.history.len(), None);
        images.resize(all.len(), media);
        drop(state); // Media may be decoded.
        Ok((PromptMessages::new(self, &all, &images, preface, bounds)?, dropped))
    }

    fn render_messages(
        &self,
        (mut messages, media): (Vec<Value>, Vec<Arc<Media>>),
        generation_prompt: GenerationPrompt,
        extra_context: &Map<String, Value>,
    ) -> Result<MediaPrompt> {
        let (tools, extra_context) = self.template_variables(extra_context);
        if !self.tools.is_empty() {
            self.settings.tools_note.add_to(&mut messages, &*self.processor);
        }
        let messages = &messages;
        let input = RenderInput { messages, tools: &tools, generation_prompt, extra_context: &extra_context };
        MediaPrompt::new(self.template.render(&input)?, media, self.engine.media_tokens())
    }

    /// Tools and variables of the template.
    fn template_variables(&self, extra_context: &Map<String, Value>) -> (Value, Map<String, Value>) {
        let mut variables = self.preface.extra_context.clone();
        variables.extend(extra_context.clone());
        (self.processor.format_tools(&self.tools), variables)
    }

    pub(crate) fn ids(&self, prompt: &MediaPrompt) -> Result<Vec<TokenId>> {
        prompt.encode(&self.engine, self.settings.content_tokens)
    }

    /// Bounds of a turn's media: without [`Overflow::Error`], media may be in messages that are dropped.
    fn media_bounds(&self, options: &TurnOptions, overflow: Overflow) -> MediaBounds {
        let max_rows = matches!(overflow, Overflow::Error).then(|| self.engine.context_tokens());
        MediaBounds::new(options.cancel.clone(), options.deadline, max_rows)
    }

    /// Opens a turn with `messages` whose reply may have `max_output_tokens`.
    pub(crate) fn open(
        &self,
        messages: Vec<Message>,
        options: &TurnOptions,
        overflow: Overflow,
        max_output_tokens: Option<usize>,
    ) -> Result<TurnPrompt> {
        let bounds = self.media_bounds(options, overflow);
        let (all, before) = self.prompt_messages(&messages, options.media, &bounds)?;
        let extra_context = &options.extra_context;
        let render = |dropped: usize| -> Result<(MediaPrompt, Vec<TokenId>)> {
            let rendered =
                self.render_messages(all.without(dropped), GenerationPrompt::Add, extra_context)?;
            let ids = self.ids(&rendered)?;
            Ok((rendered, ids))
        };
        let context_tokens = self.engine.context_tokens();
        let share = Overflow::reply_share(context_tokens, max_output_tokens);
        let (mut rendered, mut dropped) = (render(before)?, before);
        let mut event = None;
        let past = overflow.drops().map_or_else(Vec::new, |_| self.history());
        let begins_turn = messages.first().is_some_and(|first| first.role != Role::Tool);
        let starts = cuts(&past, begins_turn);
        if let Some(history) = overflow.drops()
            && rendered.1.len() + share > context_tokens
        {
            let first = HistoryCut {
                tokenizer: self.engine.tokenizer(),
                preface: &self.preface.messages,
                tools: &self.tools,
                history: &past,
                places: &starts,
                context_tokens,
                reply_tokens: share,
            };
            let fits = |cut| Ok::<_, Error>(cut > before && render(cut)?.1.len() + share <= context_tokens);
            // The last one may leave enough for a short reply.
            let last = starts.last().copied().filter(|&last| last > before);
            if let Some(cut) = first.first_that_fits(fits)?.or(last) {
                let from = if history == DroppedHistory::Removed { 0 } else { before };
                let turns = starts.iter().filter(|&&start| from < start && start <= cut).count();
                let messages = past[from..cut].to_vec();
                event = Some(DroppedTurns { turns, messages, history });
                (rendered, dropped) = (render(cut)?, cut);
            }
        }
        let sinks = match overflow {
            Overflow::SlidingWindow => {
                let last = starts.last().map_or(dropped, |&last| last.max(dropped));
                let turns = starts.iter().filter(|&&start| dropped < start && start <= last).count();
                Some(SinkPrompt { ids: render(last)?.1, dropped: last, turns })
            }
            Overflow::Error | Overflow::DropOldest(_) => None,
        };
        let place = event.as_ref().map(|event| event.history).unwrap_or_default();
        let (MediaPrompt { rendered: PolyfilledPrompt { prompt, polyfills, .. }, media, .. }, ids) = rendered;
        Ok(TurnPrompt {
            ids,
            media,
            tail: template_tail(&prompt).to_owned(),
            polyfills,
            change: HistoryChange { messages, image_options: options.media, continues: None, dropped, place },
            dropped: event,
            sinks,
            ..TurnPrompt::default()
        })
    }

    /// Renders the prompt of a turn that continues the last reply by its text
    /// ([`continue_reply`](Self::continue_reply)), without running it: it ends with the text.
    ///
    /// # Errors
    /// As [`continue_reply`](Self::continue_reply).
    pub fn render_reply(&self) -> Result<RenderedPrompt> {
        let last = last_reply(self.shared.lock().history.last())?;
        let (text, reasoning) = (last.content.text(), last.reasoning_content.unwrap_or_default());
        let (prompt, _) = self.prompt_to_continue(&text, &reasoning, &TurnOptions::default())?;
        prompt.to_rendered(&self.engine, self.settings.content_tokens)
    }

    /// Opens the last reply of the history again: by its tokens if they are known, or else by its text.
    pub(crate) fn reopen(&self, options: &TurnOptions) -> Result<TurnPrompt> {
        let state = self.shared.lock();
        let (last, dropped) = (last_reply(state.history.last())?, state.dropped);
        let known = state.open.clone();
        drop(state);
        let change = HistoryChange { continues: Some(last.clone()), dropped, ..HistoryChange::default() };
        if let Some(CutReply { ids, media, written, tail, polyfills, before }) = known {
            let turn_prompt =
                TurnPrompt { ids, media, written, tail, polyfills, change, before, ..TurnPrompt::default() };
            return Ok(turn_prompt);
        }
        let (text, reasoning) = (last.content.text(), last.reasoning_content.unwrap_or_default());
        let (prompt, open) = self.prompt_to_continue(&text, &reasoning, options)?;
        let turn_prompt = self.reopen_text(open, prompt)?;
        // The reply's first tokens are read with the rest of it.
        let before = match (turn_prompt.written > 0, text.is_empty()) {
            (true, true) => Default::default(),
            (true, false) => (String::new(), reasoning),
            (false, _) => (text, reasoning),
        };
        Ok(TurnPrompt { change, before, ..turn_prompt })
    }

    /// Renders the history up to the end of the last message's text, or of its reasoning if it has no text,
    /// and returns that text as well.
    fn prompt_to_continue<'a>(
        &self,
        text: &'a str,
        reasoning: &'a str,
        options: &TurnOptions,
    ) -> Result<(MediaPrompt, &'a str)> {
        let (open, field) = match (text.is_empty(), reasoning.is_empty()) {
            (false, _) => (text, ContinueField::Content),
            (true, false) => (reasoning, ContinueField::Named("reasoning_content")),
            (true, true) => return Err(Error::NoReply { reason: "it has no text" }),
        };
        let bounds = self.media_bounds(options, Overflow::Error);
        let (all, dropped) = self.prompt_messages(&[], None, &bounds)?;
        let (tools, extra_context) = self.template_variables(&options.extra_context);
        let (messages, media) = all.without(dropped);
        let input = RenderInput {
            messages: &messages,
            tools: &tools,
            generation_prompt: GenerationPrompt::Omit,
            extra_context: &extra_context,
        };
        let prompt = self.template.render_to_continue(&input, field)?;
        Ok((MediaPrompt::new(prompt, media, self.engine.media_tokens())?, open))
    }

    /// Opens a reply whose text is at the end of a prompt.
    fn reopen_text(&self, text: &str, prompt: MediaPrompt) -> Result<TurnPrompt> {
        let ids = self.ids(&prompt)?;
        let MediaPrompt { rendered: PolyfilledPrompt { prompt, polyfills, .. }, media, .. } = prompt;
        let whole = prompt.text();
        // Templates trim.
        let text = [text, text.trim_end(), text.trim()].into_iter().find(|text| whole.ends_with(text));
        let written = text.and_then(|text| self.last_tokens(&ids, text.len())).unwrap_or(0);
        let mut rest = prompt;
        rest.segments.pop_if(|last| last.origin == Origin::Content);
        let tail = template_tail(&rest).to_owned();
        Ok(TurnPrompt { ids, media, written, tail, polyfills, ..TurnPrompt::default() })
    }

    /// Number of last tokens whose texts have exactly `bytes` bytes.
    fn last_tokens(&self, ids: &[TokenId], bytes: usize) -> Option<usize> {
        let tokenizer = self.engine.tokenizer();
        let mut sum = 0;
        for (count, &id) in (1..).zip(ids.iter().rev()) {
            sum += tokenizer.token_bytes(id).len();
            if sum >= bytes {
                return (sum == bytes).then_some(count);
            }
        }
        None
    }
}

/// Checks that the last message is a reply that can be continued.
fn last_reply(last: Option<&Message>) -> Result<Message> {
    match last.filter(|last| last.role == Role::Assistant) {
        None => Err(Error::NoReply { reason: "it is not the assistant's" }),
        Some(last) if !last.tool_calls.is_empty() => Err(Error::NoReply { reason: "it has tool calls" }),
        Some(last) => Ok(last.clone()),
    }
}

/// The template's own text at the end of a prompt.
pub(crate) fn template_tail(prompt: &Prompt) -> &str {
    let last = prompt.segments.last().filter(|segment| segment.origin == Origin::Template);
    last.map_or("", |segment| &segment.text)
}
