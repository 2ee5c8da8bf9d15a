//! Request body.

use lm_conversation::{
    Calls, ConversationConfig, ModelDataProcessor, ResponseFormat, ThinkingConfig, ThinkingMode, ToolChoice,
    TurnOptions,
};
use lm_processors::{ALL as FAMILIES, by_name};
use lm_session::{Engine, TokenId};
use lm_template::{Message, Preface, ToolSpec};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Refusal;

type Result<T> = std::result::Result<T, Refusal>;

/// A request, ready to run: the conversation before its last message, that message, and the turn's options.
#[derive(Debug)]
pub struct Request {
    /// Model name of the response: the request's own, otherwise the engine's.
    pub model: String,
    pub config: ConversationConfig,
    pub last: Message,
    pub turn: TurnOptions,
}

impl Request {
    /// Parses the body of a chat completion. Absent fields have the model's recommended values.
    pub fn read(body: Map<String, Value>, engine: &Engine) -> Result<Self> {
        let mut fields = Fields(body);
        fields.refuse_what_is_missing_here()?;
        let mut messages: Vec<Message> = fields.required("messages")?;
        let Some(last) = messages.pop() else {
            return Err(Refusal::field("messages", "`messages` is empty, expected at least one message"));
        };
        let preface = Preface {
            messages,
            tools: fields.get::<Vec<ToolSpec>>("tools")?.unwrap_or_default(),
            extra_context: fields.get("chat_template_kwargs")?.unwrap_or_default(),
        };
        let mut config = ConversationConfig::from_engine(engine).with_preface(preface);
        config.session.adapter = crate::model::adapter(engine.model_info());
        fields.sampler(&mut config)?;
        config.session.max_output_tokens = fields.max_tokens()?;
        config.session.stop = fields.get::<OneOrMany>("stop")?.map(OneOrMany::into_vec).unwrap_or_default();
        config.processor = fields.dialect()?;
        let turn = TurnOptions {
            tool_choice: fields.tool_choice(&config.preface.tools)?,
            calls: if fields.get("parallel_tool_calls")? == Some(false) {
                Calls::One
            } else {
                Calls::Several
            },
            response_format: fields.response_format()?,
            thinking: fields.thinking()?,
            ..TurnOptions::default()
        };
        let model = fields.get("model")?.unwrap_or_else(|| engine.name().to_owned());
        Ok(Self { model, config, last, turn })
    }
}

/// Fields of a body, by name.
struct Fields(Map<String, Value>);

impl Fields {
    /// Takes a field, if it is present and not null.
    fn get<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>> {
        let value = self.0.remove(name).filter(|value| !value.is_null());
        let read = |value| serde_json::from_value(value);
        value.map(read).transpose().map_err(|error| Refusal::field(name, format!("`{name}`: {error}")))
    }

    fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let missing = || Refusal::field(name, format!("`{name}` is missing"));
        self.get(name)?.ok_or_else(missing)
    }

    fn sampler(&mut self, config: &mut ConversationConfig) -> Result<()> {
        let sampler = &mut config.session.sampler;
        for (name, field) in [
            ("temperature", &mut sampler.temperature),
            ("top_p", &mut sampler.top_p),
            ("min_p", &mut sampler.min_p),
            ("repetition_penalty", &mut sampler.repetition_penalty),
            ("presence_penalty", &mut sampler.presence_penalty),
            ("frequency_penalty", &mut sampler.frequency_penalty),
        ] {
            *field = self.get(name)?.unwrap_or(*field);
        }
        sampler.top_k = self.get("top_k")?.unwrap_or(sampler.top_k);
        sampler.seed = self.get::<i64>("seed")?.map_or(sampler.seed, i64::cast_unsigned);
        for (token, bias) in self.get::<Map<String, Value>>("logit_bias")?.unwrap_or_default() {
            let pair = token.parse::<TokenId>().ok().zip(bias.as_f64());
            let (token, bias) = pair.ok_or_else(|| {
                Refusal::field(
                    "logit_bias",
                    format!("`logit_bias`: `{token}`: {bias} is no token id and a number"),
                )
            })?;
            sampler.logit_bias.push((token, bias as f32));
        }
        Ok(())
    }

    /// Token limit: `max_completion_tokens`, otherwise the older `max_tokens`.
    fn max_tokens(&mut self) -> Result<Option<usize>> {
        let (new, old) = (self.get("max_completion_tokens")?, self.get("max_tokens")?);
        match new.or(old) {
            Some(0) => Err(Refusal::field("max_tokens", "`max_tokens` is 0, expected at least 1")),
            limit => Ok(limit),
        }
    }

    /// `auto`, `required`, `none`, or the name of the tool that must be called.
    fn tool_choice(&mut self, tools: &[ToolSpec]) -> Result<ToolChoice> {
        let wrong = |got: &Value| {
            let expected = r#""auto", "required", "none" or {"type": "function", "function": {"name": …}}"#;
            Refusal::field("tool_choice", format!("`tool_choice` is {got}, expected {expected}"))
        };
        let choice = match self.get::<Value>("tool_choice")? {
            None => ToolChoice::Auto,
            Some(Value::String(word)) => match word.as_str() {
                "auto" => ToolChoice::Auto,
                "required" => ToolChoice::Required,
                "none" => ToolChoice::None,
                _ => return Err(wrong(&word.into())),
            },
            Some(named) => {
                let name = named["function"]["name"].as_str().or(named["name"].as_str());
                ToolChoice::Named(name.ok_or_else(|| wrong(&named))?.to_owned())
            }
        };
        let must_call = matches!(choice, ToolChoice::Required | ToolChoice::Named(_));
        if must_call && tools.is_empty() {
            return Err(Refusal::field("tool_choice", "a tool call is required, but `tools` is empty"));
        }
        Ok(choice)
    }

    fn response_format(&mut self) -> Result<Option<ResponseFormat>> {
        let Some(format) = self.get::<Value>("response_format")? else { return Ok(None) };
        match format["type"].as_str() {
            Some("text") => Ok(None),
            Some("json_object") => Ok(Some(ResponseFormat::JsonObject)),
            Some("json_schema") => match format["json_schema"].get("schema") {
                Some(schema) => Ok(Some(ResponseFormat::JsonSchema(schema.clone()))),
                None => Err(Refusal::field("response_format.json_schema", "`schema` is missing")),
            },
            _ => {
                let expected = r#"expected a `type` of "text", "json_object" or "json_schema""#;
                Err(Refusal::field("response_format", format!("`response_format` is {format}, {expected}")))
            }
        }
    }

    /// Effort `none` turns thinking off; every other effort leaves it to the model.
    fn thinking(&mut self) -> Result<ThinkingConfig> {
        let mode = match self.get::<String>("reasoning_effort")?.as_deref() {
            Some("none") => ThinkingMode::Off,
            _ => ThinkingMode::Default,
        };
        Ok(ThinkingConfig { mode, max_tokens: self.get("max_reasoning_tokens")? })
    }

    /// Dialect named by `format`.
    fn dialect(&mut self) -> Result<Option<&'static dyn ModelDataProcessor>> {
        let Some(name) = self.get::<String>("format")? else { return Ok(None) };
        let unknown = || {
            let known: Vec<_> = FAMILIES.iter().map(|family| family.processor.name()).collect();
            Refusal::field("format", format!("`format` is `{name}`, known are {}", known.join(", ")))
        };
        by_name(&name).ok_or_else(unknown).map(Some)
    }

    /// Rejects fields that a single completion object cannot satisfy; ignoring them would give a wrong response.
    fn refuse_what_is_missing_here(&mut self) -> Result<()> {
        let refuse = |name: &str, only: &str| {
            Err(Refusal::field(name, format!("`{name}` is not supported here; only {only} is")))
        };
        if self.get::<u64>("n")?.is_some_and(|n| n != 1) {
            return refuse("n", "1");
        }
        for name in ["stream", "logprobs"] {
            if self.get::<bool>(name)? == Some(true) {
                return refuse(name, "false");
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}
