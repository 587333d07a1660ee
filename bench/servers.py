"""servers.py - files on servers: bytes from nginx on the loopback interface."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

from harness import HEFT, measure_in_turns, seconds, speed
from inputs import write_safetensors

COUNTS = (4, 8)
# The link: seconds, bytes per second, and bytes on the way.
DELAY, RATE, WINDOW = 0.05, 250 * 1000**2, 6 << 20
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")


@contextlib.contextmanager
def nginx(folder):
    """Serve a folder on the loopback interface; yield the URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    temporary = "\n".join(f"{n}_temp_path {folder}/{n};" for n in
                          ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    configuration = pathlib.Path(folder, "nginx.conf")
    configuration.write_text(f"""daemon off; pid {folder}/pid; worker_processes 2;
        error_log {folder}/error.log; events {{}} http {{ access_log off; sendfile on; {temporary}
        server {{ listen 127.0.0.1:{port}; root {folder}; }} }}""")
    child = subprocess.Popen([NGINX, "-c", str(configuration), "-e", f"{folder}/error.log"])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        child.terminate()
        child.wait()


@contextlib.contextmanager
def slow_link(url):
    """Put a link of 100 ms to the server and back in front of it; yield the URL to use."""
    arguments = [int(url.rsplit(":", 1)[1]), DELAY, RATE, WINDOW]
    command = [sys.executable, str(pathlib.Path(__file__).with_name("slow_link.py"))]
    with subprocess.Popen(command + list(map(str, arguments)), stdout=subprocess.PIPE) as child:
        try:
            yield f"http://127.0.0.1:{int(child.stdout.readline())}"
        finally:
            child.terminate()


def curl_of_ranges(inputs, url, size, count):
    """Return the command that downloads `count` ranges at the same time, and its files."""
    config, step = inputs.path(f"curl{count}.conf"), -(-size // count)
    parts = [inputs.path(f"part{i}") for i in range(count)]
    pathlib.Path(config).write_text("next\n".join(
        f'url = "{url}"\nrange = {i * step}-{min((i + 1) * step, size) - 1}\noutput = "{part}"\n'
        for i, part in enumerate(parts)))
    return ["curl", "-s", "--parallel", "--parallel-immediate", "--parallel-max", str(count),
            "-K", config], [*parts, config]


def near(r, inputs, url, size, quick):
    """Compare conversions of a file on the loopback interface with curl."""
    out, made, runs = inputs.path("remote.bpk"), [], {}
    for count in COUNTS:
        curl, files = curl_of_ranges(inputs, url, size, count)
        made += files
        convert = ["env", f"HEFT_CONNECTIONS={count}", HEFT, "convert", "--no-sync", url, out]
        runs["heft", count] = lambda convert=convert: (inputs.drop(out), seconds(*convert))[1]
        runs["curl", count] = lambda curl=curl: seconds(*curl)
    took = measure_in_turns(3 if quick else 7, runs)
    for count in COUNTS:
        r.ratio(f"safetensors from a server, {count} connections", took["heft", count],
                took["curl", count], f"curl, {count} ranges", 1 / 0.9,
                own=(speed(size, took["heft", count]), "GB/s"))
    inputs.drop(out, *made)


def far(r, inputs, url, name, size, quick):
    """Compare commands that need each byte of a tensor with the time of the link for them."""
    out = inputs.path("far.safetensors")
    with slow_link(url) as base:
        took = measure_in_turns(2 if quick else 3, {
            "read": lambda: seconds(HEFT, "cat", f"{base}/{name}", "weight"),
            "cast to bf16": lambda: (inputs.drop(out), seconds(
                HEFT, "convert", "--no-sync", "--cast", "bf16", f"{base}/{name}", out))[1]})
    for what, times in took.items():
        r.ratio(f"tensor over a link of 100 ms, {what}", times, [size / RATE] * len(times),
                "its bandwidth", 1.1, own=(speed(size, times), "GB/s"))
    inputs.drop(out)


def remote(r, inputs, formats, quick):
    """heft convert of a file on nginx on the loopback interface, compared with curl, which
    downloads as many ranges into as many files; page cache warm, 1 GiB. A tensor of 1 GB over a
    link that takes 100 ms there and back, 250 MB/s and at most 6 MiB on the way for each
    connection (bench/slow_link.py), compared with 250 MB/s."""
    if not NGINX or not shutil.which("curl"):
        r.missing("safetensors from a server", "curl")
        return
    path = inputs.model("safetensors", 144 if quick else 1008)
    large = inputs.path("one.safetensors")
    size, one = os.path.getsize(path), 1000**3
    write_safetensors(large, "F32", {"weight": [one // 4]})
    folder = os.path.dirname(os.path.abspath(path))
    os.chmod(folder, 0o755)
    with nginx(folder) as url:
        near(r, inputs, f"{url}/{os.path.basename(path)}", size, quick)
        far(r, inputs, url, os.path.basename(large), one, quick)
    inputs.drop(path, large)
