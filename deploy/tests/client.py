"""A client that says what became of each request: a whole answer, a status, or a broken one."""

import http.client
import json
import random
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urlsplit

HOST = "llm.example.com"


@dataclass
class Outcome:
    """What the client saw of one request."""

    kind: str  # "complete", "broken" (cut after its beginning), "refused" (no answer), or the status of an error
    streamed: bool
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0


def send(url, messages, streamed, tokens):
    """Sends one chat completion; returns its connection."""
    body = {"messages": messages, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": streamed}
    if streamed:
        body["stream_options"] = {"include_usage": True}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Host": HOST, "Content-Type": "application/json"})
    return connection


def ask(url, messages, streamed, tokens):
    """Says what became of a chat completion; never raises for what a server does."""
    begun = False
    try:
        with closing(send(url, messages, streamed, tokens)) as connection:
            response = connection.getresponse()
            begun = True
            if response.status != 200:
                return Outcome(str(response.status), streamed)
            return read_stream(response) if streamed else read_whole(response)
    except (OSError, http.client.HTTPException, ValueError):
        return Outcome("broken" if begun else "refused", streamed)


def leave(url):
    """Asks for a long stream, and closes the connection after its first line."""
    with closing(send(url, [{"role": "user", "content": "Hello"}], True, 1500)) as connection:
        response = connection.getresponse()
        assert response.readline().startswith(b"data:")
        response.close()


def read_whole(response):
    reply = json.loads(response.read())
    return complete(reply["choices"][0]["message"]["content"], reply["usage"], False)


def read_stream(response):
    """Reads events up to `[DONE]`; a stream without it, or with an error, is broken."""
    text, usage = "", None
    for line in response:
        data = line.decode().removeprefix("data:").strip()
        if data == "[DONE]":
            return complete(text, usage, True)
        if not line.startswith(b"data:"):
            continue
        event = json.loads(data)
        if "error" in event:
            break
        usage = event.get("usage") or usage
        text += "".join(choice["delta"].get("content") or "" for choice in event["choices"])
    return Outcome("broken", True)


def complete(text, usage, streamed):
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Outcome("complete", streamed, text, usage["prompt_tokens"], cached)


class Load:
    """Clients that converse at the same time, until they are stopped; half of the requests are streamed."""

    def __init__(self, url, clients=8, tokens=256):
        self.url, self.tokens, self.outcomes, self.stopping = url, tokens, [], threading.Event()
        self.threads = [threading.Thread(target=self.client, args=(number,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def client(self, number):
        turn = number
        while not self.stopping.is_set():
            messages = [{"role": "user", "content": f"Client {number}, question {turn}"}]
            self.outcomes.append(ask(self.url, messages, turn % 2 == 0, self.tokens))
            turn += 1

    def wait_for_more(self, number, seconds):
        """Waits until that many further requests have ended; raises TimeoutError."""
        end, wanted = time.monotonic() + seconds, len(self.outcomes) + number
        while len(self.outcomes) < wanted:
            if time.monotonic() > end:
                raise TimeoutError(f"{wanted - len(self.outcomes)} of {number} requests have not ended in {seconds} s")
            time.sleep(0.02)

    def stop(self):
        """Lets the running requests end, and returns all outcomes."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=90)
            assert not thread.is_alive(), "a request hangs"
        return self.outcomes


def converse(url, conversations=6, turns=5):
    """Holds conversations turn about, in a changing order, and returns the outcomes."""
    order, outcomes = random.Random(7), []
    histories = [[{"role": "system", "content": f"Conversation {n}. " + "You answer briefly. " * 8}] for n in range(conversations)]
    for turn in range(turns):
        for history in order.sample(histories, conversations):
            history.append({"role": "user", "content": f"Question {turn}: what is the weather in Paris?"})
            outcome = ask(url, history, turn % 2 == 0, 16)
            history.append({"role": "assistant", "content": outcome.text})
            outcomes.append(outcome)
    return outcomes
