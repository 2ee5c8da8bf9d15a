"""smolagents, whose agents call tools or write Python."""

from flow import CALLED, LONG, MODEL, OPENAI, QUESTION, SYSTEM, TooSmall, flow, get_weather, run
from smolagents import AgentGenerationError, CodeAgent, OpenAIServerModel, ToolCallingAgent, tool
from smolagents.models import ChatMessage, MessageRole


def model(name=MODEL, **options):
    return OpenAIServerModel(model_id=name, api_base=OPENAI, api_key="any", temperature=0, max_tokens=200, **options)


def message(text, role=MessageRole.USER):
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])


HELLO = [message(SYSTEM, MessageRole.SYSTEM), message("Hello")]
WEATHER = tool(get_weather)


@flow
def chat_with_a_system_message_and_usage():
    answer = model().generate(HELLO)
    assert answer.content and answer.token_usage.input_tokens > 0 and answer.token_usage.output_tokens > 0


@flow
def streamed_chat():
    deltas = list(model().generate_stream(HELLO))
    assert "".join(delta.content or "" for delta in deltas) and deltas[-1].token_usage.output_tokens > 0


@flow
def forced_tool_call():
    [call] = model().generate([message(QUESTION)], tools_to_call_from=[WEATHER]).tool_calls
    assert call.function.name == "get_weather"


@flow
def streamed_tool_call():
    deltas = list(model().generate_stream([message(QUESTION)], tools_to_call_from=[WEATHER]))
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    assert [call.function.name for call in calls if call.function.name] == ["get_weather"]


@flow
def tool_calling_agent():
    for stream in [False, True]:
        agent = ToolCallingAgent(tools=[WEATHER], model=model(), max_steps=2, verbosity_level=0, stream_outputs=stream)
        result = agent.run(QUESTION, return_full_result=True)
        assert result.token_usage.output_tokens > 0
        assert CALLED and CALLED[0].startswith("Paris"), CALLED


@flow
def code_agent():
    agent = CodeAgent(tools=[WEATHER], model=model(), max_steps=1, verbosity_level=0)
    try:
        agent.run(QUESTION)
    except AgentGenerationError as error:
        if "prompt is too long" in str(error):
            raise TooSmall("the prompt of 4,600 tokens is longer than the context of 2,048")
        raise


@flow
def structured_output():
    schema = {"type": "object", "properties": {"warm": {"type": "boolean"}}, "required": ["warm"]}
    form = {"type": "json_schema", "json_schema": {"name": "colour", "strict": True, "schema": schema}}
    assert "warm" in model().generate(HELLO, response_format=form).content


@flow
def errors():
    for name, text in [("none", "Hello"), (MODEL, LONG)]:
        try:
            model(name).generate([message(text)])
        except Exception as error:
            assert error.status_code == (404 if name == "none" else 400)
        else:
            raise AssertionError("no error")


run()
