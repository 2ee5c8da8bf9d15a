"""Anthropic's client for Python."""

import json
from typing import Literal

import anthropic
from flow import LONG, MODEL, QUESTION, RESULT, SCHEMA, STOCK, SYSTEM, URL, check_answer, check_call, flow, raises, run
from pydantic import BaseModel

CLIENT = anthropic.Anthropic(base_url=URL, api_key="any", max_retries=0)
TOOLS = [
    {"name": "get_weather", "description": "Returns the weather for a given location.", "input_schema": SCHEMA},
    {"name": STOCK["name"], "description": STOCK["description"], "input_schema": STOCK["parameters"]},
]
MESSAGES = [{"role": "user", "content": QUESTION}]
REQUEST = {"model": MODEL, "max_tokens": 200}


def call_of(message):
    assert message.stop_reason == "tool_use", message
    [call] = [block for block in message.content if block.type == "tool_use"]
    check_call(call.name, call.input)
    return call


def with_result(message):
    result = {"type": "tool_result", "tool_use_id": call_of(message).id, "content": json.dumps(RESULT)}
    return [*MESSAGES, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]


@flow
def chat_with_a_system_message_and_usage():
    message = CLIENT.messages.create(system=SYSTEM, messages=[{"role": "user", "content": "Hello"}], **REQUEST)
    assert message.content[0].text and message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0


@flow
def streamed_chat():
    with CLIENT.messages.stream(messages=[{"role": "user", "content": "Hello"}], **REQUEST) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text and message.content[0].text == text and message.usage.output_tokens > 0


@flow
def several_turns():
    messages = [{"role": "user", "content": "Hello"}]
    for text in ["Hello", "Thanks!"]:
        answer = CLIENT.messages.create(messages=messages, **REQUEST).content[0].text
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": text}]
    assert CLIENT.messages.create(messages=messages, **REQUEST).content[0].text


@flow
def tool_call_and_result():
    message = CLIENT.messages.create(messages=MESSAGES, tools=TOOLS, **REQUEST)
    answer = CLIENT.messages.create(messages=with_result(message), tools=TOOLS, **REQUEST)
    check_answer(answer.content[0].text)


@flow
def streamed_tool_call_and_result():
    with CLIENT.messages.stream(messages=MESSAGES, tools=TOOLS, **REQUEST) as stream:
        pieces = [event for event in stream if event.type == "input_json"]
        message = stream.get_final_message()
    assert pieces and pieces[-1].snapshot == {"location": "Paris"}
    with CLIENT.messages.stream(messages=with_result(message), tools=TOOLS, **REQUEST) as stream:
        check_answer(stream.get_final_text())


@flow
def forced_tools():
    hello = [{"role": "user", "content": "Hello"}]
    for choice in [{"type": "any"}, {"type": "tool", "name": "get_stock_price"}]:
        message = CLIENT.messages.create(messages=hello, tools=TOOLS, tool_choice=choice, **REQUEST)
        assert message.stop_reason == "tool_use", message
    assert message.content[-1].name == "get_stock_price"
    message = CLIENT.messages.create(messages=MESSAGES, tools=TOOLS, tool_choice={"type": "none"}, **REQUEST)
    assert message.stop_reason == "end_turn"


class Colour(BaseModel):
    name: Literal["red", "green", "blue"]
    warm: bool


@flow
def parse_of_an_output_format():
    message = CLIENT.messages.parse(messages=MESSAGES, output_format=Colour, **REQUEST)
    assert isinstance(message.parsed_output, Colour)


@flow
def streamed_output_format():
    with CLIENT.messages.stream(messages=MESSAGES, output_format=Colour, **REQUEST) as stream:
        message = stream.get_final_message()
    assert isinstance(message.parsed_output, Colour)


@flow
def tool_runner():
    @anthropic.beta_tool
    def get_weather(location: str) -> str:
        """Returns the weather for a given location.

        Args:
            location: The location to get the weather for.
        """
        return json.dumps(RESULT)

    runner = CLIENT.beta.messages.tool_runner(messages=MESSAGES, tools=[get_weather], **REQUEST)
    check_answer(runner.until_done().content[0].text)


@flow
def count_of_tokens():
    assert CLIENT.messages.count_tokens(model=MODEL, messages=MESSAGES, tools=TOOLS).input_tokens > 50


@flow
def models():
    assert [model.id for model in CLIENT.models.list()] == [MODEL]
    assert CLIENT.models.retrieve(MODEL).id == MODEL


@flow
def errors():
    hello = [{"role": "user", "content": "Hello"}]
    raises(anthropic.NotFoundError, CLIENT.messages.create, model="none", max_tokens=9, messages=hello)
    error = raises(
        anthropic.BadRequestError, CLIENT.messages.create, messages=[{"role": "user", "content": LONG}], **REQUEST
    )
    assert "prompt is too long" in str(error), error
    assert error.request_id


run()
