"""Pydantic AI, with its models of three APIs."""

from flow import LONG, MODEL, OPENAI, QUESTION, SYSTEM, URL, check_answer, check_called, flow, get_stock_price, get_weather, run
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelHTTPError, NativeOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

OPENAIS = OpenAIProvider(base_url=OPENAI, api_key="any")
MODELS = {
    "chat completions": lambda name: OpenAIChatModel(name, provider=OPENAIS),
    "responses": lambda name: OpenAIResponsesModel(name, provider=OPENAIS),
    "anthropic": lambda name: AnthropicModel(name, provider=AnthropicProvider(base_url=URL, api_key="any")),
    "ollama": lambda name: OpenAIChatModel(name, provider=OllamaProvider(base_url=OPENAI)),
}
SETTINGS = {"temperature": 0, "max_tokens": 200}


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def agent(model, **options):
    return Agent(MODELS[model](MODEL), model_settings=SETTINGS, retries=0, **options)


async def chat_with_instructions(model):
    result = await agent(model, instructions=SYSTEM).run("Hello")
    assert result.output and result.usage.input_tokens > 0 and result.usage.output_tokens > 0


async def streamed_chat(model):
    async with agent(model, system_prompt=SYSTEM).run_stream("Hello") as result:
        text = "".join([piece async for piece in result.stream_text(delta=True)])
    assert text and result.usage.output_tokens > 0


async def agent_with_tools(model):
    result = await agent(model, tools=[get_weather, get_stock_price]).run(QUESTION)
    check_answer(result.output)
    check_called()


async def streamed_agent_with_tools(model):
    async with agent(model, tools=[get_weather, get_stock_price]).run_stream(QUESTION) as result:
        check_answer(await result.get_output())
    check_called()


async def several_turns(model):
    assistant = agent(model, tools=[get_weather, get_stock_price])
    first = await assistant.run(QUESTION)
    assert (await assistant.run("Thanks!", message_history=first.all_messages())).output


async def output_by_a_tool(model):
    assert isinstance((await agent(model, output_type=ToolOutput(Colour)).run("Hello")).output, Colour)


async def native_output(model):
    assert isinstance((await agent(model, output_type=NativeOutput(Colour)).run("Hello")).output, Colour)


async def streamed_output(model):
    async with agent(model, output_type=ToolOutput(Colour)).run_stream("Hello") as result:
        assert isinstance(await result.get_output(), Colour)


async def errors(model):
    for status, question, name in [(404, "Hello", "none"), (400, LONG, MODEL)]:
        try:
            await Agent(MODELS[model](name)).run(question)
            raise AssertionError("no error")
        except ModelHTTPError as error:
            assert error.status_code == status, error
            last = error
    assert "prompt is too long" in str(last.body), last


def add(function, name):
    def of_model():
        return function(name)

    of_model.__name__ = f"{name}: {function.__name__}"
    flow(of_model)


for name in MODELS:
    for function in [
        chat_with_instructions,
        streamed_chat,
        agent_with_tools,
        streamed_agent_with_tools,
        several_turns,
        output_by_a_tool,
        native_output,
        streamed_output,
        errors,
    ]:
        # Pydantic AI knows the models of Anthropic with native output by their names.
        if (name, function) != ("anthropic", native_output):
            add(function, name)


run()
