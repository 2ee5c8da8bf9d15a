"""The documented flow of tool use, and checks of its answers."""

import json
from pathlib import Path

WEATHER = json.loads((Path(__file__).parent / "weather.json").read_text())
TOOLS = WEATHER["tools"]
QUESTION = [{"role": "user", "content": WEATHER["question"]}]
NAMED = {"type": "function", "function": {"name": "predict_weather"}}
CHOICES = {"auto": "auto", "none": "none", "required": "required", "named": NAMED}
ARGUMENTS = {"location": "Auckland, NZ", "format": "celsius"}
REQUEST = {"model": "pocket", "tools": TOOLS, "temperature": 0, "max_completion_tokens": 200}


def check_choice(choice, finish_reason, message):
    """Checks the answer to the question under a tool choice: step 2 of the flow."""
    if choice == "none":
        assert finish_reason == "stop" and message.content and not message.tool_calls
        return
    assert finish_reason == "tool_calls" and not message.content
    [call] = message.tool_calls
    assert call.function.name == ("predict_weather" if choice == "named" else "get_current_weather")
    assert json.loads(call.function.arguments) == ARGUMENTS
    assert call.id


def histories(message):
    """Messages of step 5: a call as the client holds it, and as the documented flow writes it, without ids."""
    [call] = message.tool_calls
    return [
        QUESTION + [message, {"role": "tool", "tool_call_id": call.id, "content": WEATHER["result"]}],
        QUESTION
        + [{"role": "tool_call", "content": WEATHER["call"]}, {"role": "tool", "content": WEATHER["result"]}],
    ]


def check_answer(finish_reason, message):
    """Checks the answer with the tool's result: step 6 of the flow."""
    assert finish_reason == "stop" and "Auckland" in message.content and not message.tool_calls
