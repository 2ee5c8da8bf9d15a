"""The official client for Python, asynchronous."""

import asyncio

import openai
import pytest
from conftest import KEY, URL
from flows import CHOICES, QUESTION, REQUEST, check_answer, check_choice, histories
from pydantic import BaseModel


@pytest.fixture
async def client():
    async with openai.AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as client:
        yield client


async def whole(client, **request):
    choice = (await client.chat.completions.create(**request)).choices[0]
    return choice.finish_reason, choice.message


async def streamed(client, **request):
    async with client.chat.completions.stream(**request) as stream:
        async for _ in stream:
            pass
        choice = (await stream.get_final_completion()).choices[0]
    return choice.finish_reason, choice.message


@pytest.mark.parametrize("send", [whole, streamed])
@pytest.mark.parametrize("choice", CHOICES)
async def test_tool_choice(client, choice, send):
    answer = await send(client, messages=QUESTION, tool_choice=CHOICES[choice], **REQUEST)
    check_choice(choice, *answer)


@pytest.mark.parametrize("history", [0, 1], ids=["assistant", "tool_call"])
async def test_tool_result(client, history):
    _, message = await whole(client, messages=QUESTION, tool_choice="required", **REQUEST)
    check_answer(*await whole(client, messages=histories(message)[history], **REQUEST))


async def test_many_at_once(client):
    choices = list(CHOICES) * 4
    sent = [whole(client, messages=QUESTION, tool_choice=CHOICES[choice], **REQUEST) for choice in choices]
    for choice, answer in zip(choices, await asyncio.gather(*sent)):
        check_choice(choice, *answer)


async def test_parse_of_a_response_format(client):
    class Answer(BaseModel):
        urgent: bool

    completion = await client.chat.completions.parse(
        model="pocket", messages=QUESTION, response_format=Answer
    )
    assert isinstance(completion.choices[0].message.parsed, Answer)


async def test_embeddings_and_models(client):
    response = await client.embeddings.create(model="pocket", input="one")
    assert len(response.data) == 1
    assert [model.id async for model in client.models.list()] == ["pocket", "gpt-4o-mini"]


async def test_errors(client):
    request = {"model": "pocket", "messages": QUESTION}
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(**{**request, "model": "gpt-9"})
    with pytest.raises(openai.BadRequestError):
        await client.chat.completions.create(**request, top_p=-7)
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="wrong").models.list()


async def test_a_cancelled_request_leaves_the_server_working(client):
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(whole(client, messages=QUESTION, model="pocket"), 0.001)
    check_choice("auto", *await whole(client, messages=QUESTION, **REQUEST))
