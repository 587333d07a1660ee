#!/usr/bin/env python3
"""Write src/map/map_texts.c to stdout: the texts of share/heft/maps."""
import pathlib
import sys
import textwrap

MAPS = pathlib.Path(__file__).resolve().parent.parent / "share/heft/maps"
LONGEST = 4095  # bytes of a string that every compiler of C11 takes


def literal(path):
    """Return the text as a string of C, without comments; lines keep their numbers."""
    lines = [line.partition("#")[0].rstrip() for line in path.read_text().splitlines()]
    if sum(len(line) + 1 for line in lines) > LONGEST:
        sys.exit(f"{path.name}: more than {LONGEST} bytes without comments")
    out, blank = [], ""
    for line in lines:
        if line:
            pieces = textwrap.wrap(line, 80, drop_whitespace=False, break_on_hyphens=False)
            out += [f'    "{piece}"' for piece in [blank + pieces[0], *pieces[1:]]]
            out[-1] = out[-1][:-1] + '\\n"'
        blank = "" if line else blank + "\\n"
    out[0] = out[0].lstrip()
    return "\n".join(out)


def main():
    print("/* map_texts.c - the texts of share/heft/maps, as tools/gen_maps.py writes them. */")
    print('#include "map/map_rules.h"\n\n/* clang-format off */')
    print("const char *const heft_map_texts[] = {")
    for path in sorted(MAPS.glob("*.map")):
        print(f"    {literal(path)},")
    print("    NULL\n};\n/* clang-format on */")


main()
