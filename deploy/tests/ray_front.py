"""The application and the job of `ray/`, in a Ray of its own on this machine."""

import json
import logging
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import ray
from ray import serve

from cases import busiest
from client import HOST
from processes import DEPLOY, free_port, wait_until_ready

sys.path.insert(0, str(DEPLOY / "ray"))
OPTIONS = f"--threads 1 --allow-host {HOST}"


def start_ray():
    """Starts Ray for two runs of `lm batch`, and then for two replicas and their ingress, which share the CPUs of this machine."""
    # Workers import the application by its name.
    os.environ["PYTHONPATH"] = str(DEPLOY / "ray")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.WARNING)


def programs(word):
    """Processes `lm WORD` of this test's Ray."""
    found = psutil.Process().children(recursive=True)
    return [process for process in found if is_program(process, word)]


def is_program(process, word):
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return len(command) > 1 and command[0].endswith("/lm") and command[1] == word


class RayServe:
    """A front with the interface of `processes.Nginx`; Serve replaces replicas by itself."""

    def __init__(self, lm, affinity=True):
        import serve_app

        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        arguments = {"lm": lm, "replicas": 2, "options": OPTIONS, "affinity": affinity}
        serve.run(serve_app.build(arguments), name="lm", route_prefix="/")
        wait_until_ready(self.url)

    def servers(self):
        return [f"http://{server.cmdline()[3]}" for server in programs("serve")]

    def busiest(self):
        servers = programs("serve")
        return servers[busiest(self.servers())]

    def kill(self):
        """Kills a server; its replica stays and notices."""
        self.busiest().kill()

    def kill_replica(self):
        """Kills the process of a replica, and so its server."""
        self.busiest().parent().kill()

    def restart(self):
        """Waits until Serve has started another replica."""
        end = time.monotonic() + 60
        while len(programs("serve")) < 2:
            assert time.monotonic() < end, "the replica was not replaced in 60 s"
            time.sleep(0.2)
        for url in self.servers():
            wait_until_ready(url)

    def close(self):
        serve.shutdown()


def batch(lm):
    """Yields the row of a batch job: a run of `lm batch` and later a worker of Ray are killed, and each line is answered once, in order."""
    from batch_job import answer_file

    ids = [f"line-{number}" for number in range(120)]
    with tempfile.TemporaryDirectory() as folder:
        requests, answers = Path(folder, "requests.jsonl"), Path(folder, "answers.jsonl")
        requests.write_text("".join(request(name) + "\n" for name in ids))
        killer = Killer()
        try:
            answer_file(str(requests), str(answers), lm, lines=20, cpus=2, options=["--threads", "1"])
        finally:
            killer.stop()
        found = [json.loads(line) for line in answers.read_text().splitlines()]
    assert killer.killed == 2, f"{killer.killed} of 2 processes were killed before the job ended"
    assert [answer["custom_id"] for answer in found] == ids
    assert all(answer["response"]["status_code"] == 200 for answer in found)
    yield "Ray Data", "a run of `lm batch`, then a worker killed", len(ids), "each line answered once, in order"


def request(name):
    message = {"role": "user", "content": f"Hello, {name}"}
    body = {"messages": [message], "max_tokens": 128, "ignore_eos": True}
    return json.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})


class Killer:
    """Kills a run of `lm batch`, and then a worker with its run."""

    def __init__(self):
        self.killed, self.seen, self.job_ended = 0, set(), threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        end = time.monotonic() + 120
        while self.killed < 2 and not self.job_ended.wait(0.3) and time.monotonic() < end:
            try:
                # In the midst of its work: started before the pause.
                for run in self.seen & set(programs("batch")):
                    (run.parent() if self.killed else run).kill()
                    self.killed += 1
                    break
                self.seen = set(programs("batch"))
            except psutil.NoSuchProcess:
                continue

    def stop(self):
        self.job_ended.set()
        self.thread.join()
