"""The type stubs of the command functions are those of the table, and are Python."""
import ast

import command_stubs


def test_stubs_are_up_to_date():
    stubs = command_stubs.STUBS.read_text(encoding="utf-8")
    ast.parse(stubs)
    assert stubs == command_stubs.text(), "run python/tests/command_stubs.py --write"
