"""servers.py - files on servers: bytes from nginx on the loopback interface."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time

from harness import HEFT, measure_in_turns, seconds, speed

RANGES = 8
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


def remote(r, inputs, formats, quick):
    """heft convert of a file on nginx on the loopback interface, compared with curl, which
    downloads eight ranges at the same time into eight files; 1 GiB, page cache warm."""
    if not NGINX or not shutil.which("curl"):
        r.missing("safetensors from a server", "curl")
        return
    path = inputs.model("safetensors", 144 if quick else 1008)
    size, folder = os.path.getsize(path), os.path.dirname(os.path.abspath(path))
    os.chmod(folder, 0o755)
    out, step = inputs.path("remote.bpk"), -(-size // RANGES)
    parts = [inputs.path(f"part{i}") for i in range(RANGES)]
    with nginx(folder) as url:
        url = f"{url}/{os.path.basename(path)}"
        config = inputs.path("curl.conf")
        ends = [(i * step, min((i + 1) * step, size) - 1) for i in range(RANGES)]
        pathlib.Path(config).write_text("next\n".join(
            f'url = "{url}"\nrange = {first}-{last}\noutput = "{part}"\n'
            for part, (first, last) in zip(parts, ends)))
        curl = ["curl", "-s", "--parallel", "--parallel-immediate", "--parallel-max", str(RANGES),
                "-K", config]
        took = measure_in_turns(3 if quick else 7, {
            "heft": lambda: (inputs.drop(out), seconds(HEFT, "convert", "--no-sync", url, out))[1],
            "curl": lambda: (inputs.drop(*parts), seconds(*curl))[1]})
    r.ratio("safetensors from a server", took["heft"], took["curl"], "curl, eight ranges", 1 / 0.9,
            own=(speed(size, took["heft"]), "GB/s"))
    inputs.drop(path, out, config, *parts)
