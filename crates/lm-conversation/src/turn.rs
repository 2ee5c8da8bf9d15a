//! Turn: an iterator, or a stream, over the events of a reply.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use lm_session::{CancelHandle, Generation, GenerationStream};

use crate::error::{Error, Result};
use crate::event::{ConversationEvent, Reply};
use crate::turn_progress::{Progress, TurnSetup};

/// A running turn: an iterator over the events of the reply, as they arrive.
///
/// The turn is owned: it may be read on another thread than the conversation's. The last item is
/// [`ConversationEvent::Finished`], which adds the turn to the history, or an error, after which the
/// conversation is as before the turn. Dropping the turn before that cancels it; so does every call that
/// changes the conversation. [`Turn::detach`] runs it to its end in the background.
///
/// ```
/// use lm_conversation::{Conversation, ConversationConfig, ConversationEvent, PromptTemplate, TurnOptions};
///
/// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
/// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
/// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
/// let mut conversation = Conversation::new(&engine, config)?;
/// let turn = conversation.stream("Hi.", TurnOptions::default())?;
/// let canceller = turn.canceller(); // Cancels this turn from any thread.
/// let reader = std::thread::spawn(move || turn.into_reply());
/// let reply = reader.join().expect("no panic")?;
/// assert_eq!(reply.text(), "Hello!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    pub(crate) progress: Progress,
    /// `None` after the last event of the generation.
    generation: Option<Generation>,
}

/// A [`Turn`] as a [`Stream`] for async tasks; see [`Turn::into_stream`].
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct TurnStream {
    progress: Progress,
    generation: Option<GenerationStream>,
}

impl Turn {
    pub(crate) fn new(setup: TurnSetup, generation: Generation) -> Self {
        Self { progress: Progress::new(setup), generation: Some(generation) }
    }

    /// Returns the handle that cancels this turn alone, from any thread.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// use lm_conversation::{Error, TurnOptions};
    ///
    /// # let engine = lm_session::testing::scripted_engine(["and ".repeat(1_000), "Hello!".to_owned()]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let mut conversation = Conversation::new(&engine, config)?;
    /// let turn = conversation.stream("Count to a million.", TurnOptions::default())?;
    /// let canceller = turn.canceller();
    /// let stop = std::thread::spawn(move || canceller.cancel()); // A button, a signal, a timer.
    /// assert!(matches!(turn.into_reply(), Err(Error::Cancelled)));
    /// # stop.join().expect("no panic");
    /// assert!(conversation.history().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn canceller(&self) -> CancelHandle {
        self.progress.canceller()
    }

    /// Reads all events and returns the reply.
    ///
    /// # Errors
    /// The turn's error.
    pub fn into_reply(mut self) -> Result<Reply> {
        loop {
            if let ConversationEvent::Finished(reply) = self.next().ok_or(Error::Cancelled)?? {
                return Ok(reply);
            }
        }
    }

    /// Converts the iterator to a stream for async tasks. It needs no runtime.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// use futures_util::StreamExt;
    /// use lm_conversation::{ConversationEvent, TurnOptions};
    ///
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let mut conversation = Conversation::new(&engine, config)?;
    /// # futures_executor::block_on(async {
    /// let mut turn = conversation.stream("Hi.", TurnOptions::default())?.into_stream();
    /// while let Some(event) = turn.next().await {
    ///     if let ConversationEvent::Text(text) = event? {
    ///         print!("{text}");
    ///     }
    /// }
    /// # Ok::<(), lm_conversation::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A handler of the web framework axum. When the client disconnects, axum drops the body, which cancels
    /// the turn:
    ///
    /// ```
    /// use axum::body::Body;
    /// use axum::{Router, extract::State, response::Response, routing::post};
    /// use futures_util::StreamExt;
    /// use lm_conversation::{Conversation, ConversationConfig, ConversationEvent, Engine, TurnOptions};
    ///
    /// async fn chat(State(engine): State<Engine>, message: String) -> Result<Response, String> {
    ///     let conversation = Conversation::new(&engine, config());
    ///     let turn = conversation.and_then(|mut chat| chat.stream(&*message, TurnOptions::default()));
    ///     let events = turn.map_err(|error| error.to_string())?.into_stream();
    ///     let text = events.filter_map(async |event| match event {
    ///         Ok(ConversationEvent::Text(text)) => Some(Ok(text)),
    ///         Ok(_) => None,
    ///         Err(error) => Some(Err(error)),
    ///     });
    ///     Ok(Response::new(Body::from_stream(text)))
    /// }
    ///
    /// # fn config() -> ConversationConfig {
    /// #     let template = "{% for m in messages %}{{ m.content }}\n{% endfor %}";
    /// #     let template = Some(lm_conversation::PromptTemplate::new(template).expect("a template"));
    /// #     ConversationConfig { template, ..ConversationConfig::default() }
    /// # }
    /// # let engine = lm_session::testing::scripted_engine(["and ".repeat(1_000)]);
    /// let app: Router = Router::new().route("/chat", post(chat)).with_state(engine.clone());
    /// # let _ = app;
    /// # futures_executor::block_on(async {
    /// # let response = chat(State(engine.clone()), "Count to a million.".to_owned()).await?;
    /// # let mut body = response.into_body().into_data_stream();
    /// # assert!(body.next().await.is_some_and(|text| text.is_ok()));
    /// # let held = || engine.cache_stats().map(|stats| stats.total_pages - stats.free_pages).unwrap();
    /// # assert!(held() > 0);
    /// # drop(body); // The client is gone.
    /// # let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    /// # while held() > 0 { assert!(std::time::Instant::now() < until, "the turn goes on") }
    /// # Ok::<(), String>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_stream(self) -> TurnStream {
        TurnStream { progress: self.progress, generation: self.generation.map(Generation::into_stream) }
    }
}

impl Iterator for Turn {
    type Item = Result<ConversationEvent>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.progress.take_ready() {
                return item;
            }
            let event = self.generation.as_mut().and_then(Iterator::next);
            if let Some(generation) = self.progress.advance(event) {
                self.generation = generation;
            }
        }
    }
}

impl std::iter::FusedIterator for Turn {}

impl TurnStream {
    /// Returns the handle that cancels this turn alone, from any thread.
    pub fn canceller(&self) -> CancelHandle {
        self.progress.canceller()
    }
}

impl Stream for TurnStream {
    type Item = Result<ConversationEvent>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { progress, generation } = self.get_mut();
        loop {
            if let Some(item) = progress.take_ready() {
                return Poll::Ready(item);
            }
            let event = match generation {
                Some(generation) => ready!(Pin::new(generation).poll_next(context)),
                None => None,
            };
            if let Some(next) = progress.advance(event) {
                *generation = next.map(Generation::into_stream);
            }
        }
    }
}
