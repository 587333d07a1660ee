"""Any metadata and any names survive the way through a command line and JSON."""
import pathlib
import tempfile

import pytest

import heft
from command_files import write_safetensors

pytest.importorskip("hypothesis")
from hypothesis import example, given, settings, strategies as st  # noqa: E402

# A word of a command line cannot have NUL, nor a JSON document a lone surrogate.
TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=20)
KEYS = TEXT.filter(lambda key: key and "=" not in key)
VALUES = st.one_of(TEXT, st.booleans(), st.integers(-2**63, 2**64 - 1),
                   st.floats(allow_nan=False, allow_infinity=False))


@settings(max_examples=60, deadline=None, database=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4))
@example({"a:u8": 300, "--force": "--help", "b": "\u202e\n\"\\", "c": "\"quoted\"", "d": -0.0})
@example({"true": "true", "x": "nan", "y": " 7", "z": ""})
def test_metadata(values):
    with tempfile.TemporaryDirectory() as folder:
        source = write_safetensors(pathlib.Path(folder, "in.safetensors"),
                                   {"w": ("U8", [1], b"x")})
        done = heft.convert(source, source.with_suffix(".zt"), format_version="2", set=values)
        got = {key: value for key, value in heft.info(done.file).metadata.items() if key in values}
    assert got == values
    assert all(type(got[key]) is type(value) for key, value in values.items())


@settings(max_examples=40, deadline=None, database=None)
@given(TEXT.filter(len))
@example("-")
@example("../a")
def test_names_of_tensors(name):
    with tempfile.TemporaryDirectory() as folder:
        source = write_safetensors(pathlib.Path(folder, "in.safetensors"),
                                   {name: ("U8", [1], b"x"), name + "2": ("F32", [], bytes(4))})
        assert set(heft.hash(source, quiet=True).tensors) == {name, name + "2"}
        heft.edit(source, rename={name: "new"} if "=" not in name else None, quiet=True,
                  set={"a": "b"})
        names = set(heft.hash(source, quiet=True).tensors)
    assert names == ({"new", name + "2"} if "=" not in name else {name, name + "2"})
