//! The flow of the LangChain article on tool calling, on the embedded model: a tool, a bound model, its
//! calls, their results by id, an agent. `// Lines …` names the lines of the article to which the code
//! corresponds; its results are asserted, not printed.

use lm_tools::{
    Agent, ConversationConfig, Engine, EngineSettings, LoadOptions, Message, ModelFolder, Toolset,
    invocations, tool,
};

// Lines 43-53: a function and its schema.
/// Multiply a and b.
///
/// Args:
///     a: first int
///     b: second int
#[tool]
fn multiply(a: i64, b: i64) -> i64 {
    a * b
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
    let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;

    // Lines 87-92: the model answers with text, or with calls.
    let tools = Toolset::new().with(multiply::tool())?;
    let mut llm_with_tools = tools.bind(&engine, ConversationConfig::default())?;
    let result = llm_with_tools.invoke("Hello world!")?;
    assert_eq!(result.text(), "Hello! How can I help you?");
    let calls = invocations(&llm_with_tools.invoke("What is 3 times by 2?")?.message);
    assert_eq!(serde_json::to_value(&calls[0].args)?, serde_json::json!({"a": 3, "b": 2}));

    // Lines 109-109, 113-114: a call is executed; model, call and tool as a chain.
    assert_eq!(tools.invoke(&calls[0]).content.text(), "6");
    let mut chain = |text| llm_with_tools.invoke(text).map(|x| tools.invoke(&invocations(&x.message)[0]));
    assert_eq!(chain("What is two times by 43")?.content.text(), "86");

    // Lines 120-131: results go back to the model by the ids of its calls.
    let mut messages = vec![Message::user("What is 3 times by five?")];
    let ai_msg = llm_with_tools.invoke(messages.clone())?.message;
    messages.push(ai_msg.clone());
    for tool_call in invocations(&ai_msg) {
        messages.push(tools.invoke(&tool_call));
    }
    assert_eq!(messages[2].content.text(), "15");
    assert_eq!(llm_with_tools.invoke(messages)?.text(), "3 times 5 is 15.");

    // Lines 152-166: an agent runs the whole loop.
    let mut agent = Agent::builder(&engine, tools).build()?;
    assert_eq!(agent.run("What is 3 times by five?")?.text(), "3 times 5 is 15.");
    Ok(())
}
