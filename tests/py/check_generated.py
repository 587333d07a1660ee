#!/usr/bin/env python3
"""check_generated.py: compare committed tables with what their programs write. TAP on stdout."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402

# The tables of gen_nfc_tables.py depend on Python's version of Unicode.
TABLES = {
    "src/base/crc_tables.h": "gen_crc_tables.py",
    "src/map/map_texts.c": "gen_maps.py",
    "src/model/block_grids.c": "gen_block_grids.py"
}


def check(path, program):
    text = subprocess.run([sys.executable, ROOT / "tools" / program], capture_output=True,
                          check=True).stdout
    return [] if text == (ROOT / path).read_bytes() else [f"tools/{program} writes another file"]


sys.exit(tap.report((f"{p} is current", check(p, program)) for p, program in TABLES.items()))
