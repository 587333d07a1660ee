"""Every sample of the directories in HEFT_SAMPLES: Python gives what the command gives, and the
bytes have the digests that the description of the sample states."""
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import warnings

import heft
import pytest
from heft import _child

ROOTS = [pathlib.Path(root) for root in os.environ.get("HEFT_SAMPLES", "").split(":") if root]
PARTS = "role", "dtype", "encoding", "offset", "stored", "nbytes", "digest"


def find_samples():
    """Return the samples of each directory: files with a description, FILE.json."""
    found = collections.defaultdict(list)
    for root in ROOTS:
        for description in sorted(root.rglob("*.json")):
            sample = description.with_suffix("")
            if sample.is_file():
                found[sample.parent].append(sample)
    return found


SAMPLES = find_samples()
directories = pytest.mark.parametrize("directory", sorted(SAMPLES), ids="/".join(
    ("{0.parent.name}", "{0.name}")).format)
pytestmark = pytest.mark.skipif(not SAMPLES, reason="HEFT_SAMPLES names no samples")


def run(*words):
    return subprocess.run([_child.COMMAND, *map(str, words)], capture_output=True, check=False)


def listing(path):
    """Return (document, None), or (None, message) if the command fails. The tensors are those that
    are stored: so heft.open() has them."""
    p = run("ls", "--json", "--raw-tensors", "--messages=json", "--", path)
    if p.returncode == 0:
        return json.loads(p.stdout), None
    messages = [json.loads(line) for line in p.stderr.splitlines()]
    return None, [m for m in messages if m["kind"] == "error"][-1]


def members(part):
    """Return what the command lists about a part."""
    values = {name: part[name] for name in PARTS}
    values["length"] = values.pop("nbytes")
    return values


def describe(file):
    """Return what the command lists, as Python sees the file."""
    return {"format": file.format, "version": file.version or None, "size": file.size, "metadata": plain(file.metadata), "tensors": [
        {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), "layout": t.layout,
         "nbytes": t.nbytes, "attributes": plain(t.attributes), "parts": [members(p) for p in t.parts]} for t in file.values()]}


def plain(value, key=None):
    """Return a value as json.loads would give it after the command has printed it."""
    if isinstance(value, dict):
        return {key: plain(item, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):  # ids are printed with the most significant byte first
        return (value[::-1] if key == "gptrs.base_id" else value).hex()
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def compare_listing(path, file, document):
    got = describe(file)
    for name in ("format", "version", "size", "metadata"):
        if got[name] != document[name]:
            yield f"{path}: {name} is {got[name]!r}, ls has {document[name]!r}"
    for ours, theirs in zip(got["tensors"], document["tensors"], strict=True):
        for name, value in ours.items():
            want = theirs[name]
            if name == "parts":
                want = [{key: part.get(key) for key in value[0]} for part in want]
            if value != want:
                yield f"{path}: {name} of {ours['name']!r} is {value!r}, ls has {want!r}"


def compare_digests(path, file):
    """Compare the bytes of dense tensors with the digests in the description."""
    for want in json.loads(pathlib.Path(f"{path}.json").read_text()).get("tensors") or ():
        if want.get("sha256") and want.get("layout", "dense") == "dense":
            tensor = file[want["name"]]
            data = memoryview(tensor).cast("B") if tensor.nbytes else b""
            if hashlib.sha256(data).hexdigest() != want["sha256"]:
                yield f"{path}: other bytes of {want['name']!r}"


def compare_error(path, error, message):
    if error is None:
        yield f"{path}: opens, but ls says {message['text']!r}"
    elif (error.status, error.rule) != (message["status"], message.get("rule")):
        yield f"{path}: {error!r} ({error.status}, {error.rule}), but ls says {message}"
    elif message["text"] not in str(error):
        yield f"{path}: {error!r}, but ls says {message['text']!r}"


def compare(path):
    document, message = listing(path)
    try:
        file = heft.open(path)
    except heft.Error as error:
        return [*compare_error(path, error, message)] if message else [f"{path}: {error!r}"]
    with file:
        if message:
            return [*compare_error(path, None, message)]
        found = [*compare_listing(path, file, document)]
        if path.parent.name == "good":
            found += compare_digests(path, file)
        return found


@directories
def test_files_are_those_that_the_command_lists(directory):
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = [line for lines in pool.map(compare, SAMPLES[directory]) for line in lines]
    assert not found, "\n".join(found[:20])


def verify(paths):
    """Return the documents of the command and the reports of Python for files without warnings."""
    # With one file the command prints one document instead of a list.
    documents = json.loads(run("verify", "--json", "--", *paths, paths[0]).stdout)[:-1]
    readable = [path for path, document in zip(paths, documents) if "error" not in document]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return documents, heft.verify(readable) if readable else []


@directories
def test_verify_finds_the_findings_of_the_command(directory):
    documents, reports = verify(SAMPLES[directory])
    reports = iter(reports)
    for path, document in zip(SAMPLES[directory], documents, strict=True):
        if "error" in document:
            with pytest.raises(heft.Error, match=re.escape(document["error"])):
                heft.verify(path)
            continue
        report = next(reports)
        for name in ("file", "ok", "format", "bytes_checked", "payload_checked", "covers"):
            assert getattr(report, name) == document[name]
        findings = [dataclasses.asdict(finding) for finding in report.findings]
        assert findings == [{"shard": None, "path": None, **finding}
                            for finding in document["findings"]]
    assert next(reports, None) is None
