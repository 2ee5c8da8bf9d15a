"""LangChain's model of Anthropic's API."""

from flow import FUNCTION, LONG, MODEL, QUESTION, RESULT, STOCK, SYSTEM, URL, check_answer, check_call, flow, json, run
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

CHAT = ChatAnthropic(model=MODEL, base_url=URL, api_key="any", max_retries=0, temperature=0, max_tokens=200)
HELLO = [SystemMessage(SYSTEM), HumanMessage("Hello")]
TOOLS = [{"type": "function", "function": FUNCTION}, {"type": "function", "function": STOCK}]


class Colour(BaseModel):
    """Says if a colour is warm."""

    warm: bool


def whole(model, messages):
    return model.invoke(messages)


def streamed(model, messages):
    chunks = list(model.stream(messages))
    message = chunks[0]
    for chunk in chunks[1:]:
        message += chunk
    return message


@flow
def chat_with_a_system_message_and_usage():
    for send in [whole, streamed]:
        message = send(CHAT, HELLO)
        assert message.text and message.usage_metadata["output_tokens"] > 0


@flow
def tool_calls_and_results():
    for send in [whole, streamed]:
        question = HumanMessage(QUESTION)
        message = send(CHAT.bind_tools(TOOLS), [question])
        [call] = message.tool_calls
        check_call(call["name"], call["args"])
        result = ToolMessage(json.dumps(RESULT), tool_call_id=call["id"])
        check_answer(send(CHAT.bind_tools(TOOLS), [question, message, result]).text)


@flow
def forced_tool():
    message = CHAT.bind_tools(TOOLS, tool_choice="get_stock_price").invoke("Hello")
    assert message.tool_calls[0]["name"] == "get_stock_price"


@flow
def structured_output():
    for method in ["function_calling", "json_schema"]:
        assert isinstance(CHAT.with_structured_output(Colour, method=method).invoke(QUESTION), Colour)


@flow
def count_of_tokens():
    assert CHAT.get_num_tokens_from_messages(HELLO) > 5


@flow
def context_window():
    try:
        CHAT.invoke(LONG)
    except ContextOverflowError:
        return
    raise AssertionError("no error")


run()
