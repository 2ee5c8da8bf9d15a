"""Parses the vectors with the types of OpenAI's Python client: pip install openai, then python validate.py."""

import json
import pathlib

from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk


def parse(model, value):
    # Strict: a number as text, for example, is an error and not converted.
    return model.model_validate_json(json.dumps(value), strict=True)


for path in sorted(pathlib.Path(__file__).parent.joinpath("vectors").glob("*.json")):
    vector = json.loads(path.read_text(encoding="utf-8"))
    if path.name.startswith("completion_"):
        completion = parse(ChatCompletion, vector)
    else:
        state = ChatCompletionStreamState()
        for chunk in vector:
            state.handle_chunk(parse(ChatCompletionChunk, chunk))
        completion = state.current_completion_snapshot
    for choice in completion.choices:
        assert choice.finish_reason in ("stop", "length", "tool_calls"), choice
        for call in choice.message.tool_calls or []:
            assert isinstance(json.loads(call.function.arguments), dict), call
    print(path.name, "ok")
