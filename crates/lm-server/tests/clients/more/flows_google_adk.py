"""Google's Agent Development Kit, by LiteLLM."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from flow import CALLED, LONG, MODEL, OPENAI, QUESTION, SYSTEM, check_called, flow, get_stock_price, get_weather, run
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import BaseModel, Field


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def model():
    return LiteLlm(f"openai/{MODEL}", api_base=OPENAI, api_key="any", temperature=0, max_tokens=200, num_retries=0)


async def events(questions, streaming_mode=StreamingMode.NONE, **settings):
    runner = InMemoryRunner(Agent(name="assistant", model=model(), **settings), app_name="lm")
    session = await runner.session_service.create_session(app_name="lm", user_id="one")
    found = []
    for question in questions:
        message = types.Content(role="user", parts=[types.Part(text=question)])
        config = RunConfig(streaming_mode=streaming_mode)
        run = runner.run_async(user_id="one", session_id=session.id, new_message=message, run_config=config)
        found += [event async for event in run]
    return found


def text(event):
    return "".join(part.text or "" for part in event.content.parts)


@flow
async def chat_with_an_instruction_and_usage():
    [event] = await events(["Hello"], instruction=SYSTEM)
    assert text(event) and event.usage_metadata.candidates_token_count > 0


@flow
async def streamed_chat():
    *pieces, last = await events(["Hello"], StreamingMode.SSE)
    assert "".join(text(piece) for piece in pieces if piece.partial) == text(last)


@flow
async def several_turns():
    assert len(await events(["Hello", "Thanks!"])) == 2


@flow
async def agent_with_tools():
    for mode in [StreamingMode.NONE, StreamingMode.SSE]:
        CALLED.clear()
        found = await events([QUESTION], mode, tools=[get_weather, get_stock_price])
        check_called()
        assert text(found[-1])


@flow
async def output_schema():
    [event] = await events(["Hello"], output_schema=Colour)
    Colour.model_validate_json(text(event))


@flow
async def errors():
    try:
        found = await events([LONG])
    except Exception as error:
        assert "prompt is too long" in str(error), error
    else:
        assert "prompt is too long" in found[-1].error_message, found


run()
