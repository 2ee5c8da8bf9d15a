//! Replies of a model by the chat completions of `lm serve`, or of llama.cpp's server.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cases::Call;
use super::llama_cpp::LlamaServer;
use crate::load::{Connection, Lm, Server};

/// Maximum number of tokens of a reply.
const MAX_TOKENS: usize = 400;

/// A program that serves models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Lm,
    LlamaCpp,
}

/// A running server of one model.
pub struct Service {
    pub program: Program,
    addr: String,
    _server: Running,
}

/// The process, which ends with it.
enum Running {
    Lm { _server: Server },
    LlamaCpp { _server: LlamaServer },
}

/// A reply, as far as it is measured.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<Call>,
    pub finish: String,
    /// Probability that a constraint's mask removed at the first token.
    pub removed: Option<f64>,
}

impl Service {
    /// Starts `lm serve` with these options.
    pub fn start(model: &Path, options: &[&str]) -> Result<Self> {
        let lm = Lm { model: Some(model.to_owned()), ..Lm::default() };
        let server = Server::start(&lm, options)?;
        let addr = server.addr.clone();
        Ok(Self { program: Program::Lm, addr, _server: Running::Lm { _server: server } })
    }

    /// Starts llama.cpp's server.
    pub fn start_llama_cpp(program: &Path, model: &Path) -> Result<Self> {
        let server = LlamaServer::start(program, model)?;
        let addr = server.addr.clone();
        Ok(Self { program: Program::LlamaCpp, addr, _server: Running::LlamaCpp { _server: server } })
    }

    /// Sends a request, greedy and with a limit of tokens, whole or streamed. A refused request is an error.
    pub fn reply(&self, mut request: Value, streamed: bool) -> Result<Reply> {
        request["temperature"] = 0.into();
        request["max_tokens"] = MAX_TOKENS.into();
        if streamed {
            request["stream"] = true.into();
        }
        let mut connection = Connection::open(&self.addr)?;
        let head = connection.post("/v1/chat/completions", &request.to_string())?;
        if head.status != 200 {
            let body = connection.body(&head)?;
            anyhow::bail!("status {}: {body}", head.status);
        }
        if !streamed {
            let body: Value = serde_json::from_str(&connection.body(&head)?)?;
            let choice = &body["choices"][0];
            let mut reply = Reply::default();
            reply.add(&choice["message"])?;
            reply.finish = choice["finish_reason"].as_str().unwrap_or_default().to_owned();
            reply.removed = body["timings"]["masked"]["first_token"].as_f64();
            return Ok(reply);
        }
        let mut message = json!({"content": "", "reasoning_content": "", "tool_calls": []});
        let mut finish = String::new();
        while let Some(data) = connection.event()?.filter(|data| *data != "[DONE]") {
            let chunk: Value = serde_json::from_str(data)?;
            ensure!(chunk["error"].is_null(), "the stream failed: {}", chunk["error"]);
            let choice = &chunk["choices"][0];
            add_delta(&mut message, &choice["delta"]);
            finish += choice["finish_reason"].as_str().unwrap_or_default();
        }
        let mut reply = Reply { finish, ..Reply::default() };
        // Without its end a call is not one.
        if reply.finish == "length" {
            message["tool_calls"] = json!([]);
        }
        reply.add(&message)?;
        Ok(reply)
    }
}

impl Reply {
    fn add(&mut self, message: &Value) -> Result<()> {
        self.text = message["content"].as_str().unwrap_or_default().to_owned();
        self.reasoning = message["reasoning_content"].as_str().unwrap_or_default().to_owned();
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let name = function["name"].as_str().context("a call without a name")?.to_owned();
            let arguments = function["arguments"].as_str().unwrap_or_default();
            let arguments = serde_json::from_str(arguments).context("arguments that are not JSON")?;
            self.calls.push(Call { name, arguments });
        }
        Ok(())
    }

    /// Returns true if two of the calls are identical.
    pub fn repeats_a_call(&self) -> bool {
        self.calls.iter().enumerate().any(|(at, call)| self.calls[..at].contains(call))
    }
}

/// Adds a chunk of a stream to the message, as clients do.
fn add_delta(message: &mut Value, delta: &Value) {
    for key in ["content", "reasoning_content"] {
        if let Some(more) = delta[key].as_str() {
            message[key] = format!("{}{more}", message[key].as_str().unwrap_or_default()).into();
        }
    }
    for part in delta["tool_calls"].as_array().into_iter().flatten() {
        let index = part["index"].as_u64().unwrap_or_default() as usize;
        let Some(calls) = message["tool_calls"].as_array_mut() else { return };
        while calls.len() <= index {
            calls.push(json!({"function": {"name": "", "arguments": ""}}));
        }
        for key in ["name", "arguments"] {
            if let Some(more) = part["function"][key].as_str() {
                let known = calls[index]["function"][key].as_str().unwrap_or_default();
                calls[index]["function"][key] = format!("{known}{more}").into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_add_up_to_a_message() {
        let mut message = json!({"content": "", "reasoning_content": "", "tool_calls": []});
        for delta in [
            json!({"content": "It"}),
            json!({"content": " is."}),
            json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":"}}]}),
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
        ] {
            add_delta(&mut message, &delta);
        }
        let mut reply = Reply::default();
        reply.add(&message).expect("a message");
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("It is.", 1));
        assert_eq!(reply.calls[0], Call { name: "f".to_owned(), arguments: json!({"a": 1}) });
        assert!(!reply.repeats_a_call());
    }
}
