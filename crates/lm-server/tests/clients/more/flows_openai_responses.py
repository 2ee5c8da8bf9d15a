"""OpenAI's client for Python, with the Responses API."""

import json

import openai
from flow import FUNCTION, LONG, MODEL, OPENAI, QUESTION, RESULT, SYSTEM, check_answer, check_call, flow, raises, run
from pydantic import BaseModel, Field

CLIENT = openai.OpenAI(base_url=OPENAI, api_key="any", max_retries=0)
TOOLS = [{"type": "function", **FUNCTION}]
REQUEST = {"model": MODEL, "temperature": 0, "max_output_tokens": 200}


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def call_of(response):
    [call] = [item for item in response.output if item.type == "function_call"]
    check_call(call.name, call.arguments)
    return call


def result_of(call):
    return {"type": "function_call_output", "call_id": call.call_id, "output": json.dumps(RESULT)}


def streamed(**request):
    with CLIENT.responses.stream(**request) as stream:
        events = [event.type for event in stream]
        return events, stream.get_final_response()


@flow
def chat_with_instructions_and_usage():
    response = CLIENT.responses.create(input="Hello", instructions=SYSTEM, **REQUEST)
    assert response.output_text and response.status == "completed"
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens > 0


@flow
def streamed_chat():
    events, response = streamed(input="Hello", **REQUEST)
    assert response.output_text and response.usage.output_tokens > 0
    assert events[0] == "response.created" and events[-1] == "response.completed"
    pieces = CLIENT.responses.create(input="Hello", stream=True, **REQUEST)
    text = "".join(event.delta for event in pieces if event.type == "response.output_text.delta")
    assert text == response.output_text


@flow
def tool_call_and_result():
    response = CLIENT.responses.create(input=QUESTION, tools=TOOLS, **REQUEST)
    history = [{"role": "user", "content": QUESTION}, *response.output, result_of(call_of(response))]
    check_answer(CLIENT.responses.create(input=history, tools=TOOLS, **REQUEST).output_text)


@flow
def streamed_tool_call_and_kept_response():
    events, response = streamed(input=QUESTION, tools=TOOLS, **REQUEST)
    assert "response.function_call_arguments.delta" in events and "response.function_call_arguments.done" in events
    kept = {"previous_response_id": response.id, "input": [result_of(call_of(response))]}
    check_answer(streamed(tools=TOOLS, **kept, **REQUEST)[1].output_text)


@flow
def forced_tools():
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]}
    for choice in ["required", {"type": "function", "name": "get_weather"}, allowed]:
        response = CLIENT.responses.create(input="Hello", tools=TOOLS, tool_choice=choice, **REQUEST)
        assert [item.name for item in response.output if item.type == "function_call"], response


@flow
def parse_of_a_format():
    assert isinstance(CLIENT.responses.parse(input="Hello", text_format=Colour, **REQUEST).output_parsed, Colour)
    assert isinstance(streamed(input="Hello", text_format=Colour, **REQUEST)[1].output_parsed, Colour)


@flow
def parse_of_a_strict_tool():
    class get_weather(BaseModel):
        """Returns the weather for a given location."""

        location: str

    tools = [openai.pydantic_function_tool(get_weather)["function"] | {"type": "function"}]
    response = CLIENT.responses.parse(input=QUESTION, tools=tools, tool_choice="required", **REQUEST)
    check_call(call_of(response).name, call_of(response).arguments)


@flow
def kept_responses():
    response = CLIENT.responses.create(input="Hello", **REQUEST)
    assert CLIENT.responses.retrieve(response.id).output_text == response.output_text
    CLIENT.responses.delete(response.id)
    raises(openai.NotFoundError, CLIENT.responses.retrieve, response.id)
    forgotten = CLIENT.responses.create(input="Hello", store=False, **REQUEST)
    raises(openai.NotFoundError, CLIENT.responses.retrieve, forgotten.id)


@flow
def count_of_tokens():
    counted = CLIENT.responses.input_tokens.count(model=MODEL, input=QUESTION, tools=TOOLS)
    assert counted.input_tokens == CLIENT.responses.create(input=QUESTION, tools=TOOLS, **REQUEST).usage.input_tokens


@flow
def cut_answer():
    response = CLIENT.responses.create(input="Hello", **{**REQUEST, "max_output_tokens": 3})
    assert response.status == "incomplete" and response.incomplete_details.reason == "max_output_tokens"


@flow
def errors():
    raises(openai.NotFoundError, CLIENT.responses.create, model="none", input="Hello")
    error = raises(openai.BadRequestError, CLIENT.responses.create, model=MODEL, input=LONG)
    assert error.code == "context_length_exceeded" and error.request_id
    error = raises(openai.NotFoundError, CLIENT.responses.create, input="Hello", previous_response_id="resp_0", **REQUEST)
    assert error.param == "previous_response_id"


run()
