"""Runner of the flows of a client in Python: prints a line of JSON for each, with its name, result and reason."""

import asyncio
import inspect
import json
import os
import sys
import traceback

URL = os.environ["LM_URL"]
OPENAI = f"{URL}/v1"
MODEL = "pocket"
SYSTEM = "You are a helpful assistant."
QUESTION = "How is the weather in Paris?"
RESULT = {"location": "Paris", "temperature": 72, "unit": "F", "humidity": 50, "condition": "Sunny"}
FLOWS = []


def get_weather(location: str) -> str:
    """Returns the weather for a given location.

    Args:
        location: The location to get the weather for.
    """
    CALLED.append(location)
    return json.dumps({**RESULT, "location": location})


def get_stock_price(stock_symbol: str) -> str:
    """Returns the stock price for a given stock symbol.

    Args:
        stock_symbol: The stock symbol to get the price for.
    """
    CALLED.append(stock_symbol)
    return json.dumps({"stock_symbol": stock_symbol, "price": 173.25, "currency": "USD"})


CALLED = []
SCHEMA = {
    "type": "object",
    "properties": {"location": {"type": "string", "description": "The location to get the weather for."}},
    "required": ["location"],
}
FUNCTION = {"name": "get_weather", "description": "Returns the weather for a given location.", "parameters": SCHEMA}
STOCK = {
    "name": "get_stock_price",
    "description": "Returns the stock price for a given stock symbol.",
    "parameters": {
        "type": "object",
        "properties": {
            "stock_symbol": {"type": "string", "description": "The stock symbol to get the price for."}
        },
        "required": ["stock_symbol"],
    },
}
TOOLS = [{"type": "function", "function": FUNCTION}, {"type": "function", "function": STOCK}]
LONG = "word " * 5000


class TooSmall(Exception):
    """The model cannot do it; the server is not at fault."""


def flow(function):
    """Adds a flow, whose name is that of the function."""
    FLOWS.append(function)
    return function


def check_call(name, arguments):
    """Checks the call of the question, with its arguments as text or as an object."""
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    # Some clients change the order of a schema's keys, and the model then writes "Paris, FR".
    assert name == "get_weather" and list(arguments) == ["location"], (name, arguments)
    assert arguments["location"].startswith("Paris"), arguments


def check_called():
    """Checks that the tool of the question has run once."""
    assert len(CALLED) == 1 and CALLED[0].startswith("Paris"), CALLED


def check_answer(text):
    """Checks the answer to the question, after the tool's result."""
    assert "Paris" in text and "72" in text, text


def raises(kind, function, *args, **options):
    """Calls the function, and returns the error of this kind that it raises."""
    try:
        answer = function(*args, **options)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}, but {answer}")


def last_line(error):
    """The error as one short line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == sys.argv[0]]
    at = f" (line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{at}: {' '.join(str(error).split())}"


def result_of(function, loop):
    CALLED.clear()
    try:
        answer = function()
        if inspect.iscoroutine(answer):
            loop.run(asyncio.wait_for(answer, 60))
        return "passed", ""
    except TooSmall as reason:
        return "too small", str(reason)
    except Exception as error:
        if os.environ.get("LM_TRACE"):
            traceback.print_exc()
        return "failed", last_line(error)


def run():
    """Runs the flows that the arguments name, or all."""
    with asyncio.Runner() as loop:
        for function in FLOWS:
            name = function.__name__.replace("_", " ")
            if not sys.argv[1:] or name in sys.argv[1:]:
                result, reason = result_of(function, loop)
                print(json.dumps({"flow": name, "result": result, "reason": reason}), flush=True)
