"""Parses the vectors with the types of the Python clients: pip install openai anthropic ollama, then python validate.py."""

import base64
import json
import pathlib
import struct

from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from ollama import ChatResponse, GenerateResponse
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import Completion, CreateEmbeddingResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter


def parse(model, value):
    # Strict: a number as text, for example, is an error and not converted.
    return model.model_validate_json(json.dumps(value), strict=True)


def floats(embedding):
    # The client asks for base64 and decodes it after parsing; its type has a list.
    data = base64.b64decode(embedding)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def validate_embeddings(vector):
    for item in vector["data"]:
        if isinstance(item["embedding"], str):
            item["embedding"] = floats(item["embedding"])
        assert abs(sum(value * value for value in item["embedding"]) - 1) < 1e-6, item
    response = parse(CreateEmbeddingResponse, vector)
    assert [item.index for item in response.data] == list(range(len(response.data)))
    return [item.embedding for item in response.data]


def read_events(vector):
    message, arguments = None, {}
    for event in vector:
        # The client drops pings before it reads events.
        if event["type"] != "ping":
            event = TypeAdapter(RawMessageStreamEvent).validate_json(json.dumps(event), strict=True)
            message = accumulate_event(event=event, current_snapshot=message, json_bufs=arguments)
    return message


def validate_message(message):
    assert message.stop_reason in ("end_turn", "max_tokens", "stop_sequence", "tool_use"), message
    assert (message.stop_sequence is not None) == (message.stop_reason == "stop_sequence"), message
    blocks = [block.type for block in message.content]
    assert ("tool_use" in blocks) == (message.stop_reason == "tool_use"), message
    assert all(block.input is not None for block in message.content if block.type == "tool_use"), message
    return [block.to_dict() for block in message.content]


embeddings = []
messages = {}
for path in sorted(pathlib.Path(__file__).parent.joinpath("vectors").glob("*.json")):
    vector = json.loads(path.read_text(encoding="utf-8"))
    if path.name.startswith("embedding_"):
        embeddings.append(validate_embeddings(vector))
        print(path.name, "ok")
        continue
    if path.name.startswith(("message_", "events_")):
        whole = path.name.startswith("message_")
        message = parse(Message, vector) if whole else read_events(vector)
        messages[path.stem] = validate_message(message)
        print(path.name, "ok")
        continue
    if path.name.startswith("ollama_"):
        model = GenerateResponse if "generate" in path.name else ChatResponse
        # Times are text, which is no time in strict mode.
        objects = [model.model_validate_json(json.dumps(item)) for item in (vector if isinstance(vector, list) else [vector])]
        assert [item.done for item in objects] == [False] * (len(objects) - 1) + [True], path
        assert objects[-1].done_reason in ("stop", "length") and objects[-1].eval_count > 0, path
        print(path.name, "ok")
        continue
    if path.name.startswith("text_"):
        for item in vector if isinstance(vector, list) else [vector]:
            for choice in item["choices"]:
                scores = choice["logprobs"] or {}
                # The first token of a prompt has no scores, which the client's type of `logprobs` does not know.
                assert None not in scores.get("token_logprobs", [])[1:]
                for column in ("token_logprobs", "top_logprobs"):
                    scores[column] = [score for score in scores.get(column) or [] if score is not None]
                # A chunk has no finish reason before the last one.
                choice["finish_reason"] = choice["finish_reason"] or "stop"
            assert parse(Completion, item).object == "text_completion"
        print(path.name, "ok")
        continue
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

for one, other in zip(*embeddings, strict=True):
    assert all(abs(a - b) < 1e-7 for a, b in zip(one, other, strict=True)), "both encodings give the same vectors"

for name in ("thinking", "calls"):
    assert messages[f"events_{name}"] == messages[f"message_{name}"], f"{name}: a stream adds up to the message"
