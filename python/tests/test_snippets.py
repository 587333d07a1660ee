"""Each snippet of docs/python.md runs, in the order of the page, section by section."""
import json
import pathlib
import re
import struct

import heft
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
SECTION = re.compile(r"^## (.+)$", re.M)
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def _sections():
    parts = SECTION.split(PAGE.read_text(encoding="utf-8"))
    return [(title, SNIPPET.findall(text)) for title, text in zip(parts[1::2], parts[2::2])
            if SNIPPET.search(text)]


def _write_model(path):
    """Write model.safetensors, of which the snippets speak."""
    header = {"__metadata__": {"license": "MIT"},
              "embed.weight": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]},
              "embed.bias": {"dtype": "F32", "shape": [2], "data_offsets": [32, 40]}}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<10f", *range(10)))


def _reads_addresses():
    try:
        heft.open("http://127.0.0.1:1/model.safetensors")
    except heft.UnsupportedError:
        return False
    except heft.Error:
        return True


@pytest.mark.parametrize("title, snippets", _sections())
def test_snippets_run(title, snippets, tmp_path, monkeypatch):
    if title == "Files on servers" and not _reads_addresses():
        pytest.skip("this build has no libcurl")
    monkeypatch.chdir(tmp_path)
    _write_model(tmp_path / "model.safetensors")
    names = {}
    for snippet in snippets:
        exec(compile(snippet, f"{PAGE.name}: {title}", "exec"), names)
