//! Events of a text that continues a prompt, in the form of a turn's.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use lm_conversation::{
    ConversationEvent, Error, FinishReason, Finished, Message, Reply, Result, ScoredToken, TokenId,
};
use lm_session::{Engine, GenerateParams, GenerationStream, Session, SessionConfig, SessionEvent, Tokenizer};

/// Stream of the events of one text; the reply's message is the text.
#[derive(Debug)]
pub(crate) struct TextStream {
    /// A generation ends with its session.
    _session: Session,
    generation: GenerationStream,
    tokenizer: Arc<Tokenizer>,
    prompt: Vec<TokenId>,
    text: String,
    ready: VecDeque<ConversationEvent>,
}

impl TextStream {
    /// Starts the text after `prompt`.
    pub(crate) fn start(
        engine: &Engine,
        config: SessionConfig,
        prompt: Vec<TokenId>,
        params: GenerateParams,
    ) -> Result<Self> {
        let mut session = engine.session(config)?;
        let generation = session.submit(&prompt, params)?.into_stream();
        let tokenizer = engine.tokenizer().clone();
        let (text, ready) = (String::new(), VecDeque::new());
        Ok(Self { _session: session, generation, tokenizer, prompt, text, ready })
    }

    fn accept(&mut self, event: SessionEvent) -> Result<()> {
        match event {
            SessionEvent::Prefill(progress) => self.ready.push_back(ConversationEvent::Prefill(progress)),
            SessionEvent::PromptLogprobs(logprobs) => {
                let tokens = self.prompt.iter().skip(1).zip(&logprobs);
                let scored = tokens.map(|(&id, logprobs)| ScoredToken::new(id, logprobs, &self.tokenizer));
                self.ready.push_back(ConversationEvent::PromptLogprobs(scored.collect()));
            }
            SessionEvent::Token { id, text, logprobs, .. } => {
                let scored = logprobs.filter(|_| !self.tokenizer.end_ids().contains(&id));
                let scored = scored.map(|logprobs| ScoredToken::new(id, &logprobs, &self.tokenizer));
                self.ready.extend(scored.map(ConversationEvent::Logprobs));
                self.text += &text;
                self.ready.extend((!text.is_empty()).then_some(ConversationEvent::Text(text)));
            }
            SessionEvent::Finished(finish) => self.finish(finish)?,
        }
        Ok(())
    }

    fn finish(&mut self, finish: Finished) -> Result<()> {
        match finish.reason {
            FinishReason::Cancelled => return Err(Error::Cancelled),
            FinishReason::DeadlineExceeded => return Err(Error::DeadlineExceeded),
            _ => {}
        }
        let message = Message::assistant(std::mem::take(&mut self.text));
        self.ready.push_back(ConversationEvent::Finished(Reply::new(message, finish)));
        Ok(())
    }
}

impl Stream for TextStream {
    type Item = Result<ConversationEvent>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let accepted = match ready!(Pin::new(&mut this.generation).poll_next(context)) {
                Some(event) => event.map_err(Error::from).and_then(|event| this.accept(event)),
                None => return Poll::Ready(None),
            };
            if let Err(error) = accepted {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}
