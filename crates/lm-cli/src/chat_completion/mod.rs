//! OpenAI's chat completion API: from a request body to a turn, from a reply to a response body.

mod answer;
mod request;

use lm_conversation::Conversation;
use lm_session::Engine;
use serde_json::{Map, Value};

pub use answer::{Refusal, completion};
pub use request::Request;

/// Answers one request body; errors have the form of the API: `{"error": {…}}`.
pub fn answer(engine: &Engine, body: Map<String, Value>) -> Value {
    let answered = Request::read(body, engine).and_then(|request| run(engine, request));
    answered.unwrap_or_else(|refusal| refusal.to_json())
}

fn run(engine: &Engine, request: Request) -> Result<Value, Refusal> {
    let mut conversation = Conversation::new(engine, request.config)?;
    let reply = conversation.send_with(request.last, request.turn)?;
    Ok(completion(&request.model, &reply))
}
