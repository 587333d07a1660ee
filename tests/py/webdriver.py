"""webdriver.py - a browser without a window, driven by chromedriver's HTTP interface (W3C
WebDriver)."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

KEYS = {"Tab": "\ue004", "Enter": "\ue007", "End": "\ue010", "Home": "\ue011", "Up": "\ue013",
        "Down": "\ue015", "PageDown": "\ue00f"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def lacks():
    """Return what a session needs and this machine does not have, or an empty string."""
    if not shutil.which("chromedriver") or not shutil.which("chromium"):
        return "chromium and chromium-driver are not installed"
    try:  # chromedriver looks for the browser there
        socket.getaddrinfo("localhost", 80)
    except OSError:
        return "the name localhost has no address: there is no /etc/hosts"
    return ""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Browser:
    """A session of Chromium; a context manager. `profile` is a temporary folder."""

    def __init__(self, profile, dark=False, width=1200, height=900):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], start_new_session=True,
                                       env={**os.environ, "TMPDIR": str(profile)},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait_until_ready()
            args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                    "--disable-dev-shm-usage", f"--user-data-dir={profile}",
                    f"--window-size={width},{height}"]
            if dark:
                args.append("--force-dark-mode")
            options = {"args": args, "binary": shutil.which("chromium")}
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
            self.session = "/session/" + made["sessionId"]
        except BaseException:
            self._stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", self.session)
        finally:
            self._stop()

    def _stop(self):
        os.killpg(self.driver.pid, signal.SIGTERM)
        self.driver.wait()

    def _wait_until_ready(self):
        while True:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                if self.driver.poll() is not None:
                    raise
            time.sleep(0.05)

    def _call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as e:
            raise RuntimeError(f"{method} {path}: {e.read().decode(errors='replace')[:500]}") from e

    def open(self, path):
        self._call("POST", self.session + "/url", {"url": f"file://{path}"})

    def run(self, script, *args):
        """Run a script in the page; return what the script returns."""
        return self._call("POST", self.session + "/execute/sync", {"script": script,
                                                                   "args": args})

    def press(self, *keys):
        """Press and release keys, one after the other: names of KEYS, or single characters."""
        actions = [{"type": kind, "value": KEYS.get(k, k)} for k in keys
                   for kind in ("keyDown", "keyUp")]
        self._call("POST", self.session + "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def messages(self):
        """Return the messages of the console since the last call: errors and refused loads."""
        return [m["message"] for m in
                self._call("POST", self.session + "/se/log", {"type": "browser"})]

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self._call("GET", self.session + "/screenshot")))
