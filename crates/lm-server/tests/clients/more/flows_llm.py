"""The command line program llm."""

import json
import os
import subprocess
import sys
from pathlib import Path

from flow import MODEL, OPENAI, flow, run

PROGRAM = Path(sys.executable).with_name("llm")
FOLDER = Path("llm-settings")
MODELS = f"""\
- model_id: local
  model_name: {MODEL}
  api_base: {OPENAI}
  supports_tools: true
  supports_schema: true
"""
FUNCTION = '''
def get_weather(location: str) -> str:
    "Returns the weather for a given location."
    return "72 F and sunny"
'''


def llm(*options):
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "extra-openai-models.yaml").write_text(MODELS)
    environment = {**os.environ, "LLM_USER_PATH": str(FOLDER), "OPENAI_API_KEY": "any"}
    command = [PROGRAM, "prompt", "--model", "local", "--no-log", "-o", "temperature", "0", *options]
    return subprocess.run(command, env=environment, text=True, capture_output=True, check=True, timeout=60)


@flow
def chat():
    assert llm("Hello").stdout.strip()
    assert llm("Hello", "--no-stream", "--system", "You are a helpful assistant.").stdout.strip()


@flow
def tool_that_is_run():
    for options in [["--no-stream"], []]:
        output = llm("How is the weather in Paris?", "--functions", FUNCTION, "--tools-debug", *options)
        assert "get_weather" in output.stderr and "72 F" in output.stderr and output.stdout.strip(), output


@flow
def schema():
    schema = {"type": "object", "properties": {"warm": {"type": "boolean"}}, "required": ["warm"]}
    assert json.loads(llm("Hello", "--schema", json.dumps(schema)).stdout)["warm"] in (True, False)


run()
