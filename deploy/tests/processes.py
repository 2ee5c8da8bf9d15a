"""Processes of the tests: replicas of `lm serve`, and nginx with the configuration of this folder."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from cases import busiest
from client import HOST

DEPLOY = Path(__file__).resolve().parent.parent


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until_ready(url, seconds=60):
    """Waits for `/ready`; raises TimeoutError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{url}/ready", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{url}/ready did not answer 200 in {seconds} s")


class Replica:
    """A server with the embedded model, on one thread."""

    def __init__(self, lm):
        self.lm, self.port = lm, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = [self.lm, "serve", "--listen", str(self.port), "--threads", "1", "--no-store", "--allow-host", HOST]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_until_ready(self.url)

    def stop(self, number=signal.SIGKILL):
        """Sends a signal and returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


class Nginx:
    """nginx before two replicas; without `affinity` requests take turns."""

    def __init__(self, lm, affinity=True):
        self.replicas = [Replica(lm), Replica(lm)]
        self.folder, port = Path(tempfile.mkdtemp(prefix="lm-nginx-")), free_port()
        self.url = f"http://127.0.0.1:{port}"
        # nginx's workers, which may be another user's, keep large bodies in it.
        self.folder.chmod(0o755)
        shutil.copy(DEPLOY / "nginx/lm.js", self.folder)
        (self.folder / "lm.conf").write_text(self.configuration(port, affinity))
        (self.folder / "nginx.conf").write_text(main(self.folder))
        command = ["nginx", "-p", str(self.folder), "-e", "error.log", "-c", "nginx.conf"]
        subprocess.run([*command, "-t", "-q"], check=True)
        self.process = subprocess.Popen(command)
        wait_until_ready(self.url)

    def configuration(self, port, affinity):
        """The installed file with the addresses of this test."""
        text = (DEPLOY / "nginx/lm.conf").read_text().replace("listen 80;", f"listen 127.0.0.1:{port};")
        for number, replica in enumerate(self.replicas, 8081):
            text = text.replace(f"127.0.0.1:{number}", f"127.0.0.1:{replica.port}")
        return text if affinity else text.replace("hash $lm_conversation consistent;", "")

    def servers(self):
        return [replica.url for replica in self.replicas]

    def kill(self):
        self.end_busiest(signal.SIGKILL)

    def drain(self):
        code = self.end_busiest(signal.SIGTERM)
        assert code == 0, f"lm serve ended with code {code} after SIGTERM"

    def end_busiest(self, number):
        self.ended = self.replicas[busiest(self.servers())]
        return self.ended.stop(number)

    def restart(self):
        self.ended.start()

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        for replica in self.replicas:
            replica.stop()
        shutil.rmtree(self.folder)


def main(folder):
    """What Debian's nginx.conf has around a file of conf.d."""
    module = os.environ.get("NGINX_JS_MODULE", "/usr/lib/nginx/modules/ngx_http_js_module.so")
    paths = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    return f"""load_module {module};
daemon off;
worker_processes 2;
pid {folder}/pid;
events {{}}
http {{ access_log {folder}/access.log; {paths} include lm.conf; }}
"""
