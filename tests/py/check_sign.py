#!/usr/bin/env python3
"""check_sign.py HEFT loaded|linked: signatures of Heft and of Python's cryptography, each checked
by the other.  The second word says how Heft gets libcrypto.

The test has an implementation of DSSE and of the statement of OpenSSF Model Signing of its own. It
makes signatures that Heft must accept, and changed ones that Heft must refuse with the right rule.
TAP on stdout."""
import base64
import datetime
import hashlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
except ImportError:
    print("1..0 # SKIP python3-cryptography is not installed")
    sys.exit(0)

HEFT = pathlib.Path(sys.argv[1]).absolute()
PUBLIC = "--public-key"
TYPE = "application/vnd.in-toto+json"
MEDIA = "application/vnd.dev.sigstore.bundle.v0.3+json"
CURVES = {"P-256": (ec.SECP256R1(), hashes.SHA256()), "P-384": (ec.SECP384R1(), hashes.SHA384()),
          "P-521": (ec.SECP521R1(), hashes.SHA512())}
FILES = {"config.json": b'{"a": 1}\n', "model.safetensors": bytes(range(256)) * 9001,
         "sub/a": b"in a folder\n", "sub-b": b"sorts after sub/a\n", "empty": b"",
         "\u00fcber \"q\".txt": b"a name with quotes\n"}


def heft(*words, **more):
    p = subprocess.run([HEFT, *map(str, words)], capture_output=True, check=False, **more)
    return p.returncode, p.stdout.decode(), p.stderr.decode(errors="replace")


def new_model(folder):
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("not signed")
    (folder / ".gitattributes").write_text("not signed")
    return folder


def write_keys(folder, key, name="key", password=None):
    encryption = (serialization.BestAvailableEncryption(password) if password else
                  serialization.NoEncryption())
    (folder / f"{name}.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    public = key.public_key().public_bytes(serialization.Encoding.PEM,
                                           serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)
    return folder / f"{name}.pem", folder / f"{name}.pub"


# ---- the format, independently --------------------------------------------------------------


def message(payload, kind=TYPE):
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def ordered(names):
    return sorted(names, key=lambda n: pathlib.PurePosixPath(n).parts)


def statement(resources, model="m", method="files", algorithm="sha256", ignored=()):
    """resources: list of (name, digest in hex)."""
    root = hashlib.sha256(b"".join(bytes.fromhex(d) for _, d in resources)).hexdigest()
    serialization_ = {"method": method, "hash_type": algorithm, "allow_symlinks": False}
    if ignored:
        serialization_["ignore_paths"] = list(ignored)
    if method == "shards":
        serialization_["shard_size"] = 1000
    return {"_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": model, "digest": {"sha256": root}}],
            "predicateType": "https://model_signing/signature/v1.0",
            "predicate": {"serialization": serialization_, "resources": [
                {"name": n, "algorithm": algorithm, "digest": d} for n, d in resources]}}


def by_file(files, hash_=hashlib.sha256):
    return [(n, hash_(files[n]).hexdigest()) for n in ordered(files)]


def by_range(files, step=1000):
    return [(f"{n}:{at}:{min(at + step, len(files[n]))}",
             hashlib.sha256(files[n][at:at + step]).hexdigest())
            for n in ordered(files) for at in range(0, len(files[n]), step)]


def material_of(public):
    return {"publicKey": {"hint": hashlib.sha256(public.read_bytes()).hexdigest()},
            "tlogEntries": []}


def bundle(what, key, hash_, material):
    payload = what if isinstance(what, bytes) else json.dumps(what, indent=1).encode()
    sig = key.sign(message(payload), ec.ECDSA(hash_))
    return {"mediaType": MEDIA, "verificationMaterial": material,
            "dsseEnvelope": {"payload": base64.b64encode(payload).decode(), "payloadType": TYPE,
                             "signatures": [{"sig": base64.b64encode(sig).decode(),
                                             "keyid": ""}]}}


def judge(path, key, hash_, files, model):
    """Return complaints about a signature that Heft wrote."""
    b = json.loads(path.read_text())
    public = key.public_key().public_bytes(serialization.Encoding.PEM,
                                           serialization.PublicFormat.SubjectPublicKeyInfo)
    e = b["dsseEnvelope"]
    payload = base64.b64decode(e["payload"], validate=True)
    s = json.loads(payload)
    complaints = []
    try:
        key.public_key().verify(base64.b64decode(e["signatures"][0]["sig"]), message(payload),
                                ec.ECDSA(hash_))
    except InvalidSignature:
        complaints.append("the signature is wrong")
    ignored = s["predicate"]["serialization"].pop("ignore_paths")
    wanted = statement(by_file(files), model)
    if s != wanted:
        complaints.append(f"{s} instead of {wanted}")
    if list(files) != ["."] and not {".git", ".gitignore", "model.sig"} <= set(ignored):
        complaints.append(f"ignored: {ignored}")
    if b["verificationMaterial"]["publicKey"]["hint"] != hashlib.sha256(public).hexdigest():
        complaints.append("the hint is not that of the key")
    if (b["mediaType"], e["payloadType"]) != (MEDIA, TYPE):
        complaints.append("types")
    return complaints


def verify(signature, model, *how):
    code, out, err = heft("verify", "--json", "--signature", signature, *how, model)
    try:
        report = json.loads(out)
    except ValueError:
        report = {"findings": []}
    return code, sorted((f["rule"], pathlib.Path(f["path"]).name) for f in report["findings"]), err


def expect(title, got, code, rules=(), text=""):
    wrong = [] if got[:2] == (code, sorted(rules)) and text in got[2] else [
        f"{got} instead of {(code, sorted(rules), text)}"]
    return title, wrong


# ---- checks ---------------------------------------------------------------------------------


