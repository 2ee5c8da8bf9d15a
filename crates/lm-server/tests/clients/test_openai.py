"""The official client for Python, blocking."""

import json

import openai
import pytest
from conftest import KEY, URL
from flows import ARGUMENTS, CHOICES, QUESTION, REQUEST, TOOLS, check_answer, check_choice, histories
from pydantic import BaseModel


@pytest.fixture
def client():
    return openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)


@pytest.fixture
def short(client):
    """Bias towards the closing quotation mark: the model ends its texts only with it."""
    encoded = client.with_options(base_url=URL.removesuffix("/v1")).post(
        "/tokenize", cast_to=object, body={"content": '"'}
    )
    return {str(token): 100 for token in encoded["tokens"]}


class Call(BaseModel):
    name: str
    urgent: bool


def streamed(client, **request):
    """Sends a request whose answer is streamed; returns the finish reason, and the message made of its pieces."""
    message, reasons = {"content": None, "tool_calls": {}}, []
    for chunk in client.chat.completions.create(stream=True, **request):
        assert chunk.object == "chat.completion.chunk"
        [choice] = chunk.choices
        reasons.append(choice.finish_reason)
        if choice.delta.content:
            message["content"] = (message["content"] or "") + choice.delta.content
        for piece in choice.delta.tool_calls or []:
            call = message["tool_calls"].setdefault(piece.index, piece.model_copy(deep=True))
            if call != piece:
                assert piece.id is None and piece.function.name is None
                call.function.arguments += piece.function.arguments
    assert [reason for reason in reasons if reason] == reasons[-1:]
    message = openai.types.chat.ChatCompletionMessage(
        role="assistant",
        content=message["content"],
        tool_calls=[call.model_dump(exclude={"index"}) for call in message["tool_calls"].values()] or None,
    )
    return reasons[-1], message


def whole(client, **request):
    choice = client.chat.completions.create(**request).choices[0]
    return choice.finish_reason, choice.message


@pytest.mark.parametrize("send", [whole, streamed])
@pytest.mark.parametrize("choice", CHOICES)
def test_tool_choice(client, choice, send):
    answer = send(client, messages=QUESTION, tool_choice=CHOICES[choice], **REQUEST)
    check_choice(choice, *answer)


@pytest.mark.parametrize("send", [whole, streamed])
@pytest.mark.parametrize("history", [0, 1], ids=["assistant", "tool_call"])
def test_tool_result(client, history, send):
    _, message = send(client, messages=QUESTION, tool_choice="required", **REQUEST)
    check_answer(*send(client, messages=histories(message)[history], **REQUEST))


def test_stream_helper_assembles_calls(client):
    with client.chat.completions.stream(messages=QUESTION, tool_choice="required", **REQUEST) as stream:
        kinds = [event.type for event in stream]
        completion = stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds and "tool_calls.function.arguments.done" in kinds
    choice = completion.choices[0]
    check_choice("required", choice.finish_reason, choice.message)


def test_stream_helper_assembles_text_and_usage(client):
    request = {**REQUEST, "tools": openai.omit, "stream_options": {"include_usage": True}}
    with client.chat.completions.stream(messages=QUESTION, **request) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        completion = stream.get_final_completion()
    assert text and completion.choices[0].message.content == text
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


def test_parse_of_a_response_format(client, short):
    completion = client.chat.completions.parse(
        model="pocket", messages=QUESTION, response_format=Call, logit_bias=short, max_completion_tokens=200
    )
    message = completion.choices[0].message
    assert isinstance(message.parsed, Call) and message.refusal is None
    assert Call(**json.loads(message.content)) == message.parsed


def test_parse_of_a_streamed_response_format(client, short):
    request = {"logit_bias": short, "max_completion_tokens": 200}
    with client.chat.completions.stream(
        model="pocket", messages=QUESTION, response_format=Call, **request
    ) as stream:
        parsed = stream.get_final_completion().choices[0].message.parsed
    assert isinstance(parsed, Call)


