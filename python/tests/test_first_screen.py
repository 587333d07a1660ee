"""The four lines of README.md run, and so does the script with pictures."""
import pathlib
import re
import runpy
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, ROOT / "tools/make_model.py", "source.safetensors"], check=True)
    return "source.safetensors"


def test_four_lines_of_the_readme_run(model, capsys):
    pytest.importorskip("numpy")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)[1]
    assert code.count("\n") == 4
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == "True\n"


def test_a_model_is_looked_at_with_pictures(model, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "argv", ["look_at_a_model.py", model])
    runpy.run_path(str(ROOT / "examples/look_at_a_model.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "safetensors, 40 tensors, 4,462,848 parameters" in printed
    assert "with NaN or infinity: none" in printed
    for name in ("bytes", "spread", "values"):
        assert pathlib.Path(name + ".svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
