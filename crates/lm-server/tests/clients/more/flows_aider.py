"""Aider. `crates/lm-server/tests/agents.rs` has it edit a file with given replies."""

import os
import subprocess
import sys
from pathlib import Path

from flow import MODEL, OPENAI, flow, run

PROGRAM = Path(sys.executable).with_name("aider")
OPTIONS = ["--no-git", "--no-pretty", "--yes-always", "--no-check-update", "--analytics-disable"]
OPTIONS += ["--no-show-model-warnings", "--model", f"openai/{MODEL}"]
OPTIONS += ["--chat-history-file", "history.md", "--input-history-file", "history.txt"]
ENVIRONMENT = {
    **os.environ,
    "OPENAI_API_BASE": OPENAI,
    "OPENAI_API_KEY": "any",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


@flow
def context_window():
    command = [PROGRAM, *OPTIONS, "--edit-format", "diff", "--message", "Hello"]
    output = subprocess.run(command, env=ENVIRONMENT, text=True, capture_output=True, timeout=120).stdout
    assert "has hit a token limit" in output, output


run()
