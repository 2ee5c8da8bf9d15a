"""Ray Serve application whose replicas are `lm serve` processes.

    serve run serve_app:build lm=lm model=Qwen/Qwen3-0.6B replicas=2

The requests of a conversation go to the replica that has its beginning cached (`affinity=false`: to any).
"""

import asyncio
import hashlib
import json
import socket
import subprocess
import time

import httpx
from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.exceptions import RayError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

ROUTER = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
# Headers of one connection, which the next one has of its own.
CONNECTION_HEADERS = {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
# Attempts to find a replica that takes a request: some seconds, in which one that has ended is left out.
ATTEMPTS = 10
# Servers that may end while they have a request, which may be the reason.
LOSSES = 2
# A replica loads the model in this time.
START_SECONDS = 600
# A server's own limit for the requests that run at its end is 30 s.
STOP_SECONDS = 40


class Unavailable(Exception):
    """The replica's server does not take requests; another one may."""


@serve.deployment(
    max_ongoing_requests=256,
    health_check_period_s=2,
    health_check_timeout_s=10,
    graceful_shutdown_timeout_s=STOP_SECONDS,
)
class LmReplica:
    """An `lm serve` process and a client of it."""

    def __init__(self, lm, model, options):
        self.url = f"http://127.0.0.1:{free_port()}"
        command = [lm, "serve", *([model] if model else []), "--listen", self.url.removeprefix("http://"), "--no-store", *options]
        # The server does not outlive a replica that is killed.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "--", *command])
        self.wait_until_ready()
        self.client = httpx.AsyncClient(base_url=self.url, timeout=httpx.Timeout(10, read=3600), limits=httpx.Limits(max_connections=None))

    def wait_until_ready(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"lm serve ended with code {self.process.returncode}")
            try:
                if httpx.get(f"{self.url}/ready").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise TimeoutError(f"lm serve is not ready after {START_SECONDS} s")

    async def check_health(self):
        """Lets Serve replace a replica whose server has ended."""
        (await self.client.get("/health")).raise_for_status()

    async def answer(self, method, path, headers, body):
        """Yields the status with the headers, then the pieces of the body as they come."""
        request = self.client.build_request(method, path, headers=headers, content=body)
        try:
            response = await self.client.send(request, stream=True)
        except httpx.ConnectError as error:
            raise Unavailable(str(error)) from None
        try:
            if response.status_code == 503:
                raise Unavailable("the server is shutting down")
            yield response.status_code, passed_on(response.headers)
            async for piece in response.aiter_raw():
                yield piece
        finally:
            # A client that leaves ends its request.
            await response.aclose()

    def __del__(self):
        if process := getattr(self, "process", None):
            process.terminate()
            process.wait(timeout=STOP_SECONDS)


@serve.deployment(max_ongoing_requests=1000)
class Ingress:
    """Passes each request to a replica, and to another one while nothing of an answer has come."""

    def __init__(self, replicas, affinity):
        self.replicas, self.affinity = replicas.options(stream=True), affinity

    async def __call__(self, request: Request) -> Response:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        body = await request.body()
        call = request.method, path, passed_on(request.headers), body
        key = conversation(request, body) if self.affinity else ""
        losses = 0
        for attempt in range(ATTEMPTS):
            await asyncio.sleep(0.1 * attempt)
            # Another key chooses another replica.
            pieces = self.replicas.options(session_id=f"{key}#{attempt}" if key and attempt else key).answer.remote(*call)
            try:
                status, headers = await anext(aiter(pieces))
            except (Unavailable, BackPressureError, DeploymentUnavailableError):
                continue
            except RayError:
                losses += 1
                if losses == LOSSES:
                    break
                continue
            return StreamingResponse(rest(pieces), status, headers)
        return unavailable()


async def rest(pieces):
    """The pieces of the body; ends the answer's task when the client leaves."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        pieces.cancel()


def conversation(request, body):
    """Routing key, as that of nginx/lm.js: equal for the requests of a conversation."""
    if session := request.headers.get("x-session-id"):
        return session
    try:
        fields = json.loads(body)
        key = fields.get("prompt_cache_key") or json.dumps(beginning(fields))
    except (ValueError, AttributeError, TypeError):
        key = request.client.host
    return hashlib.sha1(key.encode()).hexdigest()


def beginning(fields):
    """All up to the first message of the user, which the later requests of the conversation repeat."""
    turns = fields.get("messages") or fields.get("input") or fields.get("prompt")
    if isinstance(turns, list):
        users = [place for place, turn in enumerate(turns) if isinstance(turn, dict) and turn.get("role") == "user"]
        turns = turns[: users[0] + 1] if users else turns
    return [fields.get("system"), fields.get("instructions"), turns]


def passed_on(headers):
    return {name: value for name, value in headers.items() if name.lower() not in CONNECTION_HEADERS}


def unavailable():
    error = {"message": "no replica is available", "type": "unavailable_error", "param": None, "code": None}
    return JSONResponse({"error": error}, 503, {"Retry-After": "1"})


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def build(arguments: dict) -> serve.Application:
    """The application; arguments: lm, model, options (of `lm serve`, as one text), replicas, cpus (of a replica), affinity."""
    affinity = str(arguments.get("affinity", "true")).lower() != "false"
    cpus = float(arguments.get("cpus", 1))
    replica = LmReplica.options(
        num_replicas=int(arguments.get("replicas", 2)),
        ray_actor_options={"num_cpus": cpus},
        **({"request_router_config": RequestRouterConfig(request_router_class=ROUTER)} if affinity else {}),
    )
    options = arguments.get("options", f"--threads {max(1, int(cpus))}").split()
    return Ingress.bind(replica.bind(arguments.get("lm", "lm"), arguments.get("model"), options), affinity)
