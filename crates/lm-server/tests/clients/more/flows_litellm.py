"""LiteLLM, by each of its providers that speaks an API of the server."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from flow import (
    LONG,
    MODEL,
    OPENAI,
    QUESTION,
    RESULT,
    SYSTEM,
    TOOLS,
    URL,
    check_answer,
    check_call,
    flow,
    json,
    raises,
    run,
)
from pydantic import BaseModel, Field

litellm.suppress_debug_info = True
PROVIDERS = {
    "openai": {"model": f"openai/{MODEL}", "api_base": OPENAI},
    "hosted_vllm": {"model": f"hosted_vllm/{MODEL}", "api_base": OPENAI},
    "anthropic": {"model": f"anthropic/{MODEL}", "api_base": URL},
    "ollama_chat": {"model": f"ollama_chat/{MODEL}", "api_base": URL},
}
MESSAGES = [{"role": "user", "content": QUESTION}]
HELLO = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hello"}]


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def complete(provider, **request):
    return litellm.completion(
        **PROVIDERS[provider], api_key="any", num_retries=0, **{"max_tokens": 200, "temperature": 0, **request}
    )


def joined(provider, **request):
    chunks = list(complete(provider, stream=True, stream_options={"include_usage": True}, **request))
    return litellm.stream_chunk_builder(chunks, messages=request["messages"])


def chat(provider):
    for send in [complete, joined]:
        answer = send(provider, messages=HELLO)
        assert answer.choices[0].message.content and answer.choices[0].finish_reason == "stop"
        assert answer.usage.prompt_tokens > 0 and answer.usage.completion_tokens > 0


def tool_calls_and_results(provider):
    for send in [complete, joined]:
        message = send(provider, messages=MESSAGES, tools=TOOLS).choices[0].message
        [call] = message.tool_calls
        check_call(call.function.name, call.function.arguments)
        result = {"role": "tool", "tool_call_id": call.id, "content": json.dumps(RESULT)}
        messages = [*MESSAGES, message.model_dump(), result]
        check_answer(send(provider, messages=messages, tools=TOOLS).choices[0].message.content)


def forced_tool(provider):
    choice = {"type": "function", "function": {"name": "get_stock_price"}}
    message = complete(provider, messages=MESSAGES, tools=TOOLS, tool_choice=choice).choices[0].message
    assert message.tool_calls[0].function.name == "get_stock_price"


def response_format(provider):
    answer = complete(provider, messages=MESSAGES, response_format=Colour)
    Colour.model_validate_json(answer.choices[0].message.content)


def errors(provider):
    unknown = {**PROVIDERS[provider], "model": PROVIDERS[provider]["model"].replace(MODEL, "none")}
    raises(litellm.NotFoundError, litellm.completion, **unknown, api_key="any", num_retries=0, messages=HELLO)
    long = [{"role": "user", "content": LONG}]
    # LiteLLM has no such error for Ollama.
    error = litellm.BadRequestError if provider == "ollama_chat" else litellm.ContextWindowExceededError
    raises(error, complete, provider, messages=long)


def add(function, provider):
    def of_provider():
        function(provider)

    of_provider.__name__ = f"{provider}: {function.__name__}"
    flow(of_provider)


for name in PROVIDERS:
    for function in [chat, tool_calls_and_results, forced_tool, response_format, errors]:
        if (name, function) != ("ollama_chat", forced_tool):
            add(function, name)


@flow
def responses():
    tools = [{"type": "function", **tool["function"]} for tool in TOOLS]
    answer = litellm.responses(**PROVIDERS["openai"], api_key="any", input=QUESTION, tools=tools)
    [call] = [item for item in answer.output if item.type == "function_call"]
    check_call(call.name, call.arguments)


@flow
def text_completion():
    model = {"model": f"text-completion-openai/{MODEL}", "api_base": OPENAI}
    assert litellm.text_completion(**model, api_key="any", prompt="One, two,", max_tokens=5).choices[0].text


@flow
def embeddings():
    for provider in ["openai", "hosted_vllm"]:
        assert len(litellm.embedding(**PROVIDERS[provider], api_key="any", input=["one", "two"]).data) == 2
    ollama = {"model": f"ollama/{MODEL}", "api_base": URL}
    assert len(litellm.embedding(**ollama, input=["one", "two"]).data) == 2


run()
