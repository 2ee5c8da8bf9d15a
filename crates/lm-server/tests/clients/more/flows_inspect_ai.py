"""Inspect AI, with its models of three APIs."""

import json
import os

from flow import MODEL, OPENAI, QUESTION, RESULT, SYSTEM, URL, check_call, check_called, flow, get_weather, run

os.environ.update(LOCAL_API_KEY="any", LOCAL_BASE_URL=OPENAI, INSPECT_DISPLAY="none")

from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ResponseSchema,
    get_model,
)
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolFunction, tool
from inspect_ai.util import JSONSchema

MODELS = {
    "chat completions": {"model": f"openai-api/local/{MODEL}"},
    "responses": {"model": f"openai/{MODEL}", "base_url": OPENAI, "api_key": "any", "responses_api": True},
    "anthropic": {"model": f"anthropic/{MODEL}", "base_url": URL, "api_key": "any", "streaming": False},
}
CONFIG = GenerateConfig(temperature=0, max_tokens=200, max_retries=0)


@tool(name="get_weather")
def weather():
    async def execute(location: str):
        """Returns the weather for a given location.

        Args:
            location: The location to get the weather for.
        """
        return get_weather(location)

    return execute


def model(api, **options):
    return get_model(**{**MODELS[api], **options}, config=CONFIG)


async def chat_with_a_system_message_and_usage(api):
    output = await model(api).generate([ChatMessageSystem(content=SYSTEM), ChatMessageUser(content="Hello")])
    assert output.completion and output.stop_reason == "stop" and output.usage.output_tokens > 0


async def tool_call_and_result(api):
    question = ChatMessageUser(content=QUESTION)
    output = await model(api).generate([question], tools=[weather()])
    [call] = output.message.tool_calls
    check_call(call.function, call.arguments)
    result = ChatMessageTool(content=json.dumps(RESULT), tool_call_id=call.id, function=call.function)
    assert (await model(api).generate([question, output.message, result], tools=[weather()])).completion


async def forced_tool(api):
    output = await model(api).generate("Hello", tools=[weather()], tool_choice=ToolFunction("get_weather"))
    assert output.message.tool_calls[0].function == "get_weather"


async def response_schema(api):
    schema = JSONSchema(type="object", properties={"warm": JSONSchema(type="boolean")}, required=["warm"])
    config = GenerateConfig(response_schema=ResponseSchema(name="colour", json_schema=schema))
    assert "warm" in json.loads((await model(api).generate("Hello", config=config)).completion)


async def evaluation_with_tools(api):
    samples = [Sample(input=QUESTION, target="Paris")]
    task = Task(dataset=samples, solver=[use_tools(weather()), generate()], scorer=includes())
    [log] = await eval_async(task, model=model(api), log_dir="logs")
    assert log.status == "success", log.error
    check_called()


def add(function, api):
    def of_api():
        return function(api)

    of_api.__name__ = f"{api}: {function.__name__}"
    flow(of_api)


for api in MODELS:
    for function in [
        chat_with_a_system_message_and_usage,
        tool_call_and_result,
        forced_tool,
        response_schema,
        evaluation_with_tools,
    ]:
        add(function, api)


run()
