"""command_stubs.py [--write]: the type stubs of the command functions, made from their table."""
import ast
import pathlib
import sys

from heft import _commands, _results

STUBS = pathlib.Path(__file__).resolve().parents[1] / "heft" / "_commands.pyi"
HEAD = '''# Made by tests/command_stubs.py --write from the table of options.
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
'''

RETURNS = {"__bool__": "bool", "__str__": "str", "losses": "tuple[Message, ...]",
           "__getitem__": "TensorStats"}


def _function(name, function):
    signature = function.__signature__
    lines, is_keyword = [], False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            lines.append("*")
        default = "" if p.default is p.empty else " = ..."
        lines.append(f"{p.name}: {p.annotation}{default}")
    body = "".join(f"    {line},\n" for line in lines)
    return f"def {name}(\n{body}) -> {signature.return_annotation}: ...\n"


def _shorten(node):
    """Keep bases and annotations of a dataclass; its methods lose their bodies."""
    kept = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign):
            has_default = isinstance(item.value, ast.Constant) or "default" in ast.dump(
                item.value or ast.Pass())
            item.value = ast.Constant(...) if has_default else None
            kept.append(item)
        elif isinstance(item, ast.FunctionDef):
            item.body = [ast.Expr(ast.Constant(...))]
            item.returns = ast.Name(RETURNS[item.name])
            kept.append(item)
    node.body = kept
    return ast.unparse(node)


def text():
    """Return the stubs."""
    tree = ast.parse(pathlib.Path(_results.__file__).read_text(encoding="utf-8"))
    classes = [_shorten(node) for node in tree.body if isinstance(node, ast.ClassDef)]
    warnings = ["class FileWarning(UserWarning):\n    rule: str | None\n    tensor: str | None"]
    functions = [_function(*item) for item in sorted(_commands.FUNCTIONS.items())]
    return "\n".join([HEAD, "\n\n".join([*classes, *warnings]), "", *functions])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        STUBS.write_text(text(), encoding="utf-8")
    print(text(), end="")
