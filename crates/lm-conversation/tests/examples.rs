//! The examples run, and say what they should.

use std::io::Cursor;

#[allow(dead_code)] // Its `main` prints.
#[path = "../examples/tool_loop_async.rs"]
mod tool_loop_async;

use tool_loop_async::tool_loop;

const ANSWERS: &str = "The weather in Paris is sunny with a temperature of 72°F and humidity of 50%.\n\
    The stock price of GOOGL is 173.25 USD.\n";

#[test]
fn manual_loops_answer_until_an_empty_line() {
    let input = "How is the weather in Paris?\nWhat is the stock price of GOOGL?\n\nNot asked.\n";
    let mut output = Vec::new();
    tool_loop::chat(Cursor::new(input), &mut output).expect("two answers");
    assert_eq!(String::from_utf8_lossy(&output), ANSWERS);
}

#[test]
fn manual_loops_run_with_streamed_replies() {
    let questions = ["How is the weather in Paris?", "What is the stock price of GOOGL?"];
    let mut output = Vec::new();
    futures_executor::block_on(tool_loop_async::chat(&questions, &mut output)).expect("two answers");
    assert_eq!(String::from_utf8_lossy(&output), ANSWERS);
}
