#!/usr/bin/env python3
"""gen_sign.py ROOT: write small signatures (OMS 1.0) and their statements to ROOT/sign.

The signatures are numbers that no key has made: a reader accepts the files, a check of the key does
not. Seeds of fuzzing, not samples of a format."""
import base64
import hashlib
import json
import pathlib
import sys

MEDIA = "application/vnd.dev.sigstore.bundle.v0.3+json"
TYPE = "application/vnd.in-toto+json"
SIGNATURE = bytes.fromhex("3006020101020101")
KEY = {"publicKey": {"hint": "0" * 64}}
CERTIFICATE = {"rawBytes": base64.b64encode(bytes.fromhex("3003020101")).decode()}
CHAIN = {"x509CertificateChain": {"certificates": [CERTIFICATE, CERTIFICATE]}}


def digest(name, kind="sha256"):
    return hashlib.new(kind, name.encode()).hexdigest()


def statement(names, kind="sha256", **serialization):
    resources = [{"name": n, "algorithm": kind, "digest": digest(n, kind)} for n in names]
    root = hashlib.sha256(b"".join(bytes.fromhex(r["digest"]) for r in resources)).hexdigest()
    return {"_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "m", "digest": {"sha256": root}}],
            "predicateType": "https://model_signing/signature/v1.0",
            "predicate": {"serialization": {"method": "files", **serialization},
                          "resources": resources}}


def bundle(payload, material):
    return {"mediaType": MEDIA, "verificationMaterial": {**material, "tlogEntries": []},
            "dsseEnvelope": {"payload": base64.b64encode(payload.encode()).decode(),
                             "payloadType": TYPE,
                             "signatures": [{"sig": base64.b64encode(SIGNATURE).decode()}]}}


STATEMENTS = {
    "file": statement(["."]),
    "files": statement(["a", "a/b", "a-b", "\u00fc"], hash_type="sha256", allow_symlinks=True,
                       ignore_paths=["model.sig", ".git"]),
    "blake2b": statement(["a"], "blake2b"),
    "ranges": statement(["a:0:10", "a:10:20", "b:c:0:1"], method="shards", shard_size=10),
    "none": statement([]),
    "above": statement(["../a"]),
    "twice": statement(["a", "a"]),
}


def main():
    folder = pathlib.Path(sys.argv[1]) / "sign"
    folder.mkdir(parents=True)
    for name, what in STATEMENTS.items():
        text = json.dumps(what)
        (folder / f"{name}.statement").write_text(text)
        for kind, material in (("key", KEY), ("chain", CHAIN), ("single", {
                "certificate": CERTIFICATE})):
            (folder / f"{name}-{kind}.sig").write_text(json.dumps(bundle(text, material)))
    # Memory that is missing for text of a wrong length would hide that the text is wrong.
    cut = bundle(json.dumps(STATEMENTS["file"]), KEY)
    cut["dsseEnvelope"]["payload"] = cut["dsseEnvelope"]["payload"][:-1]
    (folder / "cut.sig").write_text(json.dumps(cut))


main()
