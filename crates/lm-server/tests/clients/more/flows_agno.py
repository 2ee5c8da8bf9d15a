"""Agno, with its models of four APIs."""

from typing import Literal

from agno.agent import Agent
from agno.models.anthropic import Claude
from agno.models.ollama import Ollama
from agno.models.openai import OpenAIResponses
from agno.models.openai.like import OpenAILike
from flow import CALLED, MODEL, OPENAI, QUESTION, SYSTEM, URL, check_called, flow, get_weather, run
from pydantic import BaseModel, Field

MODELS = {
    "chat completions": lambda: OpenAILike(id=MODEL, base_url=OPENAI, api_key="any", temperature=0, max_tokens=200),
    "responses": lambda: OpenAIResponses(id=MODEL, base_url=OPENAI, api_key="any", max_output_tokens=200),
    "anthropic": lambda: Claude(id=MODEL, api_key="any", client_params={"base_url": URL}, max_tokens=200),
    "ollama": lambda: Ollama(id=MODEL, host=URL, options={"temperature": 0, "num_predict": 200}),
}


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


class Kind(BaseModel):
    """Anthropic's schemas have no length of a text."""

    name: Literal["red", "blue"]
    warm: bool


def agent(model, **options):
    return Agent(model=MODELS[model](), telemetry=False, retries=0, **options)


def chat_with_instructions_and_usage(model):
    result = agent(model, instructions=SYSTEM).run("Hello")
    assert result.content and result.metrics.output_tokens > 0


def streamed_chat(model):
    events = list(agent(model).run("Hello", stream=True))
    assert "".join(event.content or "" for event in events if event.event == "RunContent")


def agent_with_tools(model):
    assert agent(model, tools=[get_weather]).run(QUESTION).content
    check_called()


def streamed_agent_with_tools(model):
    list(agent(model, tools=[get_weather]).run(QUESTION, stream=True))
    assert CALLED


def output_schema(model):
    schema = Kind if model == "anthropic" else Colour
    assert isinstance(agent(model, output_schema=schema).run("Hello").content, schema)


def add(function, name):
    def of_model():
        return function(name)

    of_model.__name__ = f"{name}: {function.__name__}"
    flow(of_model)


for name in MODELS:
    for function in [
        chat_with_instructions_and_usage,
        streamed_chat,
        agent_with_tools,
        streamed_agent_with_tools,
        output_schema,
    ]:
        add(function, name)


run()
