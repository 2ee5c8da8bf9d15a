"""Cases of a front, two replicas behind a router: a replica ends under load; conversations with affinity and without."""

import re
import time
import urllib.request
from collections import Counter

from client import Load, ask, converse, leave

CLIENTS = 8
SECONDS = 60


def rows(name, start, events):
    """Yields the rows of the table; `start(affinity)` starts a front, whose methods `events` end a replica."""
    rates = {}
    for affinity in (True, False):
        front = start(affinity)
        try:
            rates[affinity] = hit_rate(front)
            if affinity:
                yield name, "a client leaves in the midst of a stream", *client_leaves(front)
                for title, method, may_break in events:
                    yield name, title, *under_load(front, getattr(front, method), may_break)
        finally:
            front.close()
    assert rates[True] > rates[False], f"affinity does not help: {rates}"
    yield name, "6 conversations of 5 turns", 60, f"{rates[True]:.0%} of the prompts' tokens cached; {rates[False]:.0%} without affinity"


def under_load(front, event, may_break):
    """Ends a replica while clients are served, and counts what they saw; only streams that had begun may break, and only if `may_break`."""
    load = Load(front.url, CLIENTS)
    try:
        load.wait_for_more(CLIENTS, SECONDS)
        event()
        load.wait_for_more(2 * CLIENTS, SECONDS)
        front.restart()
        load.wait_for_more(2 * CLIENTS, SECONDS)
    finally:
        counts = Counter(map(kind, load.stop()))
    assert set(counts) <= {"complete", "stream cut off"}, counts
    broken = counts["stream cut off"]
    assert broken <= (CLIENTS if may_break else 0), counts
    last = ask(front.url, [{"role": "user", "content": "Hello"}], True, 8)
    assert last.kind == "complete", last
    return counts.total(), f"streams cut off: {broken}; no other failure" if broken else "no failure"


def kind(outcome):
    return "stream cut off" if outcome.kind == "broken" and outcome.streamed else outcome.kind


def hit_rate(front):
    """Part of the prompts' tokens that were cached."""
    outcomes = converse(front.url)
    assert all(outcome.kind == "complete" for outcome in outcomes), Counter(map(kind, outcomes))
    return sum(outcome.cached_tokens for outcome in outcomes) / sum(outcome.prompt_tokens for outcome in outcomes)


def client_leaves(front):
    """A client that leaves in the midst of a stream ends its request: its server counts it."""
    before = cancelled(front)
    leave(front.url)
    end = time.monotonic() + SECONDS
    while cancelled(front) == before:
        assert time.monotonic() < end, f"the request was not cancelled in {SECONDS} s"
        time.sleep(0.05)
    return 1, "its request is cancelled"


def cancelled(front):
    return sum(metric(url, 'lm_failed_replies_total{model_name="pocket",status="499"}') for url in front.servers())


def busiest(urls):
    """Number of the server with the most running requests; waits until one runs."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        running = [metric(url, 'lm_requests_running{model_name="pocket"}') for url in urls]
        if max(running) > 0:
            return running.index(max(running))
    raise TimeoutError("no server has a running request")


def metric(url, series):
    """Value of a series of a server; 0 if it has none yet."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as response:
        found = re.search(rf"^{re.escape(series)} (\d+)", response.read().decode(), re.M)
    return int(found[1]) if found else 0
