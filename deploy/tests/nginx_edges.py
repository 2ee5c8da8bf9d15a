"""nginx alone: routing by keys, bodies of any size, and errors as a client reads them."""

import json
import urllib.error
import urllib.request

from cases import metric
from processes import Nginx

SERIES = 'lm_http_requests_total{path="/tokenize",status="200"}'


def rows(lm):
    """Yields the rows of the table."""
    front = Nginx(lm)
    try:
        yield "nginx", "keys: `X-Session-ID`, `prompt_cache_key`, equal beginnings", 24, keys(front)
        yield "nginx", "bodies of 2 MB and 17 MB, `/metrics`", 3, sizes(front)
        yield "nginx", "no replica runs", 1, no_replica(front)
    finally:
        front.close()


def keys(front):
    """Requests with a common key go to one replica, whatever else differs; those with other keys do not all."""
    for number in range(6):
        request(front, {"content": "a", "messages": [{"role": "user", "content": str(number)}]}, {"X-Session-ID": "one"})
    assert sorted(counts(front)) == [0, 6], counts(front)
    before = counts(front)
    for number in range(6):
        request(front, {"content": "a", "prompt_cache_key": "one", "messages": [{"role": "user", "content": str(number)}]})
    assert counts(front) in ([before[0] + 6, before[1]], [before[0], before[1] + 6]), counts(front)
    before = counts(front)
    for number in range(6):
        turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}, {"role": "assistant", "content": str(number)}]
        request(front, {"content": "a", "messages": turns})
    assert counts(front) in ([before[0] + 6, before[1]], [before[0], before[1] + 6]), counts(front)
    before = counts(front)
    for number in range(6):
        request(front, {"content": "a", "messages": [{"role": "user", "content": f"Another {number}"}]})
    assert all(now > then for now, then in zip(counts(front), before)), counts(front)
    return "one replica for a key, both for several"


def sizes(front):
    status, _ = request(front, {"content": "a", "ignored": "x" * 2_000_000})
    assert status == 200, status
    status, body = request(front, {"content": "x" * 17_000_000})
    assert (status, body["error"]["type"]) == (413, "invalid_request_error"), (status, body)
    status, _ = request(front, None, path="/metrics")
    assert status == 404, status
    return "200, 413 and 404"


def no_replica(front):
    for replica in front.replicas:
        replica.stop()
    status, body = request(front, {"content": "a"})
    assert (status, body["error"]["type"]) == (503, "unavailable_error"), (status, body)
    return "503 with `Retry-After`"


def counts(front):
    return [metric(url, SERIES) for url in front.servers()]


def request(front, body, headers={}, path="/tokenize"):
    """Status and JSON body; for 503 the header `Retry-After` has to be there."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(front.url + path, data, headers), timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        assert error.code != 503 or error.headers["Retry-After"], error.headers
        text = error.read()
        return error.code, json.loads(text) if text.startswith(b"{") else None
