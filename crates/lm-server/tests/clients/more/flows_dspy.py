"""DSPy, with its adapters of chat, JSON and tools."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
import litellm
from flow import LONG, MODEL, OPENAI, QUESTION, TooSmall, check_called, flow, get_weather, raises, run


# DSPy sends a response format only to models that are known to read it: to others with LiteLLM, which can be told.
litellm.register_model(
    {f"hosted_vllm/{MODEL}": {"litellm_provider": "hosted_vllm", "mode": "chat", "supports_response_schema": True}}
)


def lm(name=MODEL, provider="hosted_vllm", **options):
    options = {"engine": "litellm", "temperature": 0, "max_tokens": 200, "cache": False, **options}
    return dspy.LM(f"{provider}/{name}", api_base=OPENAI, api_key="any", **options)


class Colour(dspy.Signature):
    """Is the colour warm?"""

    colour: str = dspy.InputField()
    warm: bool = dspy.OutputField()


@flow
def chat():
    [answer] = lm()("Hello")
    assert answer


@flow
def chat_by_its_own_engine():
    assert lm(provider="openai", engine="auto")("Hello")


@flow
def chat_by_responses():
    assert lm(provider="openai", model_type="responses")("Hello")


@flow
def chat_by_completions():
    assert lm(provider="openai", model_type="text")("Hello")


@flow
def json_adapter():
    with dspy.context(lm=lm(), adapter=dspy.JSONAdapter()):
        assert dspy.Predict(Colour)(colour="red").warm in (True, False)


@flow
def chat_adapter():
    # Falls back to the adapter of JSON if the answer has not the form of its prompt.
    with dspy.context(lm=lm(), adapter=dspy.ChatAdapter()):
        assert dspy.Predict(Colour)(colour="red").warm in (True, False)


@flow
def react_agent():
    with dspy.context(lm=lm(), adapter=dspy.JSONAdapter()):
        try:
            dspy.ReAct("question -> answer", tools=[get_weather], max_iters=1)(question=QUESTION)
        except dspy.utils.exceptions.AdapterParseError:
            raise TooSmall("its thoughts fill the limit of tokens")


@flow
def usage():
    with dspy.context(lm=lm(), adapter=dspy.JSONAdapter(), track_usage=True):
        [usage] = dspy.Predict(Colour)(colour="red").get_lm_usage().values()
    assert usage["prompt_tokens"] > 0 and usage["completion_tokens"] > 0


@flow
def embeddings():
    assert len(dspy.Embedder(f"openai/{MODEL}", api_base=OPENAI, api_key="any", caching=False)(["one", "two"])) == 2


@flow
def errors():
    raises(Exception, lm("none"), "Hello")
    raises(dspy.ContextWindowExceededError, lm(), LONG)


run()