def written_by_heft(work):
    for curve, (kind, hash_) in CURVES.items():
        key = ec.generate_private_key(kind)
        private, public = write_keys(work, key)
        model = new_model(work / "m")
        code, _, err = heft("sign", "--key", private, model)
        yield f"cryptography accepts the signature of heft, {curve}", [err] if code else judge(
            model / "model.sig", key, hash_, FILES, "m")
        yield expect(f"heft accepts its own signature, {curve}",
                     verify(model / "model.sig", model, PUBLIC, public), 0)
    one, out = model / "model.safetensors", work / "one.sig"
    code, _, err = heft("sign", "--key", private, "-o", out, one)
    yield "a single file is signed as '.'", [err] if code else judge(
        out, key, hash_, {".": one.read_bytes()}, "model.safetensors")
    yield expect("the signature of a single file", verify(out, one, PUBLIC, public), 0)
    yield expect("the signature of a folder for a file",
                 verify(model / "model.sig", one, PUBLIC, public), 2, (), "give the folder")
    code, _, err = heft("sign", "--force", "--ignore", "sub", "--key", private, model)
    rest = {n: d for n, d in FILES.items() if not n.startswith("sub/")}
    yield "--ignore", [err] if code else judge(model / "model.sig", key, hash_, rest, "m")
    (model / "sub/more").write_text("ignored, too")
    yield expect("ignored files may change", verify(model / "model.sig", model, PUBLIC, public), 0)


NOT_SIGNED = {".git", ".gitattributes", ".github", ".gitignore", "model.sig"}


def ignored_by(signature):
    payload = base64.b64decode(json.loads(signature.read_text())["dsseEnvelope"]["payload"])
    return json.loads(payload)["predicate"]["serialization"]["ignore_paths"]


