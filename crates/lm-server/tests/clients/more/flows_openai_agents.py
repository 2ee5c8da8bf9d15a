"""OpenAI's Agents SDK, with its models of both APIs."""

from agents import (
    Agent,
    AsyncOpenAI,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from flow import CALLED, LONG, MODEL, OPENAI, QUESTION, SYSTEM, check_answer, check_called, flow, get_stock_price, get_weather, run
from openai import APIStatusError
from pydantic import BaseModel, Field

set_tracing_disabled(True)
CLIENT = AsyncOpenAI(base_url=OPENAI, api_key="any", max_retries=0)
MODELS = {"responses": OpenAIResponsesModel, "chat completions": OpenAIChatCompletionsModel}
TOOLS = [function_tool(get_weather), function_tool(get_stock_price)]


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def agent(model, **settings):
    fields = {"name": "assistant", "model": model, "model_settings": ModelSettings(temperature=0, max_tokens=200)}
    return Agent(**{**fields, **settings})


async def chat_with_instructions(model):
    result = await Runner.run(agent(model, instructions=SYSTEM), "Hello")
    assert result.final_output and result.context_wrapper.usage.input_tokens > 0


async def streamed_chat(model):
    result = Runner.run_streamed(agent(model, instructions=SYSTEM), "Hello")
    deltas = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert result.final_output and "".join(deltas) == result.final_output


async def agent_with_tools(model):
    result = await Runner.run(agent(model, tools=TOOLS), QUESTION)
    check_answer(result.final_output)
    check_called()


async def streamed_agent_with_tools(model):
    result = Runner.run_streamed(agent(model, tools=TOOLS), QUESTION)
    kinds = [event.item.type async for event in result.stream_events() if event.type == "run_item_stream_event"]
    assert kinds == ["tool_call_item", "tool_call_output_item", "message_output_item"], kinds
    check_answer(result.final_output)


async def forced_tool(model):
    settings = ModelSettings(temperature=0, max_tokens=200, tool_choice="get_stock_price")
    forced = agent(model, tools=TOOLS, model_settings=settings, tool_use_behavior="stop_on_first_tool")
    result = await Runner.run(forced, "What is the stock price of GOOGL?")
    assert "173.25" in result.final_output and CALLED == ["GOOGL"]


async def output_type(model):
    result = await Runner.run(agent(model, output_type=Colour), "Hello")
    assert isinstance(result.final_output, Colour)


async def session(model):
    session = SQLiteSession("one")
    assistant = agent(model, tools=TOOLS)
    check_answer((await Runner.run(assistant, QUESTION, session=session)).final_output)
    assert (await Runner.run(assistant, "Thanks!", session=session)).final_output
    assert len(await session.get_items()) == 6


async def handoff(model):
    weather = agent(model, name="weather", tools=TOOLS, handoff_description="Answers questions about the weather.")
    first = agent(model, handoffs=[weather], model_settings=ModelSettings(temperature=0, tool_choice="required"))
    result = await Runner.run(first, QUESTION)
    # After the result of the handoff, the embedded model answers without a call.
    assert result.final_output and result.last_agent.name == "weather"


async def errors(model):
    for status, question, name in [(404, "Hello", "none"), (400, LONG, MODEL)]:
        try:
            await Runner.run(agent(type(model)(name, CLIENT)), question)
            raise AssertionError("no error")
        except APIStatusError as error:
            assert error.status_code == status, error
            code = error.code
    assert code == "context_length_exceeded", code


def add(function, name):
    def of_model():
        return function(MODELS[name](MODEL, CLIENT))

    of_model.__name__ = f"{name}: {function.__name__}"
    flow(of_model)


for name in MODELS:
    for function in [
        chat_with_instructions,
        streamed_chat,
        agent_with_tools,
        streamed_agent_with_tools,
        forced_tool,
        output_type,
        session,
        handoff,
        errors,
    ]:
        add(function, name)


@flow
async def previous_response_id():
    model = OpenAIResponsesModel(MODEL, CLIENT)
    first = await Runner.run(agent(model, tools=TOOLS), QUESTION)
    again = await Runner.run(agent(model, tools=TOOLS), "Thanks!", previous_response_id=first.last_response_id)
    assert again.final_output


run()
