//! Records of responses: finished, cut off, cancelled; and conversations that they continue.

use lm_api::{
    Choice, Conversations, Limits, ResponseStore, ResponseWriter as _, ResponsesRequest, ResponsesWriter,
    Value,
};
use lm_conversation::{ConversationEvent, FinishReason, Finished, Message, Reply};
use serde_json::json;

fn request(fields: Value, store: &ResponseStore) -> lm_api::Result<ResponsesRequest> {
    let mut body = json!({"input": "Hi."});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    ResponsesRequest::from_json_within(body, store, &Limits::default())
}

fn reply(text: &str, reason: FinishReason) -> Reply {
    let (usage, timing) = Default::default();
    let finish = Finished { reason, usage, timing, seed: None, steered: None, masked: None };
    Reply::new(Message::assistant(text), finish)
}

fn choice(text: &str, reason: FinishReason) -> Choice {
    Choice { reply: reply(text, reason), logprobs: None, prompt_logprobs: Vec::new() }
}

/// Types of the stored items of a response.
fn kinds(store: &ResponseStore, id: &str) -> Vec<String> {
    let stored = store.get(id).expect("it is stored");
    stored.items.iter().map(|item| item["type"].as_str().expect("a type").to_owned()).collect()
}

#[test]
fn call_that_was_cut_off_is_shown_and_not_stored() {
    let custom = json!([{"type": "custom", "name": "write"}, {"type": "function", "name": "write2"}]);
    for (name, kind) in [("write", "custom_tool_call"), ("write2", "function_call")] {
        let store = ResponseStore::default();
        let request = request(json!({"tools": custom}), &store).expect("a request");
        let id = request.id.clone();
        let mut writer = ResponsesWriter::new(request, "m", &store);
        let name = Some(name.to_owned());
        let events = [
            ConversationEvent::Text("I write it.".to_owned()),
            ConversationEvent::ToolCallStarted { index: 0, name, id: None },
            ConversationEvent::ToolCallArguments { index: 0, fragment: "{\"a\": ".to_owned() },
            ConversationEvent::Finished(reply("I write it.", FinishReason::MaxOutputTokens)),
        ];
        let frames: Vec<_> = events.iter().flat_map(|event| writer.frames(0, event)).collect();
        let last = &frames.last().expect("frames").data;
        assert_eq!(last["type"], "response.incomplete");
        let output = &last["response"]["output"];
        assert_eq!(
            (&output[1]["type"], &output[1]["status"]),
            (&json!(kind), &json!("incomplete")),
            "{output}"
        );
        // Its result cannot come, so a later request would not be valid.
        assert_eq!(kinds(&store, &id), ["message", "message"]);
        assert_eq!(store.get(&id).expect("it is stored").object["output"], *output);
    }
}

#[test]
fn cancelled_background_response_stays_cancelled() {
    let store = ResponseStore::default();
    let conversations = Conversations { store: &store, limits: &Limits::default() };
    let conversation = conversations.create(json!({})).expect("a conversation");
    let id = conversation["id"].as_str().expect("an id");
    for is_deleted in [false, true] {
        let fields = json!({"background": true, "conversation": id});
        let request = request(fields, &store).expect("a request");
        let response = request.id.clone();
        let mut writer = ResponsesWriter::new(request, "m", &store);
        assert_eq!(store.get(&response).expect("it is stored").object["status"], "in_progress");
        match is_deleted {
            true => assert!(store.remove(&response)),
            false => store.end(&response, None),
        }
        // Its last tokens came before the engine knew.
        let object = writer.object(&[choice("Hello!", FinishReason::EndToken)]);
        assert_eq!(object["status"], "completed");
        let status = store.get(&response).map(|stored| stored.object["status"].clone());
        assert_eq!(status, (!is_deleted).then(|| json!("cancelled")));
        if !is_deleted {
            assert_eq!(kinds(&store, &response), ["message"], "the input");
        }
        assert_eq!(conversations.items(id).expect("a conversation").len(), 0);
    }
}

#[test]
fn statuses_are_those_of_the_replies_ends() {
    for (reason, status) in [
        (FinishReason::Cancelled, "cancelled"),
        (FinishReason::MaxOutputTokens, "incomplete"),
        (FinishReason::ContextFull, "incomplete"),
        (FinishReason::StopString("x".to_owned()), "completed"),
        (FinishReason::EndToken, "completed"),
    ] {
        let store = ResponseStore::default();
        let request = request(json!({}), &store).expect("a request");
        let id = request.id.clone();
        let object = ResponsesWriter::new(request, "m", &store).object(&[choice("Hello", reason)]);
        assert_eq!(object["status"], status);
        let details =
            if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
        assert_eq!(object["incomplete_details"], details);
        assert_eq!(store.get(&id).expect("it is stored").object, object);
    }
}

#[test]
fn conversation_is_continued_by_one_response_at_a_time() {
    let store = ResponseStore::default();
    let conversations = Conversations { store: &store, limits: &Limits::default() };
    let conversation = conversations.create(json!({})).expect("a conversation");
    let fields = json!({"conversation": {"id": conversation["id"]}});
    let first = request(fields.clone(), &store).expect("a request");
    let locked = request(fields.clone(), &store).expect_err("another one runs");
    assert_eq!((locked.status, locked.code), (400, Some("conversation_locked")));
    assert_eq!(locked.param.as_deref(), Some("conversation"));
    let body = json!({"input": "Hi.", "conversation": conversation["id"]});
    assert!(ResponsesRequest::from_json_to_count(body, &store, &Limits::default()).is_ok());
    let mut writer = ResponsesWriter::new(first, "m", &store);
    assert!(request(fields.clone(), &store).is_err());
    writer.object(&[choice("Hello!", FinishReason::EndToken)]);
    let second = request(fields.clone(), &store).expect("the first has ended");
    drop(second);
    // A request that is refused holds nothing.
    let mut wrong = fields.clone();
    wrong["temperature"] = "hot".into();
    assert!(request(wrong, &store).is_err());
    assert!(request(fields, &store).is_ok());
}

#[test]
fn references_in_conversations_are_their_items() {
    let store = ResponseStore::default();
    let conversations = Conversations { store: &store, limits: &Limits::default() };
    let first =
        conversations.create(json!({"items": [{"role": "user", "content": "I am Ann."}]})).expect("items");
    let items = conversations.items(first["id"].as_str().expect("an id")).expect("items");
    let reference = json!({"type": "item_reference", "id": items[0]["id"]});
    let second = conversations.create(json!({"items": [reference]})).expect("a conversation");
    let second = second["id"].as_str().expect("an id");
    conversations.add(second, json!({"items": [reference]})).expect("an item");
    let copies = conversations.items(second).expect("items");
    assert!(copies.len() == 2 && copies.iter().all(|item| item["content"] == "I am Ann."), "{copies:?}");
    assert_ne!(copies[0]["id"], copies[1]["id"]);
    let unknown =
        json!({"items": [{"role": "user", "content": "x"}, {"type": "item_reference", "id": "msg_none"}]});
    for error in [
        conversations.create(unknown.clone()).expect_err("unknown"),
        conversations.add(second, unknown).expect_err("unknown"),
    ] {
        assert_eq!((error.status, error.param.as_deref()), (404, Some("items[1].id")));
    }
    assert!(conversations.delete(second).is_ok());
    let gone = conversations.items(second).expect_err("deleted");
    assert!(gone.message.contains("deleted"), "{gone}");
}
