"""Ollama's client for Python."""

import json

import ollama
from flow import (
    LONG,
    MODEL,
    QUESTION,
    RESULT,
    SYSTEM,
    TOOLS,
    URL,
    check_answer,
    check_call,
    flow,
    get_weather,
    raises,
    run,
)
from pydantic import BaseModel, Field

CLIENT = ollama.Client(host=URL)
MESSAGES = [{"role": "user", "content": QUESTION}]
HELLO = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hello"}]


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def call_of(message):
    [call] = message.tool_calls
    check_call(call.function.name, dict(call.function.arguments))


@flow
def chat_with_a_system_message_and_usage():
    answer = CLIENT.chat(MODEL, messages=HELLO)
    assert answer.message.content and answer.done and answer.done_reason == "stop"
    assert answer.prompt_eval_count > 0 and answer.eval_count > 0 and answer.total_duration > 0


@flow
def streamed_chat():
    parts = list(CLIENT.chat(MODEL, messages=HELLO, stream=True))
    assert "".join(part.message.content for part in parts) and parts[-1].done and parts[-1].eval_count > 0


@flow
def several_turns():
    messages = list(HELLO)
    for text in ["Hello", "Thanks!"]:
        messages += [CLIENT.chat(MODEL, messages=messages).message, {"role": "user", "content": text}]
    assert CLIENT.chat(MODEL, messages=messages).message.content


@flow
def tool_call_and_result():
    message = CLIENT.chat(MODEL, messages=MESSAGES, tools=TOOLS).message
    call_of(message)
    result = {"role": "tool", "content": json.dumps(RESULT), "tool_name": "get_weather"}
    check_answer(CLIENT.chat(MODEL, messages=[*MESSAGES, message, result], tools=TOOLS).message.content)


@flow
def a_function_as_tool():
    call_of(CLIENT.chat(MODEL, messages=MESSAGES, tools=[get_weather]).message)


@flow
def streamed_tool_call():
    parts = CLIENT.chat(MODEL, messages=MESSAGES, tools=TOOLS, stream=True)
    [message] = [part.message for part in parts if part.message.tool_calls]
    call_of(message)


@flow
def formats():
    answer = CLIENT.chat(MODEL, messages=MESSAGES, format=Colour.model_json_schema())
    Colour.model_validate_json(answer.message.content)
    answer = CLIENT.generate(MODEL, QUESTION, format=Colour.model_json_schema())
    Colour.model_validate_json(answer.response)


@flow
def generate():
    assert CLIENT.generate(MODEL, "Hello", system=SYSTEM, options={"num_predict": 20}).response
    assert "".join(part.response for part in CLIENT.generate(MODEL, "Hello", stream=True))


@flow
def embeddings():
    assert len(CLIENT.embed(MODEL, ["one", "two"]).embeddings) == 2
    assert CLIENT.embeddings(MODEL, "one").embedding


@flow
def models():
    assert [model.model for model in CLIENT.list().models] == [f"{MODEL}:latest"] or CLIENT.list().models[0].model == MODEL
    assert CLIENT.show(MODEL).capabilities and CLIENT.show(MODEL).modelinfo
    assert CLIENT.ps().models and CLIENT.pull(MODEL).status == "success"


@flow
def errors():
    assert raises(ollama.ResponseError, CLIENT.chat, "none", messages=HELLO).status_code == 404
    error = raises(ollama.ResponseError, CLIENT.chat, MODEL, messages=[{"role": "user", "content": LONG}])
    assert error.status_code == 400 and "prompt is too long" in error.error, error


run()
