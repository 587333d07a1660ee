#!/usr/bin/env python3
"""serve_page.py FOLDER [--port N]: serve the page for the browser on the loopback interface.

Prints the address and serves until Ctrl-C. A taken port is replaced by a free one."""
import argparse
import functools
import http.server
import os
import re
import shutil

# docs/web.md lists the same headers for other servers. Workers take their policy from headers, not
# from the page.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
                               "style-src 'self'; img-src 'self'; manifest-src 'self'; "
                               "worker-src 'self'; connect-src 'self' https: http://localhost:* "
                               "http://127.0.0.1:*; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TYPES = {".js": "text/javascript", ".wasm": "application/wasm",
         ".webmanifest": "application/manifest+json"}
PORT = 8017


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, **TYPES}

    def end_headers(self):
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_):
        pass

    def send_head(self):
        """Answer a request for one range; everything else as the base class does."""
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = self.translate_path(self.path)
        if not wanted or not os.path.isfile(path) or "If-Range" in self.headers:
            return super().send_head()
        file = open(path, "rb")  # closed by the base class
        size = os.fstat(file.fileno()).st_size
        first, last = int(wanted[1]), min(int(wanted[2] or size - 1), size - 1)
        if first > last:
            file.close()
            self.send_error(416)
            return None
        file.seek(first)
        self.send_response(206)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.left = last - first + 1
        return file

    left = None

    def copyfile(self, source, outputfile):
        if self.left is None:
            shutil.copyfileobj(source, outputfile)
            return
        while self.left and (some := source.read(min(self.left, 1 << 16))):
            outputfile.write(some)
            self.left -= len(some)
        self.left = None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A browser may close a connection at any time."""


def server_on(port, folder):
    handler = functools.partial(Handler, directory=folder)
    try:
        return Server(("127.0.0.1", port), handler)
    except OSError:
        return Server(("127.0.0.1", 0), handler)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=PORT)
    args = parser.parse_args()
    with server_on(args.port, args.folder) as server:
        print(f"http://localhost:{server.server_address[1]}/ (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
