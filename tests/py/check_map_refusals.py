#!/usr/bin/env python3
"""check_map_refusals.py HEFT: maps and models that Heft must refuse, each with the error that names
the line, the tensors and the numbers.  Nothing may be written.  TAP on stdout."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from map_models import CONFIG, MODELS
from check_maps import write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

HEAD = "map test\n"


def matrix(*shape):
    return "F32", np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


AB = {"a": matrix(4, 2), "b": matrix(4, 2)}
EXPERTS = {f"e.{i}": matrix(2, 2) for i in (0, 1, 3)}
BOTH = {f"{x}.{i}": matrix(2, 2) for x, i in (("g", 0), ("g", 1), ("u", 0))}
# Rules of a map, or the name of a shipped one; tensors; exit code; texts of the error.
CASES = {
    "a tensor without a rule": ("a -> x", AB, 3, ["'b'", "1 of 2", "--allow-unmatched"]),
    "a pattern that matches twice": ("a -> x\n{r*} -> y.{r*}", AB, 3,
                                     ["'a'", "lines 2 and 3"]),
    "two results of one name": ("a -> x\nb -> x", AB, 3, ["'x'", "lines 2 and 3"]),
    "a result with the name of a kept tensor": ("others keep\na -> b", AB, 3, ["'b'", "3 and 0"]),
    "a size that does not divide": ("a -> x : fold 0 3 _; merge 0 3 _\nb -> b", AB, 3,
                                    ["'a'", "line 2", "dimension 0 is 4", "of 3"]),
    "a part that does not divide": ("a -> x, y, z : split 0\nb -> b", AB, 3,
                                    ["'a'", "line 2", "3 parts"]),
    "sizes that are not the dimension": ("a -> x, y : split 0 1 2\nb -> b", AB, 3,
                                         ["'a'", "line 2", "sizes"]),
    "sizes past the dimension": ("a -> x, y : split 0 3 2\nb -> b", AB, 3, ["'a'", "exceed"]),
    "sizes of parts that are joined": ("a, b -> x : concat 0 4 3", AB, 3, ["'b'", "sizes"]),
    "shapes that do not fit together": ("a, c -> x : concat 0",
                                        {"a": matrix(4, 2), "c": matrix(4, 3)}, 3, ["'c'"]),
    "a missing expert in a row": ("e.{i} -> e : stack i 0", EXPERTS, 3,
                                  ["'e.2'", "missing", "line 2", "'e.0'"]),
    "a missing expert at the end": ("e.{i} -> e : stack i 0 3",
                                    {k: v for k, v in EXPERTS.items() if k != "e.3"}, 3,
                                    ["'e.2'", "missing"]),
    "more experts than the model has": ("e.{i} -> e : stack i 0 1",
                                        {k: v for k, v in EXPERTS.items() if k != "e.3"}, 3,
                                        ["2 tensors", "line 2", "1"]),
    "one of two that are joined": ("g.{i}, u.{i} -> x : stack i 0; concat 1", BOTH, 3,
                                   ["'u.1'", "missing"]),
    "a tensor that is not there at all": ("a, c -> x : concat 0\nb -> b", AB, 3, ["'c'", "line 2"]),
    "a config without the key": ("let n = no_such_key\na -> x : rotary n\nb -> b", AB, 2,
                                 ["'n'", "line 3", "config.json"]),
    "a tie of one name": ("{r*} -> {r*}\ntie a", AB, 3, ["line 3", "two tensors", "'a'"]),
    "a tie of a tensor to itself": ("{r*} -> {r*}\nuntie a a", AB, 3, ["line 3", "two tensors"]),
    "a tie with another word": ("{r*} -> {r*}\ntie a b when n", AB, 3, ["line 3", "'when'"]),
    "a tie with a condition of nothing": ("{r*} -> {r*}\ntie a b if", AB, 3, ["line 3", "'if'"]),
    "too many ties": ("{r*} -> {r*}\n" + "tie a b\n" * 17, AB, 3, ["line 19", "16 ties"]),
    "a tied tensor without a rule": ("a -> x\nb -> y\nuntie a c", AB, 3, ["line 4", "'c'"]),
    "a tied tensor with the name of another": ("a -> x\nb -> y\nc -> y\nuntie a c", AB, 3,
                                               ["'y'", "lines 3 and 4"]),
    "a required tensor": ("require c\n{r*} -> {r*}", AB, 3, ["'c'", "line 2"]),
    "too few dimensions": ("a -> x : swap 0 2\nb -> b", AB, 3, ["'a'", "dimensions"]),
    "too many names for the results": ("a -> x, y\nb -> b", AB, 3, ["line 2", "1 tensors", "2"]),
    "a size that does not change": ("a -> x : resize 0 5 3\nb -> b", AB, 3, ["'a'", "size"]),
    "a constant and integers": ("a -> x : add 1", {"a": ("I32", np.zeros((2,), np.float32))}, 5,
                                ["'a'", "constant"]),
    "a large constant": ("a -> x : add 5000000000\nb -> b", AB, 5, ["'a'", "constant"]),
    "constants with a large sum": ("a -> x : add 16777216 ; add 1\nb -> b", AB, 5,
                                   ["'a'", "constant"]),
    "a dimension beyond all": ("a -> x : merge 18446744073709551615 _ _\nb -> b", AB, 3,
                               ["'a'", "dimensions"]),
    "a dimension that is not stated": ("a -> x : merge _ _ _\nb -> b", AB, 3,
                                       ["'a'", "dimensions"]),
    "too many tensors of one": ("a -> x.{e} : unstack e 0",
                                {"a": ("F32", np.zeros((20000, 1), np.float32))}, 5,
                                ["'a'", "too many"]),
    "a model without a type": ("auto", AB, 2, ["model_type"]),
    "an unknown map": ("no-such-map", AB, 2, ["no-such-map", "heft maps"]),
    # texts
    "no name": ("NOHEAD a -> x", AB, 3, ["map NAME"]),
    "a line that is nothing": ("nonsense", AB, 3, ["line 2", "nonsense"]),
    "an unknown operation": ("a -> x : turn 0", AB, 3, ["line 2", "'turn'"]),
    "too few arguments": ("a -> x : swap 0", AB, 3, ["line 2", "too few"]),
    "too many arguments": ("a -> x : swap 0 1 2", AB, 3, ["line 2", "too many"]),
    "too few arguments of a macro": ("a -> x : rotary", AB, 3, ["line 2", "too few", "rotary"]),
    "a brace that is not closed": ("a{i -> x", AB, 3, ["line 2", "}"]),
    "a capture without a name": ("a{} -> x", AB, 3, ["line 2", "without a name"]),
    "a capture that is there twice": ("a.{i}.{i} -> x", AB, 3, ["line 2", "twice"]),
    "two captures of any text": ("{a*}.{b*} -> {a*}.{b*}", AB, 3, ["line 2", "two captures"]),
    "a capture of one side": ("a.{i} -> x", AB, 3, ["line 2", "stack"]),
    "a capture of any text of one side": ("{a*} -> x : stack a* 0", AB, 3, ["line 2", "any text"]),
    "too many captures": ("{a}.{b}.{c}.{d}.{e}.{f}.{g} -> x", AB, 3, ["line 2", "too many"]),
    "another capture in a second name": ("a.{i}, b -> x", AB, 3, ["line 2", "same captures"]),
    "a capture that the rule lacks": ("a -> x : stack e 0", AB, 3, ["line 2", "'e'"]),
    "an empty name": ("a, -> x", AB, 3, ["line 2", "missing"]),
    "a number after @": ("a -> x : swap@z 0 1", AB, 3, ["line 2", "@"]),
    "let without =": ("let n", AB, 3, ["line 2", "="]),
    "words without =": ("words n", AB, 3, ["line 2", "="]),
    "vectors of another type": ("vectors f16", AB, 3, ["line 2", "f32"]),
    "others that do not stay": ("others drop", AB, 3, ["line 2", "keep"]),
    "a map that is not shipped": ("use nothing", AB, 2, ["line 2", "'nothing'"]),
    "a map of too many rules": ("\n".join(f"n{i} -> m{i}" for i in range(4097)), AB, 5, ["4096"]),
    "too many sets of words": ("".join(f"words {x} = {x}\n" for x in "abcde") +
                               "{a}{b}{c}{d}{e} -> x", AB, 3, ["line 7", "sets"]),
}


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


def check(folder, rules, tensors, code, texts):
    folder.mkdir()
    source, out = folder / "in.safetensors", folder / "out.safetensors"
    write(source, tensors)
    path = folder / "test.map"
    is_name = rules in ("auto", "no-such-map")
    if not is_name:
        path.write_text(rules.removeprefix("NOHEAD ") if rules.startswith("NOHEAD") else HEAD +
                        rules + "\n")
    p = heft("convert", "--map", rules if is_name else path, source, out)
    wrong = [] if p.returncode == code else [f"exit status {p.returncode}"]
    wrong += [f"the error does not say {t}" for t in texts if t not in p.stderr]
    wrong += ["a file is written"] if out.exists() else []
    return wrong + ([p.stderr] if wrong else [])


def check_shipped(folder):
    """A shipped map without the settings that it needs."""
    folder.mkdir()
    write(folder / "model.safetensors", MODELS["mixtral"][0]().left)
    (folder / "config.json").write_text(json.dumps({**CONFIG, "model_type": "mixtral"}))
    p = heft("convert", "--map", "auto", folder, folder / "out.safetensors")
    said = p.returncode == 2 and "'experts'" in p.stderr and "config.json" in p.stderr
    return [] if said and not (folder / "out.safetensors").exists() else [p.stderr]


def results(folder):
    for n, (title, case) in enumerate(CASES.items()):
        yield title, check(folder / str(n), *case)
    yield "a shipped map without a number", check_shipped(folder / "shipped")


if __name__ == "__main__":
    HEFT = sys.argv[1]
    with tempfile.TemporaryDirectory() as d:
        sys.exit(tap.report(results(pathlib.Path(d))))
