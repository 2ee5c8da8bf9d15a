//! Execution of requests on an engine.

use lm_conversation::{
    Conversation, ConversationConfig, Engine, GenerationPrompt, RenderedPrompt, ThinkingConfig, ThinkingMode,
    TokenId, TurnOptions,
};
use lm_processors::CallIdForm;
use lm_session::{CompiledConstraint, GenerateParams};
use lm_template::{ChatTemplates, TemplateChoice};
use serde_json::Value;

use crate::chat_completions::ChunkWriter;
use crate::completions::{CompletionRequest, Infilling, TextStream, TextWriter};
use crate::error::{ApiError, Result};
use crate::min_tokens::min_tokens;
use crate::request::ChatRequest;
use crate::response_writer::ResponseWriter;
use crate::running::{ChoiceEvents, Frames, Running};
use crate::truncation;

/// Field of a request, and variable of templates.
const DOCUMENTS: &str = "documents";

/// Engine that answers the requests of any API. Requests may run on any number of threads; the engine batches
/// them.
#[derive(Debug, Clone)]
pub struct ChatEngine {
    engine: Engine,
    config: ConversationConfig,
}

impl ChatEngine {
    /// Creates it. `config` has the values of absent fields; its preface is not used.
    pub fn new(engine: Engine, config: ConversationConfig) -> Self {
        Self { engine, config }
    }

    /// Starts a request: renders its prompt, compiles its grammar and submits its choices. Async code calls
    /// it on a thread that may block, and then awaits what it returns.
    ///
    /// `writer` creates the writer of the response from the request and the name of the model: that of the
    /// request, or else the engine's.
    ///
    /// # Errors
    /// When the request is invalid for the model, or the engine has no place for it.
    pub fn start<W: ResponseWriter>(
        &self,
        mut request: ChatRequest,
        writer: impl FnOnce(&ChatRequest, &str) -> W,
    ) -> Result<Running<W>> {
        self.check_documents(&request)?;
        let truncated = if request.truncates { self.truncate(&mut request)? } else { 0 };
        // Before the turns: a writer that measures the time of the response includes theirs.
        let writer = writer(&request, request.model.as_deref().unwrap_or(self.engine.name()));
        let cancel = request.turn.cancel.child();
        let turn = |choice| {
            let mut options = TurnOptions { cancel: cancel.clone(), ..request.turn.clone() };
            let mut conversation = self.conversation(&request, choice)?;
            if request.reasons && conversation.switches_thinking() {
                options.thinking.mode = ThinkingMode::On;
            }
            if request.may_ignore_thinking && !conversation.has_reasoning_channel() {
                options.thinking = ThinkingConfig::default();
            }
            let turn = match request.continues {
                true => conversation.continue_reply(options)?,
                false => conversation.stream(request.last.clone(), options)?,
            };
            Ok(ChoiceEvents::Turn(Box::new(turn.into_stream())))
        };
        let turns = (0..request.choices).map(turn).collect::<lm_conversation::Result<Vec<_>>>();
        let turns = turns.map_err(|error| request.api_error(&error))?;
        Ok(Running::new(request, writer, turns, cancel).truncated(truncated))
    }

    /// Drops the oldest messages if the conversation does not fit the context; returns their number.
    fn truncate(&self, request: &mut ChatRequest) -> Result<usize> {
        let context = self.engine.context_tokens();
        let count = |request: &ChatRequest| Ok(self.render(request)?.ids.len());
        let dropped = truncation::truncate(request, context, self.engine.tokenizer(), count)?;
        if dropped > 0 {
            tracing::warn!(
                dropped,
                context,
                "the oldest messages were left out: they do not fit the context"
            );
        }
        Ok(dropped)
    }

    /// Refuses documents that the template does not show.
    fn check_documents(&self, request: &ChatRequest) -> Result<()> {
        let documents = request.preface.extra_context.get(DOCUMENTS).and_then(Value::as_array);
        let are_shown = || self.template().is_some_and(|source| source.contains(DOCUMENTS));
        if documents.is_none_or(Vec::is_empty) || are_shown() {
            return Ok(());
        }
        let model = self.engine.name();
        Err(ApiError::invalid_param(
            DOCUMENTS,
            format!("the chat template of `{model}` shows no `documents`: put their text into a message"),
        ))
    }