def ignored_paths(work):
    """Each way to name a file or folder leaves out that file alone, which the signature lists."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = write_keys(work, key)
    model = new_model(work / "m")
    (work / "elsewhere").write_text("x")
    for typed, names in {
        "sub": ["sub"], "./sub": ["sub"], "sub/": ["sub"], "sub/.": ["sub"], ".//sub": ["sub"],
        "m/sub": ["sub"], "./m/sub/": ["sub"], "sub/../sub": ["sub"], "sub/x/..": [],
        str(model / "sub"): ["sub"], "sub/a": ["sub/a"], "empty": ["empty"],
        "sub-b": ["sub-b"], "none": [], "m": [], ".": [], "": [], "/": [], "../elsewhere": [],
        str(work / "elsewhere"): [], "elsewhere": [], "m/none": [], "*": [], "sub\\": []
    }.items():
        code, _, err = heft("sign", "--force", "--ignore", typed, "--key", private, "m", cwd=work)
        if not names:
            refused = code == 2 and "below" in err
            yield f"--ignore {typed!r} is refused", [] if refused else [code, err]
            continue
        rest = {n: d for n, d in FILES.items()
                if not any(pathlib.PurePath(n).is_relative_to(i) for i in names)}
        wrong = [err] if code else judge(model / "model.sig", key, hashes.SHA256(), rest, "m")
        found = set() if code else set(ignored_by(model / "model.sig")) - NOT_SIGNED
        yield f"--ignore {typed!r}", wrong or ([] if found == set(names) else [found])
        got = verify(model / "model.sig", model, "--public-key", public)
        yield expect(f"after --ignore {typed!r}", got, 0)
    (model / "m/sub").mkdir(parents=True)
    (model / "m/sub/a").write_text("x")
    code, _, err = heft("sign", "--force", "--ignore", "m/sub", "--key", private, "m", cwd=work)
    yield "two paths for --ignore", [] if code == 2 and "absolute path" in err else [code, err]
    code, _, err = heft("sign", "--force", "--ignore", "x", "--key", private, "m/empty", cwd=work)
    yield "--ignore for a file", [] if code == 2 and "folder" in err else [code, err]


def single_files(work):
    """A signature of a file holds for the name of the file."""
    private, public = write_keys(work, ec.generate_private_key(ec.SECP256R1()))
    one, other, link = (work / n for n in ("one.st", "other.st", "link.st"))
    one.write_bytes(b"weights")
    other.write_bytes(b"weights")
    link.symlink_to("one.st")
    sig = work / "name.sig"
    heft("sign", "--key", private, "-o", sig, one)
    yield expect("a file under its name", verify(sig, one, "--public-key", public), 0)
    yield expect("a file under another name", verify(sig, other, "--public-key", public), 1,
                 [("signature/name", "other.st")])
    heft("sign", "--force", "--key", private, "-o", sig, link)
    yield expect("a link under its name", verify(sig, link, "--public-key", public), 0)
    yield expect("a link's target", verify(sig, one, "--public-key", public), 1,
                 [("signature/name", "one.st")])


def written_by_python(work):
    for curve, (kind, hash_) in CURVES.items():
        key = ec.generate_private_key(kind)
        _, public = write_keys(work, key)
        model, sig = new_model(work / "m"), work / "p.sig"
        for title, what in (
            ("files", statement(by_file(FILES))),
            ("blake2b", statement(by_file(FILES, hashlib.blake2b), algorithm="blake2b")),
            ("shards", statement(by_range(FILES), method="shards"))):
            sig.write_text(json.dumps(bundle(what, key, hash_, material_of(public))))
            yield expect(f"heft accepts a signature of cryptography, {curve}, {title}",
                         verify(sig, model, PUBLIC, public), 0)
        no_hint = bundle(statement(by_file(FILES)), key, hash_, {"publicKey": {"hint": ""}})
        sig.write_text(json.dumps(no_hint))
        yield expect(f"a signature without a hint, {curve}", verify(sig, model, PUBLIC, public), 0)


def changed_models(work):
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = write_keys(work, key)
    sig, ranges = work / "s.sig", work / "r.sig"
    heft("sign", "--key", private, "-o", sig, new_model(work / "m"))
    ranges.write_text(json.dumps(bundle(statement(by_range(FILES), method="shards"), key,
                                        hashes.SHA256(), material_of(public))))

    def flip(model):
        data = bytearray(FILES["model.safetensors"])
        data[1500] ^= 1
        (model / "model.safetensors").write_bytes(data)

    def cut(model):
        os.truncate(model / "model.safetensors", 1500)

    def extend(model):
        with open(model / "model.safetensors", "ab") as f:
            f.write(b"x")

    def swap(model):
        (model / "sub-b").rename(model / "t")
        (model / "sub/a").rename(model / "sub-b")
        (model / "t").rename(model / "sub/a")

    def become_link(model):
        (model / "sub-b").rename(model / "target")
        (model / "sub-b").symlink_to("target")

    def become_pipe(model):
        (model / "config.json").unlink()
        os.mkfifo(model / "config.json")

    name = "model.safetensors"
    for title, change, rules in (
        ("a flipped bit", flip, [("changed", name)]),
        ("a truncated file", cut, [("changed", name)]),
        ("a longer file", extend, [("changed", name)]),
        ("swapped files", swap, [("changed", "a"), ("changed", "sub-b")]),
        ("a missing file", lambda m: (m / "config.json").unlink(), [("missing", "config.json")]),
        ("an added file", lambda m: (m / "sub/new.py").write_text("x"), [("unlisted", "new.py")]),
        ("a hidden file", lambda m: (m / ".hidden").write_text("x"), [("unlisted", ".hidden")]),
        ("a link in the folder", lambda m: (m / "link").symlink_to("config.json"),
         [("link", "link"), ("unlisted", "link")]),
        ("a signed file that became a link", become_link, [("link", "sub-b"),
                                                           ("unlisted", "target")]),
        ("a link to nothing", lambda m: (m / "link").symlink_to("nothing"), [("unlisted", "link")]),
        ("a link to a folder", lambda m: (m / "link").symlink_to("."), [("link", "link")]),
        ("a pipe", lambda m: os.mkfifo(m / "sub/pipe"), [("unlisted", "pipe")]),
        ("a file that became a pipe", become_pipe, [("missing", "config.json"),
                                                    ("unlisted", "config.json")])):
        model = new_model(work / "m")
        change(model)
        rules = [("signature/" + r, n) for r, n in rules]
        yield expect(title, verify(sig, model, PUBLIC, public), 1, rules)
        got = verify(ranges, model, PUBLIC, public)
        ok = got[0] == 1 and {r.split("/")[1] for r, _ in rules} <= {
            r.split("/")[1] for r, _ in got[1]}
        yield title + ", signed by ranges", [] if ok else [got]
    model = new_model(work / "m")
    (work / "other name").symlink_to("m")
    (model / "link").symlink_to("nothing")
    yield expect("a model behind a link", verify(sig, work / "other name", PUBLIC, public), 1,
                 [("signature/unlisted", "link")])
    for title, make, text in (
        ("a link to nothing is not signed", lambda path: path.symlink_to("nothing"),
         "missing file"),
        ("a pipe is not signed", os.mkfifo, "not a regular file")):
        model = new_model(work / "m")
        make(model / "odd")
        code, _, err = heft("sign", "--key", private, "-o", work / "x.sig", model)
        yield title, [] if (code == 2 and text in err and
                            not (work / "x.sig").exists()) else [(code, err)]
        code, _, err = heft("sign", "--key", private, "--ignore", "odd", "-o", work / "x.sig",
                            model)
        yield title + " if it is ignored", [] if code == 0 else [(code, err)]
        yield expect(title + ", and is not missed", verify(work / "x.sig", model, PUBLIC, public),
                     0)
        (work / "x.sig").unlink()
    model = new_model(work / "m")
    (model / "link").symlink_to("config.json")
    code, _, err = heft("sign", "--key", private, "-o", work / "x.sig", model)
    yield expect("a link that is signed", verify(work / "x.sig", model, PUBLIC, public), 0)
    (work / "x.sig").unlink()
    model = new_model(work / "m")
    (model / "out").symlink_to("/etc/hostname")
    yield expect("a link out of the folder", verify(sig, model, PUBLIC, public), 4, (),
                 "leaves the model's folder")
    code, _, err = heft("sign", "--key", private, "-o", work / "x.sig", model)
    yield "a link out of the folder is not signed", [] if (
        code == 4 and "leaves" in err and not (work / "x.sig").exists()) else [(code, err)]


def snapshots(work):
    """Files of a snapshot in the cache of Hugging Face are links to blobs."""
    private, public = write_keys(work, ec.generate_private_key(ec.SECP256R1()))
    repository, sig = work / "models--o--n", work / "snapshot.sig"
    snapshot, blobs = repository / "snapshots/0123", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for name in ("config.json", "model.safetensors"):
        digest = hashlib.sha256(FILES[name]).hexdigest()
        (blobs / digest).write_bytes(FILES[name])
        (snapshot / name).symlink_to(f"../../blobs/{digest}")
    code, _, err = heft("sign", "--key", private, "-o", sig, snapshot)
    yield "a snapshot is signed", [err] if code else []
    yield expect("a snapshot", verify(sig, snapshot, PUBLIC, public), 0)
    (work / "link").symlink_to(snapshot)
    yield expect("a snapshot behind a link", verify(sig, work / "link", PUBLIC, public), 0)
    (blobs / "other").write_bytes(b"{}")
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to("../../blobs/other")
    yield expect("a link to another blob", verify(sig, snapshot, PUBLIC, public), 1,
                 [("signature/changed", "config.json")])
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to("../../refs")
    (repository / "refs").write_bytes(FILES["config.json"])
    yield expect("a link to a file beside the blobs", verify(sig, snapshot, PUBLIC, public), 4,
                 (), "leaves the model's folder")


def changed_signatures(work):
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    _, public = write_keys(work, key)
    _, wrong = write_keys(work, other, "other")
    model, sig = new_model(work / "m"), work / "c.sig"
    good_statement = statement(by_file(FILES))
    good = bundle(good_statement, key, hashes.SHA256(), material_of(public))

    def put(b):
        sig.write_text(b if isinstance(b, str) else json.dumps(b))
        return verify(sig, model, PUBLIC, public)

    def changed(path, value):
        b = json.loads(json.dumps(good))
        at = b
        for step in path[:-1]:
            at = at[step]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
        return b

    def signed(change=None, **more):
        s = json.loads(json.dumps(good_statement))
        if change:
            change(s)
        s.update(more)
        return bundle(s, key, hashes.SHA256(), material_of(public))

    def raw(old, new):
        text = json.dumps(good_statement).replace(old, new, 1)
        return bundle(text.encode("utf-8", "surrogateescape"), key, hashes.SHA256(),
                      material_of(public))

    put(good)
    yield expect("another key", verify(sig, model, PUBLIC, wrong), 1,
                 [("signature/key", "c.sig")])
    put(changed(("verificationMaterial", "publicKey", "hint"), ""))
    yield expect("another key without a hint", verify(sig, model, PUBLIC, wrong), 1,
                 [("signature/invalid", "c.sig")])
    tampered = json.dumps(statement(by_file({**FILES, "config.json": b"evil"}))).encode()
    envelope = ("dsseEnvelope", "payload")
    invalid = [("signature/invalid", "c.sig")]
    yield expect("another statement", put(changed(
        envelope, base64.b64encode(tampered).decode())), 1, invalid)
    mixed = bundle(good_statement, other, hashes.SHA256(), material_of(public))
    yield expect("signed by another key under this hint", put(mixed), 1, invalid)
    for title, at, code in (
        ("a signature without bytes", ("dsseEnvelope", "signatures", 0, "sig"), 1),
        ("no payload", envelope, 3),
        ("no signatures", ("dsseEnvelope", "signatures"), 3),
        ("no envelope", ("dsseEnvelope",), 3),
        ("no material", ("verificationMaterial",), 3),
        ("no media type", ("mediaType",), 3)):
        yield expect(title, put(changed(at, "" if code == 1 else None)), code,
                     invalid if code == 1 else ())
    payload = good["dsseEnvelope"]["payload"]
    twice = good["dsseEnvelope"]["signatures"] * 2
    for title, b, code, text in (
        ("text", "not a signature", 3, "at byte 0"),
        ("nothing", "", 3, ""),
        ("half of a signature", json.dumps(good)[:300], 3, "at byte"),
        ("text after the bundle", json.dumps(good) + "x", 3, "at byte"),
        ("a list", "[]", 3, "expected an object"),
        ("deep nesting", '{"x":' + "[" * 100000, 5, "nested deeper"),
        ("two signatures", changed(("dsseEnvelope", "signatures"), twice), 3, "more than one"),
        ("no signature in the list", changed(("dsseEnvelope", "signatures"), []), 3, "no sig"),
        ("bad base64", changed(envelope, "a"), 3, "base64"),
        ("digits as a payload", changed(envelope, 12345678), 3, "expected a string"),
        ("signatures that are no list", changed(("dsseEnvelope", "signatures"), twice[0]), 3,
         "expected an array"),
        ("bad base64 in the middle", changed(envelope, "a=aa"), 3, "base64"),
        ("base64 with bits left over", changed(envelope, "aaB="), 3, "base64"),
        ("another media type", changed(("mediaType",), MEDIA + "x"), 5, "media type"),
        ("another payload type", changed(("dsseEnvelope", "payloadType"), "x"), 5, "payload type"),
        ("a member twice", json.dumps(good).replace('{"mediaType"', '{"mediaType": "x", '
                                                    '"mediaType"', 1), 5, "media type"),
        ("a member twice, the same", json.dumps(good).replace(
            '{"mediaType"', f'{{"mediaType": "{MEDIA}", "mediaType"', 1), 3, "twice"),
        ("another predicate", signed(predicateType="x"), 5, "predicate type"),
        ("another statement type", signed(_type="x"), 5, "type of the statement"),
        ("no subject", signed(subject=[]), 3, "no subject"),
        ("two subjects", signed(subject=good_statement["subject"] * 2), 3, "more than one"),
        ("another root", signed(lambda s: s["subject"][0]["digest"].update(sha256="00" * 32)), 3,
         "digest of the subject"),
        ("another method", signed(
            lambda s: s["predicate"]["serialization"].update(method="x")), 5, "method"),
        ("an algorithm that is a number", signed(
            lambda s: s["predicate"]["resources"][0].update(algorithm=5)), 3, "expected a string"),
        ("symbolic links by text", signed(
            lambda s: s["predicate"]["serialization"].update(allow_symlinks="no")), 3,
         "expected true or false"),
        ("a name that is a number", signed(lambda s: s["subject"][0].update(name=5)), 3,
         "expected a string"),
        ("a method that is a number", signed(
            lambda s: s["predicate"]["serialization"].update(method=5)), 3, "expected a string"),
        ("a root of another length", signed(
            lambda s: s["subject"][0]["digest"].update(sha256="00" * 31)), 3,
         "digest of the subject"),
        ("a root with a byte more", signed(
            lambda s: s["subject"][0]["digest"].update(
                sha256=s["subject"][0]["digest"]["sha256"] + "00")), 3, "digest of the subject"),
        ("no certificate beside a key", changed(("verificationMaterial",), {
            **material_of(public), "certificate": None}), 0, ""),
        ("url-safe base64", changed(envelope, "a-_a"), 3, "base64"),
        ("base64 with a line end", changed(envelope, payload[:76] + "\n" + payload[76:]), 3,
         "base64"),
        ("base64 with a space", changed(envelope, payload + " "), 3, "base64"),
        ("base64 without padding", changed(envelope, payload[:-1]), 3, "base64"),
        ("base64 with more padding", changed(envelope, payload + "===="), 3, "base64"),
        ("an escaped member twice", json.dumps(good).replace(
            '{"mediaType"', '{"media\\u0054ype": "' + MEDIA + '", "mediaType"', 1), 3, "twice"),
        ("two kinds of material", changed(("verificationMaterial",), {
            **material_of(public), "certificate": {"rawBytes": ""}}), 3, "two kinds"),
        ("another signature besides", {**good, "messageSignature": {}}, 3, "besides"),
        ("no other signature besides", {**good, "messageSignature": None}, 0, ""),
        ("a byte order mark", "\ufeff" + json.dumps(good), 3, "at byte 0"),
        ("a zero byte at the end", json.dumps(good) + "\0", 3, "at byte"),
        ("a digest of another length", signed(lambda s: s["predicate"]["resources"][0].update(
            digest="00" * 20)), 3, "another length"),
        ("a digest by SHA-1 as in git", bundle(statement(by_file(FILES), algorithm="git-sha1"), key,
                                               hashes.SHA256(), material_of(public)), 5,
         "git-sha1"),
        ("an algorithm in capitals", bundle(statement(by_file(FILES), algorithm="SHA256"), key,
                                            hashes.SHA256(), material_of(public)), 5, "SHA256"),
        ("a predicate twice", raw('"predicate":', '"predicate": {}, "predicate":'), 3,
         "is missing"),
        ("a name twice", raw('"name": "config.json"', '"name": "x", "name": "config.json"'), 3,
         "twice"),
        ("a name that is not UTF-8", raw("config", "conf\udcff"), 3, "UTF-8"),
        ("a name with half a surrogate", raw("config", "\\ud800"), 3, "surrogates"),
        ("a digest that is none", signed(
            lambda s: s["predicate"]["resources"][0].update(digest="xy")), 3, "hexadecimal"),
        ("text after the statement", bundle(json.dumps(good_statement).encode() + b" x", key,
                                            hashes.SHA256(), material_of(public)), 3, "at byte"),
        ("an unknown digest", bundle(statement(by_file(FILES), algorithm="md99"), key,
                                     hashes.SHA256(), material_of(public)), 5, "md99")):
        yield expect(title, put(b), code, (), text)
    decomposed = [(n.replace("\u00fc", "u\u0308"), d) for n, d in by_file(FILES)]
    got = put(bundle(statement(decomposed), key, hashes.SHA256(), material_of(public)))
    yield "a name in another normal form", [] if got[0] == 1 and [r for r, _ in got[1]] == [
        "signature/missing", "signature/unlisted"] else [got]
    for ignored in (".", "", "/", "..", "../m", "./new.py", "*", "sub/../new.py", str(model)):
        (model / "new.py").write_text("x")
        got = put(bundle(statement(by_file(FILES), ignored=[ignored]), key, hashes.SHA256(),
                         material_of(public)))
        yield expect(f"the ignored path {ignored!r}", got, 1, [("signature/unlisted", "new.py")])
    (model / "new.py").unlink()
    trailing = base64.b64encode(base64.b64decode(good["dsseEnvelope"]["signatures"][0]["sig"]) +
                                b"\0").decode()
    yield expect("a byte after the signature", put(changed(
        ("dsseEnvelope", "signatures", 0, "sig"), trailing)), 1, invalid)
    for name in ("/etc/passwd", "a\0b", "../x", "a/../x", "a//b", "", "a/", "./a"):
        s = statement([(name, "00" * 32)])
        yield expect(f"the resource {name!r}", put(bundle(
            s, key, hashes.SHA256(), material_of(public))), 3, (), "not a path below")
    for name in ("a", "a:1", "a:2:1", "a:x:2", "a:-1:2", f"a:0:{2**64 - 1}", f"a:0:{2**64}"):
        s = statement([(name, "00" * 32)], method="shards")
        yield expect(f"the range {name!r}", put(bundle(
            s, key, hashes.SHA256(), material_of(public))), 3, (), "not a path below")
    s = statement([("a", "00" * 32)] * 2)
    yield expect("a resource twice", put(bundle(
        s, key, hashes.SHA256(), material_of(public))), 3, (), "listed twice")
    gap = [r for r in by_range(FILES) if r[0] != "model.safetensors:1000:2000"]
    got = put(bundle(statement(gap, method="shards"), key, hashes.SHA256(), material_of(public)))
    yield expect("ranges with a gap", got, 1, [("signature/range", "model.safetensors")])
    right = material_of(public)["publicKey"]["hint"]
    for hint in (right + "0", right[:-1], "0" * 64):
        got = put(bundle(statement(by_file(FILES)), key, hashes.SHA256(),
                         {"publicKey": {"hint": hint}}))
        yield expect(f"a hint of {len(hint)} bytes", got, 1, [("signature/key", "c.sig")])


def keys(work):
    model = new_model(work / "m")
    p256 = ec.generate_private_key(ec.SECP256R1())
    encrypted, public = write_keys(work, p256, "enc", b"secret word")
    plain, _ = write_keys(work, p256, "plain")
    right, wrong, long = work / "right", work / "wrong", work / "long"
    right.write_text("secret word\n")
    long.write_text("secret word" + "x" * 2989)
    wrong.write_text("other")
    sig = work / "k.sig"
    other_kinds = {"RSA": rsa.generate_private_key(65537, 2048),
                   "secp256k1": ec.generate_private_key(ec.SECP256K1())}
    got = heft("sign", "--key", encrypted, "--password-file", right, "-o", sig, model)
    yield "an encrypted key", [] if got[0] == 0 else [got]
    yield expect("its signature", verify(sig, model, PUBLIC, public), 0)
    sig.unlink()
    for title, words, code, text in (
        ("a wrong password", ("--key", encrypted, "--password-file", wrong), 2, "password"),
        ("a password of 3000 bytes", ("--key", encrypted, "--password-file", long), 2, "password"),
        ("no key", (), 2, "--key"),
        ("a public key", ("--key", public), 2, "private key"),
        ("a missing key", ("--key", work / "none"), 4, "No such file"),
        ("a key that is none", ("--key", right), 2, "private key"),
        ("no terminal for the password", ("--key", encrypted), 2, "--password-file"),
        ("--ignore with a path above", ("--key", plain, "--ignore", "../x"), 2, "--ignore"),
        ("the input as output", ("--key", plain, "--force", "-o", model / "config.json"), 0, ""),
        *((f"{kind} key", ("--key", write_keys(work, k, kind)[0]), 2, "curve")
          for kind, k in other_kinds.items())):
        got = heft("sign", *words, *(() if "-o" in words else ("-o", sig)), model,
                   start_new_session=True)
        ok = got[0] == code and text in got[2] and not sig.exists()
        yield title, [] if ok else [got]
    model = new_model(work / "m")
    heft("sign", "--key", plain, "-o", sig, model)
    for title, words, code, text in (
        ("verify with a private key", ("--public-key", plain), 2, "public key"),
        ("verify without a key", (), 2, "--public-key or --ca"),
        ("verify with key and authorities", (PUBLIC, public, "--ca", public), 2,
         "--public-key or --ca"),
        ("--certificate without --ca", (PUBLIC, public, "--certificate", public), 2, "--ca"),
        ("verify with --hub", (PUBLIC, public, "--hub"), 2, "excludes"),
        ("verify with a key as authority", ("--ca", public), 2, "certificate"),
        ("a missing public key", ("--public-key", work / "none"), 4, "No such file")):
        yield expect(title, verify(sig, model, *words), code, (), text)
    one = work / "one.safetensors"
    one.write_bytes(FILES["model.safetensors"])
    for title, out in (("as given", one), ("by another name", work / "m/../one.safetensors")):
        got = heft("sign", "--key", plain, "--force", "-o", out, one)
        ok = got[0] == 2 and "is the input itself" in got[2]
        ok = ok and one.read_bytes() == FILES["model.safetensors"]
        yield f"the input as output, {title}", [] if ok else [got]
    for title, out, code, text in (("a folder", work, 2, "is a directory"),
                                   ("a path in no folder", work / "no/x.sig", 4, "No such file")):
        got = heft("sign", "--key", plain, "--force", "-o", out, model)
        yield f"{title} as output", [] if got[0] == code and text in got[2] else [got]
    got = heft("sign", "--key", plain, "--messages=json", "-o", work / "said.sig", model)
    said, size = json.loads(got[2]), sum(map(len, FILES.values()))
    wanted = {"kind": "result", "file": str(work / "said.sig"), "files": len(FILES), "bytes": size}
    yield "the result in JSON", [] if got[0] == 0 and said == wanted else [got, wanted]
    yield expect("a missing signature", verify(work / "none", model, PUBLIC, public), 4, (),
                 "No such file")
    got = heft("sign", "--key", plain, "-o", sig, model)
    yield "an existing signature stays", [] if got[0] == 2 and "--force" in got[2] else [got]
    (work / "hollow").mkdir()
    got = heft("sign", "--key", plain, "-o", work / "x.sig", work / "nowhere")
    yield "no model", [] if got[0] == 4 and "nowhere: No such file" in got[2] else [got]
    (work / "named").mkdir()
    (work / "named" / os.fsdecode(b"\xff")).write_text("")
    got = heft("sign", "--key", plain, work / "named")
    yield "a name that is not UTF-8", [] if got[0] == 2 and "UTF-8" in got[2] else [got]
    got = heft("sign", "--key", plain, work / "hollow")
    yield "a folder without files", [] if got[0] == 2 and "no files" in got[2] else [got]
    yield from asked(encrypted, sig, model)


def on_terminal(words, answer):
    """Run Heft on a new terminal and answer the question, with text or a function of the process.
    Return the exit code, the output, and whether the terminal echoes afterwards."""
    child, terminal = pty.fork()
    if not child:
        os.execv(HEFT, [HEFT, *map(str, words)])
    seen = b""
    try:
        while b"Password" not in seen:
            seen += os.read(terminal, 4096)
        if isinstance(answer, bytes):
            os.write(terminal, answer)
        else:
            answer(child)
        while more := os.read(terminal, 4096):
            seen += more
    except OSError:
        pass  # the child has closed the terminal
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    echoes = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
    os.close(terminal)
    return code, seen.decode(errors="replace"), echoes


def asked(key, sig, model):
    """Sign on new terminals, and answer in good and in bad ways."""
    words = ("sign", "--key", key, "-o", sig, model)
    for title, answer, code, text in (
        ("a password from the terminal", b"secret word\n", 0, "Password of"),
        ("a wrong password from the terminal", b"secret\n", 2, "password is wrong"),
        ("no password", b"\n", 2, "password is wrong"),
        ("the end of the input", b"\x04", 2, "password is wrong"),
        ("a password that is too long", b"secret w" * 200 + b"\n", 2, "could not be read"),
        ("Ctrl-C instead of a password", b"secr\x03", -signal.SIGINT, "interrupted"),
        ("a signal instead of a password", lambda pid: os.kill(pid, signal.SIGTERM),
         -signal.SIGTERM, "interrupted")):
        sig.unlink(missing_ok=True)
        got = on_terminal(words, answer)
        ok = (got[0] == code and text in got[1] and got[2] and sig.exists() == (code == 0) and
              "secret w" not in got[1])
        yield title, [] if ok else [got]
    got = on_terminal_without_question(words)
    yield "no question if messages are JSON", [] if (
        got[0] == 2 and "--password-file" in got[1]) else [got]


def on_terminal_without_question(words):
    child, terminal = pty.fork()
    if not child:
        os.execv(HEFT, [HEFT, *map(str, words), "--messages=json"])
    seen = b""
    try:
        while more := os.read(terminal, 4096):
            seen += more
    except OSError:
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return code, seen.decode(errors="replace")


# ---- certificates ---------------------------------------------------------------------------

BEGIN = datetime.datetime(2020, 1, 1)


def certificate(name, key, issuer, issuer_key, is_ca, can_sign=True, days=30, begin=BEGIN,
                hash_=None):
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    authority = issuer_key.public_key()
    return (x509.CertificateBuilder().subject_name(subject)
            .issuer_name(issuer.subject if issuer else subject).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(begin)
            .not_valid_after(begin + datetime.timedelta(days))
            .add_extension(x509.BasicConstraints(is_ca, None), True)
            .add_extension(x509.KeyUsage(can_sign and not is_ca, False, False, False, not can_sign,
                                         is_ca, is_ca, False, False), True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), False)
            .sign(issuer_key, hash_ or hashes.SHA256()))


def certificates(work):
    root_key, middle_key, key, stranger_key = (ec.generate_private_key(ec.SECP256R1())
                                               for _ in range(4))
    root = certificate("root", root_key, None, root_key, True, days=4000,
                       begin=BEGIN - datetime.timedelta(10))
    middle = certificate("middle", middle_key, root, root_key, True,
                         begin=BEGIN - datetime.timedelta(1))
    leaf = certificate("signer", key, middle, middle_key, False)
    no_signer = certificate("signer", key, middle, middle_key, False, can_sign=False)
    late = certificate("late", key, middle, middle_key, False,
                       begin=BEGIN + datetime.timedelta(3000))
    stranger = certificate("root", stranger_key, None, stranger_key, True)
    model, sig = new_model(work / "m"), work / "c.sig"
    paths = {}
    for name, cert in (("root", root), ("leaf", leaf), ("stranger", stranger), ("late", late)):
        paths[name] = work / f"{name}.crt"
        paths[name].write_bytes(cert.public_bytes(serialization.Encoding.PEM))

    def check(chain, *how, signer=key, member="x509CertificateChain"):
        der = [{"rawBytes": base64.b64encode(
            c.public_bytes(serialization.Encoding.DER)).decode()} for c in chain]
        material = {member: {"certificates": der} if len(member) > 11 else der[0]}
        sig.write_text(json.dumps(bundle(statement(by_file(FILES)), signer, hashes.SHA256(),
                                         material)))
        return verify(sig, model, *how)

    trusted = ("--ca", paths["root"])
    refused = [("signature/certificate", "c.sig")]
    yield expect("a chain of certificates", check([leaf, middle], *trusted), 0)
    yield expect("with its root", check([leaf, middle, root], *trusted), 0)
    yield expect("the expected signer", check([leaf, middle], *trusted, "--certificate",
                                              paths["leaf"]), 0)
    yield expect("another signer", check([leaf, middle], *trusted, "--certificate",
                                         paths["late"]), 1, refused)
    yield expect("a signer's file without a certificate", check(
        [leaf, middle], *trusted, "--certificate", write_keys(work, key)[1]), 2, (),
                 "has no certificate in PEM form")
    direct = certificate("direct", key, root, root_key, False)
    yield expect("a single certificate", check([direct], *trusted, member="certificate"), 0)
    yield expect("without the middle", check([leaf], *trusted), 1, refused)
    yield expect("another authority", check([leaf, middle], "--ca", paths["stranger"]), 1, refused)
    yield expect("a certificate not for signatures", check([no_signer, middle], *trusted), 1,
                 refused)
    yield expect("a middle that had expired", check([late, middle], *trusted), 1, refused)
    yield expect("signed by another key", check([leaf, middle], *trusted, signer=stranger_key), 1,
                 [("signature/invalid", "c.sig")])
    material = {"x509CertificateChain": {"certificates": [{"rawBytes": "AAAA"}]}}
    sig.write_text(json.dumps(bundle(statement(by_file(FILES)), key, hashes.SHA256(), material)))
    yield expect("a damaged certificate", verify(sig, model, *trusted), 1, refused)
    sig.write_text(json.dumps(bundle(statement(by_file(FILES)), key, hashes.SHA256(),
                                     {"publicKey": {"hint": ""}})))
    yield expect("no certificate", verify(sig, model, *trusted), 1, refused)


def signing_with_certificates(work):
    """heft signs with certificates; cryptography and Heft judge the chain and the signature."""
    now = datetime.datetime.utcnow()
    root_key, middle_key, key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
    private, _ = write_keys(work, key)
    locked, _ = write_keys(work, key, "locked", b"secret word")
    wrong, _ = write_keys(work, other, "other")
    year = datetime.timedelta(365)
    root = certificate("root", root_key, None, root_key, True, days=4000, begin=now - 3 * year)
    middle = certificate("middle", middle_key, root, root_key, True, days=3000,
                         begin=now - 2 * year)

    def leaf(name, **more):
        more = {"begin": now - year, "days": 999, **more}
        return certificate(name, key, middle, middle_key, False, **more)

    signer, hour = leaf("signer"), datetime.timedelta(hours=1)
    weak = certificate("weak", key, middle, middle_key, False, begin=now - hour,
                       hash_=hashes.SHA1())
    own = certificate("own", key, None, key, False, begin=now - hour)
    of_rsa = certificate("rsa", rsa.generate_private_key(65537, 2048), middle, middle_key, False,
                         begin=now - hour)
    pem = {n: b"".join(c.public_bytes(serialization.Encoding.PEM) for c in chain)
           for n, chain in (("root", [root]), ("middle", [middle]), ("signer", [signer]),
                            ("both", [signer, middle]), ("all", [signer, middle, root]),
                            ("reverse", [middle, signer]), ("gap", [signer, root]),
                            ("own", [own]), ("weak", [weak, middle]),
                            ("rsa", [of_rsa, middle]),
                            ("old", [leaf("old", days=30)]),
                            ("new", [leaf("new", begin=now + hour)]),
                            ("no signer", [leaf("no", can_sign=False)]),
                            ("late", [leaf("late", begin=now - 2 * year - hour), middle]))}
    pem["damaged"] = pem["signer"] + pem["middle"].replace(b"M", b"!", 3)
    pem["key too"] = private.read_bytes() + b"text\n" + pem["both"]
    pem["none"] = private.read_bytes()
    for n, date in (("begin", own.not_valid_before), ("end", own.not_valid_after)):
        pem[n] = with_month_13(own, date)
    path = {n: work / f"{n}.crt" for n in pem}
    for n, text in pem.items():
        path[n].write_bytes(text)
    model, sig = new_model(work / "m"), work / "w.sig"
    password = work / "password"
    password.write_text("secret word")

    def sign(*words):
        sig.unlink(missing_ok=True)
        return heft("sign", "-o", sig, *words, model, start_new_session=True)

    for title, words, chain in (
        ("a certificate", ("--key", private, "--certificate", path["signer"]), [signer]),
        ("a certificate and a chain", ("--key", private, "--certificate", path["signer"],
                                       "--chain", path["middle"]), [signer, middle]),
        ("several certificates in a file", ("--key", private, "--certificate", path["all"]),
         [signer, middle, root]),
        ("a file with a key, too", ("--key", private, "--certificate", path["key too"]),
         [signer, middle]),
        ("an encrypted key", ("--key", locked, "--password-file", password, "--certificate",
                              path["both"]), [signer, middle]),
        ("a certificate that signs itself", ("--key", private, "--certificate", path["own"]),
         [own])):
        code, _, err = sign(*words)
        yield f"signed with {title}", [err] if code else judge_chain(sig, chain, model)
        if chain != [signer]:
            ca, expected = path["own" if chain == [own] else "root"], work / "expected.crt"
            expected.write_bytes(chain[0].public_bytes(serialization.Encoding.PEM))
            yield expect(f"heft accepts {title}", verify(sig, model, "--ca", ca), 0)
            yield expect(f"heft accepts {title}, the signer expected", verify(
                sig, model, "--ca", ca, "--certificate", expected), 0)
    for title, words, text in (
        ("a key of another certificate", ("--key", wrong, "--certificate", path["both"]),
         "not the key of the certificate"),
        ("an expired certificate", ("--key", private, "--certificate", path["old"]), "expired"),
        ("a certificate of the future", ("--key", private, "--certificate", path["new"]),
         "not valid yet"),
        ("a certificate that begins in month 13", ("--key", private, "--certificate",
                                                   path["begin"]), "notBefore"),
        ("a certificate that ends in month 13", ("--key", private, "--certificate", path["end"]),
         "notAfter"),
        ("a certificate not for signatures", ("--key", private, "--certificate",
                                              path["no signer"]), "not meant for signatures"),
        ("a certificate of an RSA key", ("--key", private, "--certificate", path["rsa"]),
         "not on the curve"),
        ("issuers first", ("--key", private, "--certificate", path["reverse"]),
         "not meant for signatures"),
        ("a chain with a gap", ("--key", private, "--certificate", path["gap"]),
         "certificate 2 is not the issuer"),
        ("a chain that is not of the certificate", ("--key", private, "--certificate",
                                                    path["signer"], "--chain", path["all"]),
         "certificate 2 is not the issuer"),
        ("a certificate signed with SHA-1", ("--key", private, "--certificate", path["weak"]),
         "too weak"),
        ("an issuer that was not valid yet", ("--key", private, "--certificate", path["late"]),
         "not yet valid"),
        ("a damaged certificate in the chain", ("--key", private, "--certificate",
                                                path["damaged"]), "damaged"),
        ("a file without a certificate", ("--key", private, "--certificate", path["none"]),
         "no certificate"),
        ("--chain alone", ("--key", private, "--chain", path["middle"]), "needs --certificate"),
        ("an encrypted key without a password", ("--key", locked, "--certificate", path["both"]),
         "--password-file")):
        got = sign(*words)
        yield title, [] if got[0] == 2 and text in got[2] and not sig.exists() else [got]
    got = sign("--key", private, "--certificate", work / "none")
    yield "a missing certificate", [] if got[0] == 4 and not sig.exists() else [got]
    sig.write_text(json.dumps(bundle(statement(by_file(FILES)), key, hashes.SHA256(),
                                     chain_of([weak, middle]))))
    yield expect("verify refuses SHA-1 in a chain", verify(sig, model, "--ca", path["root"]), 1,
                 [("signature/certificate", "w.sig")], "")
    sig.write_text(json.dumps(bundle(statement(by_file(FILES)), key, hashes.SHA256(),
                                     chain_of([signer, middle], b"x"))))
    yield expect("bytes after a certificate", verify(sig, model, "--ca", path["root"]), 1,
                 [("signature/certificate", "w.sig")], "")
    yield expect("a damaged authority", verify(sig, model, "--ca", path["damaged"]), 2, (),
                 "damaged certificate")


def with_month_13(cert, date):
    """Return the certificate in PEM form with a date that there is not."""
    der = cert.public_bytes(serialization.Encoding.DER)
    text = date.strftime("%y%m%d%H%M%SZ").encode()
    assert der.count(text) == 1
    body = base64.encodebytes(der.replace(text, text[:2] + b"13" + text[4:]))
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"


def chain_of(chain, more=b""):
    return {"x509CertificateChain": {"certificates": [{"rawBytes": base64.b64encode(
        c.public_bytes(serialization.Encoding.DER) + more).decode()} for c in chain]}}


def judge_chain(path, chain, model):
    """Return complaints about a signature with certificates that Heft wrote."""
    b = json.loads(path.read_text())
    complaints = []
    if b["verificationMaterial"] != {**chain_of(chain), "tlogEntries": []}:
        complaints.append("not the certificates")
    for subject, issuer in zip(chain, chain[1:]):
        issuer.public_key().verify(subject.signature, subject.tbs_certificate_bytes,
                                   ec.ECDSA(subject.signature_hash_algorithm))
    e = b["dsseEnvelope"]
    payload = base64.b64decode(e["payload"], validate=True)
    try:
        chain[0].public_key().verify(base64.b64decode(e["signatures"][0]["sig"]), message(payload),
                                     ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        complaints.append("the signature is wrong")
    resources = [(r["name"], r["digest"]) for r in json.loads(payload)["predicate"]["resources"]]
    if resources != by_file(FILES):
        complaints.append(f"resources of {model}: {resources}")
    return complaints


def loading(work):
    """libcrypto is loaded on first use; a damaged library is reported."""
    model, folder = work / "a.npy", work / "libraries"
    private, _ = write_keys(work, ec.generate_private_key(ec.SECP256R1()))
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }".ljust(117) + b"\n"
    model.write_bytes(b"\x93NUMPY\x01\x00v\x00" + header + bytes(2))
    folder.mkdir()
    (folder / "libcrypto.so.3").write_bytes(b"not a library")
    got = heft("ls", model, env={**os.environ, "LD_DEBUG": "files"})
    yield "ls does not load libcrypto", [] if got[0] == 0 and "libcrypto" not in got[2] else [got]
    for words in (["sign", "--key", private, model], ["sbom", model],
                  ["convert", "--digest", "sha256", model, work / "a.zt"]):
        got = heft(*words, env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
        is_named = got[0] == 5 and "install the package libssl3" in got[2]
        yield f"{words[0]} without libcrypto", [] if is_named else [got]
    left = sorted(path.name for path in work.iterdir())
    yield "nothing is written without libcrypto", (
        [] if left == ["a.npy", "key.pem", "key.pub", "libraries"] else [left])


def main():
    results = []
    is_loaded = [loading] if sys.argv[2] == "loaded" else []
    for check in (written_by_heft, ignored_paths, single_files, written_by_python, changed_models,
                  snapshots, changed_signatures, keys, certificates, signing_with_certificates,
                  *is_loaded):
        with tempfile.TemporaryDirectory(prefix="heft-sign-") as folder:
            results += check(pathlib.Path(folder))
    return tap.report(results)


sys.exit(main())
