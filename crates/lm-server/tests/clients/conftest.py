"""The server under test, from the environment, and a file of results: a line for each test with its file, name, result and reason."""

import os

URL = os.environ["LM_URL"]
KEY = os.environ["LM_KEY"]


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    result, reason = report.outcome, ""
    if hasattr(report, "wasxfail") and report.skipped:
        result, reason = "too small", report.wasxfail
    elif report.skipped:
        reason = report.longrepr[2].removeprefix("Skipped: ")
    elif report.failed:
        reason = str(report.longreprtext.splitlines()[-1])
    file, *_, name = report.nodeid.split("::")
    with open(os.environ["LM_RESULTS"], "a") as results:
        results.write(f"{file}\t{name}\t{result}\t{reason}\n")
