"""Instructor, with its modes of two APIs."""

import instructor
from anthropic import Anthropic
from flow import MODEL, OPENAI, URL, flow, run
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, Field
from typing import Literal

HELLO = [{"role": "user", "content": "Is the colour red warm?"}]
REQUEST = {"messages": HELLO, "max_tokens": 200, "max_retries": 0}


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


class Kind(BaseModel):
    name: Literal["red", "blue"]
    warm: bool


def openai(mode):
    return instructor.from_openai(OpenAI(base_url=OPENAI, api_key="any"), mode=mode)


@flow
def tools():
    assert isinstance(openai(instructor.Mode.TOOLS).create(model=MODEL, response_model=Colour, **REQUEST), Colour)


@flow
def strict_tools():
    client = openai(instructor.Mode.TOOLS_STRICT)
    assert isinstance(client.create(model=MODEL, response_model=Kind, **REQUEST), Kind)


@flow
def json_schema():
    client = openai(instructor.Mode.JSON_SCHEMA)
    assert isinstance(client.create(model=MODEL, response_model=Colour, **REQUEST), Colour)


@flow
def responses_tools():
    client = openai(instructor.Mode.RESPONSES_TOOLS)
    colour = client.responses.create(model=MODEL, input="Is red warm?", response_model=Kind, max_retries=0)
    assert isinstance(colour, Kind)


@flow
def partial():
    client = openai(instructor.Mode.TOOLS)
    parts = list(client.create_partial(model=MODEL, response_model=Colour, **REQUEST))
    assert len(parts) > 1 and parts[-1].warm in (True, False)


@flow
def completion_beside_the_value():
    client = openai(instructor.Mode.TOOLS)
    colour, completion = client.create_with_completion(model=MODEL, response_model=Colour, **REQUEST)
    assert isinstance(colour, Colour) and completion.usage.completion_tokens > 0


@flow
async def asynchronous():
    client = instructor.from_openai(AsyncOpenAI(base_url=OPENAI, api_key="any"))
    assert isinstance(await client.create(model=MODEL, response_model=Colour, **REQUEST), Colour)


@flow
def by_name_of_the_provider():
    client = instructor.from_provider(f"ollama/{MODEL}", base_url=OPENAI, mode=instructor.Mode.TOOLS)
    assert isinstance(client.create(response_model=Colour, **REQUEST), Colour)


@flow
def anthropic_tools():
    client = instructor.from_anthropic(Anthropic(base_url=URL, api_key="any"))
    assert isinstance(client.create(model=MODEL, response_model=Colour, **REQUEST), Colour)


run()
