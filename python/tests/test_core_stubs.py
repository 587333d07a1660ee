"""The stubs of the extension name what exists, and public functions have types."""
import ast
import inspect
import pathlib

import heft
from heft import _heft

STUBS = pathlib.Path(heft.__file__).with_name("_heft.pyi")


def stub():
    return ast.parse(STUBS.read_text(encoding="utf-8"))


def members(node):
    return {n.target.id if isinstance(n, ast.AnnAssign) else n.name for n in node.body
            if isinstance(n, (ast.FunctionDef, ast.AnnAssign))}


def test_classes_have_the_members_of_their_stubs():
    for node in stub().body:
        if not isinstance(node, ast.ClassDef) or not hasattr(_heft, node.name):
            continue
        cls = getattr(_heft, node.name)
        public = {name for name in vars(cls) if not name.startswith("_")}
        named = members(node) - {"__buffer__", "__new__"}  # of Python 3.12, and constructors
        assert {name for name in named if not name.startswith("_")} == public, node.name
        assert all(hasattr(cls, name) for name in named), node.name


def test_all_public_names_have_stubs():
    names = {n.name for n in stub().body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    names |= {a.asname for n in stub().body if isinstance(n, ast.ImportFrom) for a in n.names}
    names |= {n.target.id for n in stub().body if isinstance(n, ast.AnnAssign)}
    public = {name for name in vars(_heft) if not name.startswith("_")}
    assert public <= names and "__version__" in names


def test_functions_in_python_have_types():
    for owner in (heft.load, heft.save, heft.Writer, heft.ParamStore, heft.Parameter, heft.Part):
        functions = [owner] if inspect.isfunction(owner) else [
            f for name, f in vars(owner).items() if inspect.isfunction(f) and name[0] != "_"]
        for f in functions:
            signature = inspect.signature(f)
            assert signature.return_annotation is not inspect.Signature.empty, f
            assert all(p.annotation is not inspect.Parameter.empty
                       for name, p in signature.parameters.items() if name != "self"), f
