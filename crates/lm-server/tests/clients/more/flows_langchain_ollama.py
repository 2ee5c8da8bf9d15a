"""LangChain's model of Ollama's API."""

from flow import FUNCTION, LONG, MODEL, QUESTION, RESULT, STOCK, SYSTEM, URL, check_answer, check_call, flow, json, run
from langchain_ollama import ChatOllama, OllamaEmbeddings
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from ollama import ResponseError
from pydantic import BaseModel

CHAT = ChatOllama(model=MODEL, base_url=URL, temperature=0, num_predict=200)
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
def structured_output():
    assert isinstance(CHAT.with_structured_output(Colour, method="json_schema").invoke(QUESTION), Colour)


@flow
def embeddings():
    assert len(OllamaEmbeddings(model=MODEL, base_url=URL).embed_documents(["one", "two"])) == 2


@flow
def errors():
    for name, text, status in [("none", "Hello", 404), (MODEL, LONG, 400)]:
        try:
            ChatOllama(model=name, base_url=URL).invoke(text)
        except ResponseError as error:
            assert error.status_code == status, error
        else:
            raise AssertionError("no error")


run()
