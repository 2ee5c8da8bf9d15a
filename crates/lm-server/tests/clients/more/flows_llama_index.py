"""LlamaIndex, with its models for servers of OpenAI's API and of Ollama's."""

from flow import LONG, MODEL, OPENAI, QUESTION, SYSTEM, URL, check_call, check_called, flow, get_stock_price, get_weather, run
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

OPTIONS = {"api_base": OPENAI, "api_key": "any", "temperature": 0, "max_tokens": 200, "max_retries": 0}
MODELS = {
    "openai-like": OpenAILike(
        model=MODEL, is_chat_model=True, is_function_calling_model=True, context_window=2048, **OPTIONS
    ),
    "ollama": Ollama(model=MODEL, base_url=URL, temperature=0, context_window=2048),
}
TOOLS = [FunctionTool.from_defaults(get_weather), FunctionTool.from_defaults(get_stock_price)]
HELLO = [ChatMessage(role="system", content=SYSTEM), ChatMessage(role="user", content="Hello")]


class Colour(BaseModel):
    """Says if a colour is warm."""

    name: str = Field(max_length=20)
    warm: bool


def chat(model):
    assert model.chat(HELLO).message.content
    assert model.complete("Hello").text


def streamed_chat(model):
    assert [*model.stream_chat(HELLO)][-1].message.content


async def asynchronous_chat(model):
    assert (await model.achat(HELLO)).message.content


def tool_call(model):
    [call] = model.get_tool_calls_from_response(model.chat_with_tools(TOOLS, user_msg=QUESTION))
    check_call(call.tool_name, call.tool_kwargs)


async def agent_with_tools(model):
    agent = FunctionAgent(tools=TOOLS, llm=model)
    assert str(await agent.run(QUESTION))
    check_called()


def structured_prediction(model):
    assert isinstance(model.as_structured_llm(Colour).complete(QUESTION).raw, Colour)


def errors(model):
    try:
        model.complete(LONG)
    except Exception as error:
        assert "prompt is too long" in str(error) and error.status_code == 400, error
    else:
        raise AssertionError("no error")


def add(function, name):
    def of_model():
        return function(MODELS[name])

    of_model.__name__ = f"{name}: {function.__name__}"
    flow(of_model)


for name in MODELS:
    for function in [chat, streamed_chat, asynchronous_chat, tool_call, agent_with_tools, structured_prediction, errors]:
        add(function, name)


@flow
def completion_of_a_prompt():
    assert OpenAILike(model=MODEL, is_chat_model=False, **OPTIONS).complete("One, two,").text


@flow
def embeddings():
    model = OpenAILikeEmbedding(model_name=MODEL, api_base=OPENAI, api_key="any")
    assert len(model.get_text_embedding_batch(["one", "two"])) == 2


run()