def test_parse_of_a_strict_tool(client):
    class get_current_weather(BaseModel):
        """Get the current weather in a given location"""

        location: str
        format: str

    tool = openai.pydantic_function_tool(get_current_weather)
    completion = client.chat.completions.parse(
        messages=QUESTION, tool_choice="required", **{**REQUEST, "tools": [tool]}
    )
    [call] = completion.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, get_current_weather)


def test_choices_and_log_probabilities(client):
    completion = client.chat.completions.create(
        model="gpt-4o-mini", messages=QUESTION, n=2, logprobs=True, top_logprobs=2, max_tokens=3, seed=1
    )
    assert [choice.index for choice in completion.choices] == [0, 1]
    for choice in completion.choices:
        assert len(choice.logprobs.content) == 3 and len(choice.logprobs.content[0].top_logprobs) == 2
        assert choice.finish_reason == "length"


def test_stop(client):
    request = {"model": "pocket", "temperature": 0, "messages": QUESTION}
    text = client.chat.completions.create(**request).choices[0].message.content
    stop = text.split()[1]
    choice = client.chat.completions.create(**request, stop=[stop]).choices[0]
    assert choice.message.content == text[: text.index(stop)] and choice.finish_reason == "stop"


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_embeddings(client, encoding):
    options = {} if encoding is None else {"encoding_format": encoding}
    response = client.embeddings.create(model="pocket", input=["one", "two"], **options)
    assert [item.index for item in response.data] == [0, 1]
    assert response.data[0].embedding != response.data[1].embedding and response.usage.prompt_tokens > 0


def test_models(client):
    assert [model.id for model in client.models.list()] == ["pocket", "gpt-4o-mini"]
    assert client.models.retrieve("gpt-4o-mini").object == "model"


def test_errors(client):
    request = {"model": "pocket", "messages": QUESTION}
    for error, options, changed in [
        (openai.NotFoundError, {}, {"model": "gpt-9"}),
        (openai.BadRequestError, {}, {"temperature": -9}),
        (openai.BadRequestError, {}, {"messages": []}),
        (openai.AuthenticationError, {"api_key": "wrong"}, {}),
    ]:
        with pytest.raises(error) as raised:
            client.with_options(**options).chat.completions.create(**{**request, **changed})
        assert raised.value.request_id.startswith("req_") and raised.value.message
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**request, temperature=-9)
    assert (raised.value.param, raised.value.type) == ("temperature", "invalid_request_error")
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(**request, temperature=-9, stream=True)


def test_a_stream_that_is_closed_early_leaves_the_server_working(client):
    stream = client.chat.completions.create(stream=True, messages=QUESTION, tool_choice="none", **REQUEST)
    next(iter(stream))
    stream.close()
    check_choice("required", *whole(client, messages=QUESTION, tool_choice="required", **REQUEST))


def test_strict_arguments_within_an_enum(client):
    answer = whole(client, messages=QUESTION, tool_choice="required", parallel_tool_calls=False, **REQUEST)
    [call] = answer[1].tool_calls
    values = TOOLS[0]["function"]["parameters"]["properties"]["format"]["enum"]
    assert json.loads(call.function.arguments)["format"] in values and ARGUMENTS["format"] in values


def test_prompts_are_continued(client):
    request = {"model": "pocket", "prompt": ["One, two,", "A, b,"], "n": 2, "max_tokens": 6, "temperature": 0, "logprobs": 2}
    whole = client.completions.create(**request)
    assert whole.object == "text_completion" and [choice.index for choice in whole.choices] == [0, 1, 2, 3]
    for choice in whole.choices:
        scores = choice.logprobs
        assert "".join(scores.tokens) == choice.text and len(scores.tokens) == len(scores.top_logprobs)
    pieces = {choice.index: "" for choice in whole.choices}
    for chunk in client.completions.create(stream=True, stream_options={"include_usage": True}, **request):
        for choice in chunk.choices:
            pieces[choice.index] += choice.text
    assert list(pieces.values()) == [choice.text for choice in whole.choices]
    assert chunk.usage.completion_tokens == whole.usage.completion_tokens
