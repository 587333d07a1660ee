"""s3_server.py - a server of S3 for tests: objects by ranges and multipart uploads, with signatures.

Every request must have a signature of version 4, computed here from the specification, over its
method, path, query, signed headers and body."""
import hashlib
import hmac
import http.server
import threading
import urllib.parse

KEY, SECRET, REGION, SESSION = "AKIDEXAMPLE", "wJalr/secret+key", "eu-west-1", "session/token=="
SMALLEST_PART = 5 << 20


def sign(request, body):
    """Return the signature that the request should have, or the reason why it can have none."""
    given = request.headers.get("Authorization", "")
    scheme, _, rest = given.partition(" ")
    fields = dict(f.strip().partition("=")[::2] for f in rest.split(","))
    if scheme != "AWS4-HMAC-SHA256" or set(fields) != {"Credential", "SignedHeaders", "Signature"}:
        return "the header Authorization is missing"
    key, day, region, service, end = fields["Credential"].split("/")
    time = request.headers["X-Amz-Date"]
    if (key, region, service, end) != (KEY, REGION, "s3", "aws4_request") or not time.startswith(day):
        return "a wrong credential scope"
    digest = hashlib.sha256(body).hexdigest()
    stated = request.headers.get("x-amz-content-sha256")
    if stated not in (digest, "UNSIGNED-PAYLOAD"):
        return "a wrong digest of the body"
    names = fields["SignedHeaders"].split(";")
    if not {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names) or names != sorted(names):
        return "headers that must be signed are not"
    if request.headers.get("x-amz-security-token") != SESSION or "x-amz-security-token" not in names:
        return "the token of the session is missing"
    url = urllib.parse.urlsplit(request.path)
    pairs = urllib.parse.parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query))
    quote = lambda s: urllib.parse.quote(s, safe="-_.~")
    query = "&".join(sorted(f"{quote(k)}={quote(v)}" for k, v in pairs))
    path = urllib.parse.quote(urllib.parse.unquote(url.path), safe="/-_.~")
    headers = "".join(f"{n}:{' '.join(request.headers[n].split())}\n" for n in names)
    canonical = "\n".join([request.command, path, query, headers, ";".join(names), stated])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    secret = ("AWS4" + SECRET).encode()
    for part in (day, region, "s3", "aws4_request"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    right = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    return None if hmac.compare_digest(right, fields["Signature"]) else "a wrong signature"


class S3Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_any(self):
        s = self.server
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed
            self.close_connection = True
            return
        wrong = sign(self, body)
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        with s.lock:
            s.requests.append((self.command, self.path))
            s.path = path
            plan = s.plan(self.command, query) or {}
        if "gate" in plan:
            plan["gate"].wait(600)
        if wrong:
            s.refusals.append(wrong)
            self.answer(403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{wrong}</Message></Error>")
        elif "status" in plan:
            self.answer(plan["status"], plan.get("text", "<Error/>"))
        else:
            self.is_lost = plan.get("lost")
            getattr(self, f"on_{self.command.lower()}")(path, query, body)

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    is_lost = False  # the request is obeyed, and the connection dies before the answer

    def answer(self, status, body=b"", **headers):
        if self.is_lost:
            self.close_connection = True
            return
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def on_get(self, path, query, body):
        data = self.server.objects.get(path)
        if data is None:
            self.answer(404, "<Error><Code>NoSuchKey</Code></Error>")
            return
        if not data:
            self.answer(416, Content_Range="bytes */0")
            return
        first, last = (int(n) for n in self.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, len(data) - 1)
        if first > last:
            self.answer(416, Content_Range=f"bytes */{len(data)}")
            return
        self.answer(206, data[first:last + 1], ETag=self.server.etags.get(path, f'"{id(data)}-{len(data)}"'),
                    Content_Range=f"bytes {first}-{last}/{len(data)}")

    def on_post(self, path, query, body):
        s = self.server
        if "uploads" in query:
            with s.lock:
                s.count += 1
                name = f"id+{s.count}/="
                s.uploads[name] = (path, {})
            self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                        "</InitiateMultipartUploadResult>")
            return
        target, parts = s.uploads.get(query["uploadId"], (None, None))
        if target is None:
            self.answer(404, "<Error><Code>NoSuchUpload</Code></Error>")
            return
        rows = body.decode().removeprefix("<CompleteMultipartUpload>").split("<Part>")[1:]
        listed = [(int(r.split("<PartNumber>")[1].split("<")[0]), r.split("<ETag>")[1].split("<")[0])
                  for r in rows]
        stored = sorted((n, etag) for n, (etag, _) in (parts or {}).items())
        small = any(len(parts[n][1]) < SMALLEST_PART for n, _ in listed[:-1]) if listed == stored else True
        if target != path or not listed or small:
            self.answer(400, "<Error><Code>InvalidPart</Code></Error>")
        elif self.headers.get("If-None-Match") == "*" and path in s.objects:
            self.answer(412, "<Error><Code>PreconditionFailed</Code></Error>")
        else:
            s.objects[path] = b"".join(parts[n][1] for n, _ in listed)
            sums = b"".join(bytes.fromhex(etag.strip('"')) for _, etag in listed)
            s.etags[path] = f'"{hashlib.md5(sums).hexdigest()}-{len(listed)}"'
            del s.uploads[query["uploadId"]]
            self.answer(200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def on_put(self, path, query, body):
        target, parts = self.server.uploads.get(query.get("uploadId"), (None, None))
        if target != path:
            self.answer(404, "<Error><Code>NoSuchUpload</Code></Error>")
            return
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        parts[int(query["partNumber"])] = (etag, body)
        self.answer(200, ETag=etag)

    def on_delete(self, path, query, body):
        found = self.server.uploads.pop(query["uploadId"], None)
        self.answer(204 if found else 404)


class S3Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), S3Handler)
        self.lock, self.objects, self.etags, self.count = threading.Lock(), {}, {}, 0
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.reset()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def reset(self, plan=None):
        self.requests, self.refusals, self.uploads = [], [], {}
        self.plan = plan or (lambda method, query: None)

    def handle_error(self, *args):
        pass
