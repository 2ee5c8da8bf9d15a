"""AutoGen, with its assistant agent."""

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import SystemMessage, UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from flow import LONG, MODEL, OPENAI, QUESTION, SYSTEM, check_answer, check_call, check_called, flow, get_weather, run
from openai import BadRequestError, NotFoundError
from pydantic import BaseModel, Field

INFO = {"vision": False, "function_calling": True, "json_output": True, "structured_output": True, "family": "unknown"}
HELLO = [SystemMessage(content=SYSTEM), UserMessage(content="Hello", source="user")]
WEATHER = FunctionTool(get_weather, description="Returns the weather for a given location.")


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def client(model=MODEL):
    return OpenAIChatCompletionClient(
        model=model, base_url=OPENAI, api_key="any", model_info=INFO, temperature=0, max_tokens=200, max_retries=0
    )


@flow
async def chat_with_a_system_message_and_usage():
    result = await client().create(HELLO)
    assert result.content and result.usage.completion_tokens > 0


@flow
async def streamed_chat():
    *pieces, result = [piece async for piece in client().create_stream(HELLO)]
    assert "".join(pieces) == result.content


@flow
async def tool_call():
    question = [UserMessage(content=QUESTION, source="user")]
    [call] = (await client().create(question, tools=[WEATHER])).content
    check_call(call.name, call.arguments)
    [call] = (await client().create(HELLO, tools=[WEATHER], tool_choice=WEATHER)).content
    assert call.name == "get_weather"


@flow
async def streamed_tool_call():
    question = [UserMessage(content=QUESTION, source="user")]
    *_, result = [piece async for piece in client().create_stream(question, tools=[WEATHER])]
    check_call(result.content[0].name, result.content[0].arguments)


@flow
async def agent_with_tools():
    for stream in [False, True]:
        agent = AssistantAgent(
            "assistant",
            client(),
            tools=[get_weather],
            system_message=None,
            reflect_on_tool_use=True,
            model_client_stream=stream,
        )
        result = await agent.run(task=QUESTION)
        assert result.messages[-1].content and result.messages[-1].source == "assistant"


@flow
async def structured_output():
    result = await client().create(HELLO, json_output=Colour)
    Colour.model_validate_json(result.content)


@flow
async def errors():
    for model, text, kind in [("none", "Hello", NotFoundError), (MODEL, LONG, BadRequestError)]:
        try:
            await client(model).create([UserMessage(content=text, source="user")])
        except kind:
            continue
        raise AssertionError("no error")


run()
