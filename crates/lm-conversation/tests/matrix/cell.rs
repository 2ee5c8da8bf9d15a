//! One cell of the matrix: a turn and its outcome.

use std::sync::LazyLock;

use lm_conversation::{
    Conversation, ConversationConfig, ConversationEvent, CutCalls, Error, Polyfills, Preface, PromptTemplate,
    Reply, SamplerParams, SessionConfig, ToolChoice, ToolSpec, TurnOptions, Value,
};
use lm_processors::Family;
use serde_json::json;

use crate::matrix::model::Opened;
use crate::matrix::outcome::{Outcome, Refusal};
use crate::matrix::wanted;

/// Token limits of a reply; without a limit, the context is the bound.
const BUDGETS: [Option<usize>; 4] = [Some(64), Some(300), Some(1_000), None];
const TOOL: &str = "lookup";

/// Parameters of a tool.
pub struct Schema {
    pub name: String,
    pub parameters: Value,
}

/// Coordinates of a cell on the axes that do not need another engine.
pub struct Axes<'a> {
    pub schema: &'a Schema,
    pub budget: Option<usize>,
    pub choice: ToolChoice,
}

impl<'a> Axes<'a> {
    /// All combinations.
    pub fn all(schemas: &'a [Schema]) -> impl Iterator<Item = Self> {
        schemas.iter().flat_map(|schema| {
            BUDGETS.into_iter().flat_map(move |budget| {
                let choices = [ToolChoice::Auto, ToolChoice::Required];
                choices.into_iter().map(move |choice| Self { schema, budget, choice })
            })
        })
    }

    /// Returns true if the environment variables select it.
    pub fn wanted(&self) -> bool {
        wanted("LM_SCHEMA", &self.schema.name)
            && wanted("LM_CHOICE", self.choice_name())
            && wanted("LM_BUDGET", &self.budget.map_or("none".to_owned(), |budget| budget.to_string()))
    }

    pub fn choice_name(&self) -> &'static str {
        if self.choice == ToolChoice::Auto { "auto" } else { "required" }
    }

    /// A seed that differs from cell to cell.
    fn seed(&self) -> u64 {
        let bytes =
            self.schema.name.bytes().chain([self.budget.unwrap_or(1) as u8, self.choice_name().len() as u8]);
        bytes.fold(14_695_981_039_346_656_037, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
        })
    }
}

static TEMPLATE: LazyLock<PromptTemplate> = LazyLock::new(|| {
    let source = "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}{% endif %}";
    PromptTemplate::new(source).expect("the template compiles")
});

/// Runs a cell.
pub fn run(opened: &Opened, family: &Family, axes: &Axes<'_>) -> Outcome {
    let reply = turn(opened, family, axes, axes.budget, &axes.choice);
    let reply = match reply {
        Ok(reply) => reply,
        Err(refusal) => return refused(opened, family, axes, refusal),
    };
    if !reply.tool_calls().is_empty() {
        return Outcome::of_calls(&axes.schema.parameters, &reply);
    }
    if axes.choice != ToolChoice::Auto {
        return Outcome::Wrong(format!("no call under `required`: {:?}", reply.text()));
    }
    // The model began a call. Text in its place is correct only if no call fits behind its first tokens: they
    // may be more than a shortest call begins with, as its marker ends in a token of what follows.
    let budget = axes.budget.map(|budget| budget.saturating_sub(opened.opener_len()));
    match turn(opened, family, axes, budget, &ToolChoice::Required) {
        Ok(_) => Outcome::Wrong(format!("the tool cannot be called in `auto`: {:?}", reply.text())),
        Err(_) => Outcome::Text,
    }
}

/// Judges a refusal: one for the budget is correct if the number of tokens that it names suffices.
fn refused(opened: &Opened, family: &Family, axes: &Axes<'_>, refusal: Refusal) -> Outcome {
    let needed = match refusal {
        Refusal::Budget { needed, available } if needed > available => needed,
        Refusal::Budget { .. } => return Outcome::Wrong(format!("refused for too little: {refusal:?}")),
        Refusal::Schema(message) => return Outcome::RefusedSchema(message),
        Refusal::Unfit(message) => return Outcome::Unfit(message),
        Refusal::AfterTokens(message) => return Outcome::Wrong(message),
    };
    match turn(&opened.longer(), family, axes, Some(needed), &axes.choice) {
        Ok(_) => Outcome::RefusedBudget,
        // The shortest call violates a keyword without a grammar; with more room there is another one.
        Err(Refusal::Unfit(message)) => {
            match turn(&opened.longer(), family, axes, Some(4 * needed), &axes.choice) {
                Ok(_) => Outcome::RefusedBudget,
                Err(_) => Outcome::Unfit(message),
            }
        }
        Err(again) => Outcome::Wrong(format!("{needed} tokens do not suffice: {again:?}")),
    }
}

/// Runs one turn.
fn turn(
    opened: &Opened,
    family: &Family,
    axes: &Axes<'_>,
    budget: Option<usize>,
    choice: &ToolChoice,
) -> Result<Reply, Refusal> {
    let mut conversation = conversation(opened, family, &axes.schema.parameters);
    let prompt = "go";
    let prompt_len = opened.engine.tokenizer().encode(prompt).expect("a prompt").len();
    opened.begin_with_call(prompt_len, *choice == ToolChoice::Auto);
    let options = TurnOptions {
        sampler: Some(SamplerParams {
            temperature: 1.0,
            seed: Some(axes.seed()),
            ..SamplerParams::default()
        }),
        max_output_tokens: budget,
        tool_choice: choice.clone(),
        // Their validity is that of the grammar's completions.
        cut_calls: CutCalls::Complete,
        ..TurnOptions::default()
    };
    let stream = conversation.stream(prompt, options).map_err(Refusal::before_tokens)?;
    let mut reply = Err(Refusal::AfterTokens("the turn has no end".to_owned()));
    for event in stream {
        match event {
            Ok(ConversationEvent::Finished(finished)) => reply = Ok(finished),
            Ok(_) => {}
            Err(error) => return Err(Refusal::in_reply(error)),
        }
    }
    reply
}

fn conversation(opened: &Opened, family: &Family, parameters: &Value) -> Conversation {
    let tool = json!({"name": TOOL, "description": "Looks something up.", "parameters": parameters});
    let tool = ToolSpec::from_json(tool).expect("a tool");
    let config = ConversationConfig {
        preface: Preface { tools: vec![tool], ..Preface::default() },
        session: SessionConfig::default(),
        template: Some(TEMPLATE.clone()),
        polyfills: Polyfills::none(),
        processor: Some(family.processor.into()),
        ..ConversationConfig::default()
    };
    Conversation::new(&opened.engine, config).expect("a conversation")
}

impl Refusal {
    fn before_tokens(error: Error) -> Self {
        use lm_conversation::Error::{Processor, Session};
        use lm_session::Error::{BudgetTooSmall, Grammar};
        match error {
            Session(BudgetTooSmall { needed_tokens, available_tokens }) => {
                Self::Budget { needed: needed_tokens, available: available_tokens }
            }
            Session(Grammar { .. }) | Processor(lm_processors::Error::Schema(_)) => {
                Self::Schema(error.to_string())
            }
            error => Self::AfterTokens(error.to_string()),
        }
    }

    fn in_reply(error: Error) -> Self {
        match error {
            Error::InvalidCall { .. } => Self::Unfit(error.to_string()),
            error => Self::AfterTokens(error.to_string()),
        }
    }
}