    /// Starts the completion of prompts without messages, as [`start`](Self::start).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn complete(&self, request: CompletionRequest) -> Result<Running<TextWriter>> {
        self.continue_texts(request, |request, model, prompts| {
            TextWriter::new(request, model, prompts, self.engine.tokenizer())
        })
    }

    /// Starts the continuation of a text, as [`start`](Self::start).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn continue_text<W: ResponseWriter>(
        &self,
        request: CompletionRequest,
        writer: impl FnOnce(&ChatRequest, &str) -> W,
    ) -> Result<Running<W>> {
        self.continue_texts(request, |request, model, _| writer(&request.options, model))
    }

    fn continue_texts<W: ResponseWriter>(
        &self,
        mut request: CompletionRequest,
        writer: impl FnOnce(&CompletionRequest, &str, &[Vec<TokenId>]) -> W,
    ) -> Result<Running<W>> {
        let prompts = request.ids(&self.engine)?;
        request.options.stop_ids.extend(request.ends(&self.engine));
        let options = &request.options;
        let constraint = request.constraint(&self.engine)?;
        let cancel = options.turn.cancel.child();
        let text = |choice: usize| {
            let (prompt, choice) = (choice / request.per_prompt(), choice % request.per_prompt());
            let params = GenerateParams {
                constraint: constraint.as_ref().map(CompiledConstraint::start),
                cancel: cancel.clone(),
                deadline: options.turn.deadline,
                logprobs: options.turn.logprobs,
                prompt_logprobs: options.turn.prompt_logprobs,
                ..GenerateParams::default()
            };
            let config = self.config(options, choice).session;
            let text = TextStream::start(&self.engine, config, prompts[prompt].clone(), params);
            text.map(|text| ChoiceEvents::Text(Box::new(text))).map_err(|error| options.api_error(&error))
        };
        let texts = (0..options.choices).map(text).collect::<Result<Vec<_>>>()?;
        let model = options.model.as_deref().unwrap_or(self.engine.name());
        let writer = writer(&request, model, &prompts);
        Ok(Running::new(request.options, writer, texts, cancel))
    }

    /// Renders the prompt of a request, and counts its tokens.
    ///
    /// # Errors
    /// When the request is invalid for the model.
    pub fn render(&self, request: &ChatRequest) -> Result<RenderedPrompt> {
        let rendered = self.conversation(request, 0);
        let rendered = rendered.and_then(|it| match request.continues {
            true => it.render_reply(),
            false => it.render(request.last.clone(), GenerationPrompt::Add),
        });
        rendered.map_err(|error| request.api_error(&error))
    }

    /// Counts the tokens of the prompt that a request runs with: without the messages that are left out
    /// ([`ChatRequest::truncates`]).
    ///
    /// # Errors
    /// When the request is invalid for the model.
    pub fn prompt_tokens(&self, mut request: ChatRequest) -> Result<usize> {
        if request.truncates {
            self.truncate(&mut request)?;
        }
        Ok(self.render(&request)?.ids.len())
    }

    /// Returns true if the model has tokens for a text between two others, the `suffix` of completions.
    pub fn infills(&self) -> bool {
        Infilling::of(self.engine.tokenizer()).is_some()
    }

    /// Source of the chat template of requests without tools; `None` if the model has none.
    pub fn template(&self) -> Option<String> {
        let own = self.config.template.as_ref().map(|template| template.source().to_owned());
        own.or_else(|| {
            let files = self.engine.chat_template()?;
            let template = ChatTemplates::from_files(files.iter()).ok()?.get(TemplateChoice::Default).ok()?;
            Some(template.source().to_owned())
        })
    }

    /// Values of the fields that a request leaves out.
    pub fn defaults(&self) -> &ConversationConfig {
        &self.config
    }

    /// Returns true if the model's template can switch its reasoning on and off.
    pub fn thinks(&self) -> bool {
        Conversation::new(&self.engine, self.config.clone()).is_ok_and(|it| it.switches_thinking())
    }

    fn conversation(&self, request: &ChatRequest, choice: usize) -> lm_conversation::Result<Conversation> {
        let mut conversation = Conversation::new(&self.engine, self.config(request, choice))?;
        if request.continues {
            conversation.set_history(vec![request.last.clone()]);
        }
        Ok(conversation)
    }

    fn config(&self, request: &ChatRequest, choice: usize) -> ConversationConfig {
        let mut config = request.config(&self.config, choice);
        config.call_ids = CallIdForm::Random;
        let ends = self.engine.tokenizer().end_ids().iter();
        let ends = ends.chain(&self.engine.generation_config().eos_token_ids).copied();
        let sampler = &mut config.session.sampler;
        if request.ignores_end {
            sampler.logit_bias.extend(ends.map(|id| (id, f32::NEG_INFINITY)));
        } else if request.min_output_tokens > 0 {
            let ends = ends.chain(config.session.stop_ids.iter().copied()).collect();
            sampler.filters.push(min_tokens(request.min_output_tokens, ends));
        }
        config
    }
}

/// Chat completions on an engine. Requests may run on any number of threads; the engine batches them.
///
/// ```
/// use lm_api::{ChatCompletions, ChatRequest, ConversationConfig};
/// use serde_json::json;
///
/// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
/// # let template = lm_conversation::PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}").expect("compiles");
/// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::from_engine(&engine) };
/// // In a program: `Engine::load(..)`, and `ConversationConfig::from_engine(&engine)`.
/// let completions = ChatCompletions::new(engine, config);
/// let request = ChatRequest::from_json(json!({"messages": [{"role": "user", "content": "Hi."}]}))?;
/// let object = completions.complete(request)?;
/// assert_eq!(object["choices"][0]["message"]["content"], "Hello!");
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatCompletions(ChatEngine);

/// A chat completion that runs.
pub type RunningCompletion = Running<ChunkWriter>;

impl ChatCompletions {
    /// Creates completions on an engine. `config` has the values of absent fields; its preface is not used.
    pub fn new(engine: Engine, config: ConversationConfig) -> Self {
        Self(ChatEngine::new(engine, config))
    }

    /// Answers a request with a completion object; it blocks. Its choices run concurrently.
    ///
    /// # Errors
    /// When the request is invalid for the model, or its execution fails.
    pub fn complete(&self, request: ChatRequest) -> Result<Value> {
        self.start(request)?.wait()
    }

    /// Answers a request with an iterator over the frames of the response, whose data are chunks.
    ///
    /// # Errors
    /// When the request is invalid for the model.
    pub fn stream(&self, request: ChatRequest) -> Result<Frames<ChunkWriter>> {
        Ok(self.start(request)?.frames())
    }

    /// Starts a request, as [`ChatEngine::start`].
    ///
    /// # Errors
    /// As [`ChatEngine::start`].
    pub fn start(&self, request: ChatRequest) -> Result<RunningCompletion> {
        self.0.start(request, ChunkWriter::for_request)
    }
}
