"""Schemathesis: requests made from the server's OpenAPI document, and checks of the answers."""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from flow import URL

# Fields that need or exclude one another are allowed by the schemas, which could say so only at length.
ACCEPTED = "positive_data_acceptance"


def report(*options):
    """Runs the checks; returns the object of the report."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(sys.executable).with_name("schemathesis")
        command = [program, "run", f"{URL}/openapi.json", "--seed", "1", "--max-examples", "30", "--workers", "2"]
        command += ["--continue-on-failure", "--phases", "examples,coverage,fuzzing", "--report", "json", "--report-dir", folder]
        subprocess.run([*command, *options], stdout=sys.stderr)
        [file] = Path(folder).glob("*.json")
        return json.loads(file.read_text())


def reason(failures):
    """Failures by title, with the operations that have them."""
    counts = Counter()
    for failure in failures:
        counts[failure["title"]] += len(failure["operations"])
    return ", ".join(f"{title} ({count} paths)" for title, count in counts.items())


def show(flow, result, reason=""):
    print(json.dumps({"flow": flow, "result": result, "reason": reason}), flush=True)


found = report("--checks", "all", "--exclude-checks", ACCEPTED)
counts, failures = found["test_cases"], found["failures"]
name = f"all checks but {ACCEPTED} ({counts['generated']} requests to {found['operations']['tested']} paths)"
show(name, "failed" if failures else "passed", reason(failures))

found = report("--checks", ACCEPTED, "--mode", "positive")
name = f"{ACCEPTED} ({found['test_cases']['generated']} requests)"
refused = sum(len(failure["operations"]) for failure in found["failures"])
show(
    name,
    "differs" if refused else "passed",
    f"{refused} paths refuse fields that need or exclude one another, or integers such as 1.0" if refused else "",
)
