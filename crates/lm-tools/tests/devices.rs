//! A conversation whose text is the same on every device that is compiled in.

use crate::common;
use crate::common::{PARIS_SENTENCE, litert_tools, paris_report};
use lm_model::Device;
use serde_json::{Value, json};

#[test]
fn paris_conversation_is_equal_on_every_device() {
    for &device in Device::available() {
        let engine = common::engine_on(device);
        let mut conversation = common::conversation_on(&engine, common::tools(litert_tools()));

        let call = conversation.send("How is the weather in Paris?").expect("a call").message;
        assert_eq!(call.tool_calls.len(), 1, "{device}: {:?}", call.content);
        assert_eq!(call.tool_calls[0].name, "get_weather", "{device}");
        assert_eq!(
            Value::Object(call.tool_calls[0].arguments.clone()),
            json!({"location": "Paris"}),
            "{device}"
        );

        let result =
            json!({"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": paris_report()});
        let answer = conversation.send(result).expect("an answer").message;
        assert_eq!(answer.content.text(), PARIS_SENTENCE, "{device}");
    }
}
