"""Strands Agents, with its models of three APIs."""

from flow import CALLED, LONG, MODEL, OPENAI, QUESTION, SYSTEM, URL, flow, get_weather, run
from pydantic import BaseModel, Field
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.anthropic import AnthropicModel
from strands.models.ollama import OllamaModel
from strands.models.openai import OpenAIModel
from strands.types.exceptions import ContextWindowOverflowException

MODELS = {
    "chat completions": lambda: OpenAIModel(
        client_args={"base_url": OPENAI, "api_key": "any"}, model_id=MODEL, params={"temperature": 0, "max_tokens": 200}
    ),
    "anthropic": lambda: AnthropicModel(
        client_args={"base_url": URL, "api_key": "any"}, model_id=MODEL, max_tokens=200
    ),
    "ollama": lambda: OllamaModel(URL, model_id=MODEL, temperature=0, max_tokens=200),
}
WEATHER = tool(get_weather)


class Colour(BaseModel):
    """Says if a colour is warm."""

    name: str = Field(max_length=20)
    warm: bool


def agent(model, **options):
    manager = NullConversationManager()
    return Agent(model=MODELS[model](), callback_handler=None, conversation_manager=manager, **options)


def chat_with_a_system_message_and_usage(model):
    result = agent(model, system_prompt=SYSTEM)("Hello")
    assert str(result) and result.metrics.accumulated_usage["outputTokens"] > 0


def several_turns(model):
    assistant = agent(model)
    assistant("Hello")
    assert str(assistant("Thanks!")) and len(assistant.messages) == 4


def agent_with_tools(model):
    assert str(agent(model, tools=[WEATHER])(QUESTION))
    assert len(CALLED) == 1


def structured_output(model):
    assert isinstance(agent(model)("Hello", structured_output_model=Colour).structured_output, Colour)


def context_window(model):
    try:
        agent(model)(LONG)
    except ContextWindowOverflowException:
        return
    raise AssertionError("no error")


def add(function, name):
    def of_model():
        return function(name)

    of_model.__name__ = f"{name}: {function.__name__}"
    flow(of_model)


for name in MODELS:
    for function in [
        chat_with_a_system_message_and_usage,
        several_turns,
        agent_with_tools,
        structured_output,
        context_window,
    ]:
        # Strands has no such error for Ollama.
        if (name, function) != ("ollama", context_window):
            add(function, name)


run()
