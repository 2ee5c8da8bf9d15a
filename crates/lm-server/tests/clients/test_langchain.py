"""LangChain's client of the API, and its tests of models."""

import openai
import pytest
from conftest import KEY, URL
from flows import ARGUMENTS, QUESTION, TOOLS, WEATHER
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from pydantic import BaseModel, ValidationError

MODEL = {
    "model": "pocket",
    "base_url": URL,
    "api_key": KEY,
    "temperature": 0,
    "max_tokens": 200,
    "max_retries": 0,
    "stream_usage": True,
}

NOT_THE_SCHEMA = (openai.LengthFinishReasonError, OutputParserException, ValidationError)

# Tests that the embedded model of 4.7 M parameters does not pass, and their errors.
TOO_SMALL = {
    "test_tool_calling": (AssertionError, "the model calls the function with other numbers than 3"),
    "test_tool_calling_async": (AssertionError, "the model calls the function with other numbers than 3"),
    "test_json_mode": (NOT_THE_SCHEMA, "the model does not know which keys to write"),
    "test_unicode_tool_call_integration": (AssertionError, "the model knows no Chinese"),
}


@pytest.fixture(scope="module")
def short():
    """Bias towards the closing quotation mark: the model ends its texts only with it."""
    client = openai.OpenAI(base_url=URL.removesuffix("/v1"), api_key=KEY)
    tokens = client.post("/tokenize", cast_to=object, body={"content": '"'})["tokens"]
    return {token: 100 for token in tokens}


def model():
    return ChatOpenAI(**MODEL)


def test_bind_tools_and_results():
    bound = model().bind_tools(TOOLS)
    question = HumanMessage(WEATHER["question"])
    called = bound.invoke([question])
    [call] = called.tool_calls
    assert (call["name"], call["args"]) == ("get_current_weather", ARGUMENTS)
    answer = bound.invoke([question, called, ToolMessage(WEATHER["result"], tool_call_id=call["id"])])
    assert "Auckland" in answer.content and answer.usage_metadata["total_tokens"] > 0


@pytest.mark.parametrize("choice", ["any", "predict_weather"])
def test_bind_tools_with_a_choice(choice):
    [call] = model().bind_tools(TOOLS, tool_choice=choice, strict=True).invoke(QUESTION).tool_calls
    assert call["name"] == ("get_current_weather" if choice == "any" else choice)


def test_streamed_calls():
    chunks = list(model().bind_tools(TOOLS).stream(QUESTION))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    [call] = whole.tool_calls
    assert len(chunks) > 3 and call["args"] == ARGUMENTS


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_with_structured_output(method, short):
    class Weather(BaseModel):
        """Weather of a place."""

        place: str
        sunny: bool

    structured = ChatOpenAI(**MODEL, logit_bias=short).with_structured_output(Weather, method=method)
    assert isinstance(structured.invoke(QUESTION), Weather)


class TestStandard(ChatModelIntegrationTests):
    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        return MODEL

    # A schema that is not strict permits further keys, and the model writes them without end.
    @property
    def structured_output_kwargs(self):
        return {"strict": True}

    @property
    def supports_json_mode(self):
        return True

    @property
    def supports_model_override(self):
        return True

    @property
    def model_override_value(self):
        return "gpt-4o-mini"

    @pytest.fixture
    def model(self, request, short):
        name = request.node.originalname
        extra = {**MODEL, **getattr(request, "param", {})}
        if "structured_output" in name:
            extra["logit_bias"] = short
        if name in TOO_SMALL:
            raises, reason = TOO_SMALL[name]
            request.node.add_marker(pytest.mark.xfail(raises=raises, reason=reason, strict=False))
        return ChatOpenAI(**extra)
