"""Haystack, with its generators of OpenAI's APIs and its agent."""

from flow import LONG, MODEL, OPENAI, QUESTION, SYSTEM, check_answer, check_call, check_called, flow, get_weather, raises, run
from haystack.components.agents import Agent
from haystack.components.embedders import OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from openai import BadRequestError
from pydantic import BaseModel, Field

KEY = Secret.from_token("any")
LIMIT = {"chat completions": "max_tokens", "responses": "max_output_tokens"}
GENERATORS = {"chat completions": OpenAIChatGenerator, "responses": OpenAIResponsesChatGenerator}
HELLO = [ChatMessage.from_system(SYSTEM), ChatMessage.from_user("Hello")]
WEATHER = create_tool_from_function(get_weather)


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def generator(api, **options):
    settings = {"temperature": 0, LIMIT[api]: 200, **options.pop("settings", {})}
    return GENERATORS[api](
        api_key=KEY, model=MODEL, api_base_url=OPENAI, generation_kwargs=settings, max_retries=0, **options
    )


def chat(api):
    [reply] = generator(api).run(HELLO)["replies"]
    assert reply.text and reply.meta["usage"]


def streamed_chat(api):
    chunks = []
    [reply] = generator(api, streaming_callback=chunks.append).run(HELLO)["replies"]
    assert reply.text == "".join(chunk.content for chunk in chunks)


def tool_call(api):
    for callback in [None, lambda chunk: None]:
        [reply] = generator(api, tools=[WEATHER], streaming_callback=callback).run([ChatMessage.from_user(QUESTION)])[
            "replies"
        ]
        [call] = reply.tool_calls
        check_call(call.tool_name, call.arguments)


def agent_with_tools(api):
    agent = Agent(chat_generator=generator(api), tools=[WEATHER])
    check_answer(agent.run(messages=[ChatMessage.from_user(QUESTION)])["last_message"].text)
    check_called()


def structured_output(api):
    key = {"chat completions": "response_format", "responses": "text_format"}[api]
    [reply] = generator(api, settings={key: Colour}).run(HELLO)["replies"]
    Colour.model_validate_json(reply.text)


def errors(api):
    error = raises(BadRequestError, generator(api).run, [ChatMessage.from_user(LONG)])
    assert error.code == "context_length_exceeded"


def add(function, api):
    def of_api():
        return function(api)

    of_api.__name__ = f"{api}: {function.__name__}"
    flow(of_api)


for api in GENERATORS:
    for function in [chat, streamed_chat, tool_call, agent_with_tools, structured_output, errors]:
        add(function, api)


@flow
def embeddings():
    assert OpenAITextEmbedder(api_key=KEY, model=MODEL, api_base_url=OPENAI).run("one")["embedding"]


run()
