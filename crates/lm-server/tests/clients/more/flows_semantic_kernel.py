"""Semantic Kernel, with functions that the model chooses."""

from flow import CALLED, LONG, MODEL, OPENAI, QUESTION, SYSTEM, check_answer, check_called, flow, get_weather, run
from openai import AsyncOpenAI
from pydantic import BaseModel, Field
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
    OpenAITextEmbedding,
)
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function

CLIENT = AsyncOpenAI(base_url=OPENAI, api_key="any", max_retries=0)
SERVICE = OpenAIChatCompletion(ai_model_id=MODEL, async_client=CLIENT)


class Weather:
    @kernel_function(name="get_weather", description="Returns the weather for a given location.")
    def get_weather(self, location: str) -> str:
        return get_weather(location)


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def settings(**options):
    return OpenAIChatPromptExecutionSettings(temperature=0, max_tokens=200, **options)


def history(question, system=None):
    messages = ChatHistory(system_message=system)
    messages.add_user_message(question)
    return messages


def kernel():
    made = Kernel()
    made.add_plugin(Weather(), "demo")
    return made


@flow
async def chat_with_a_system_message_and_usage():
    reply = await SERVICE.get_chat_message_content(history("Hello", SYSTEM), settings())
    assert str(reply) and reply.metadata["usage"].completion_tokens > 0


@flow
async def streamed_chat():
    pieces = [str(piece) async for piece in SERVICE.get_streaming_chat_message_content(history("Hello"), settings())]
    assert "".join(pieces)


@flow
async def functions_that_are_run():
    options = settings(function_choice_behavior=FunctionChoiceBehavior.Auto())
    reply = await SERVICE.get_chat_message_content(history(QUESTION), options, kernel=kernel())
    check_called()
    check_answer(str(reply))


@flow
async def streamed_functions_that_are_run():
    options = settings(function_choice_behavior=FunctionChoiceBehavior.Auto())
    stream = SERVICE.get_streaming_chat_message_content(history(QUESTION), options, kernel=kernel())
    text = "".join([str(piece) async for piece in stream])
    check_called()
    check_answer(text)


@flow
async def required_function():
    behaviour = FunctionChoiceBehavior.Required(filters={"included_functions": ["demo-get_weather"]})
    options = settings(function_choice_behavior=behaviour)
    await SERVICE.get_chat_message_content(history("Hello"), options, kernel=kernel())
    assert CALLED


@flow
async def response_format():
    reply = await SERVICE.get_chat_message_content(history(QUESTION), settings(response_format=Colour))
    Colour.model_validate_json(str(reply))


@flow
async def agent():
    assistant = ChatCompletionAgent(service=SERVICE, instructions=SYSTEM, plugins=[Weather()])
    reply = await assistant.get_response(QUESTION)
    assert str(reply) and CALLED
    assert str(await assistant.get_response("Thanks!", thread=reply.thread))


@flow
async def embeddings():
    vectors = await OpenAITextEmbedding(ai_model_id=MODEL, async_client=CLIENT).generate_embeddings(["one", "two"])
    assert len(vectors) == 2


@flow
async def errors():
    try:
        await SERVICE.get_chat_message_content(history(LONG), settings())
    except Exception as error:
        assert "prompt is too long" in str(error), error
    else:
        raise AssertionError("no error")


run()
