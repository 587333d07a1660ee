"""command_options.py HEFT [--write]: the table of options in heft/_described.py, made from what
`heft __describe` prints."""
import json
import pathlib
import subprocess
import sys

TABLE = pathlib.Path(__file__).resolve().parents[1] / "heft" / "_described.py"
HEAD = '''"""The options as the command describes them: name, commands, kind, help. Made by
tests/command_options.py HEFT --write."""
DESCRIBED = (
'''
COMMANDS = ("info verify doctor diff hash stats sbom scan sign convert split merge blend "
            "append edit delta apply").split()
# Options that the functions give by themselves, or that only people need.
OTHERS = {"color", "messages", "json", "raw", "help", "quantiles"}
OTHERS_OF = {"scan": {"name", "verbose"}, "diff": {"depth", "limit", "sort", "tree"}}


def text(heft):
    """Return the table."""
    described = json.loads(subprocess.run([heft, "__describe"], check=True, text=True,
                                          stdout=subprocess.PIPE).stdout)
    own, common = {}, {}
    for command in sorted((c for c in described if c["name"] in COMMANDS),
                          key=lambda c: COMMANDS.index(c["name"])):
        for o in command["options"]:
            if o["name"] not in OTHERS | OTHERS_OF.get(command["name"], set()):
                rows = common if o["group"] == "Options of every command" else own
                rows.setdefault((o["name"], o["kind"], o["help"]), []).append(command["name"])
    lines = [f"    ({json.dumps(name)}, {json.dumps(' '.join(commands))},\n"
             f"     {json.dumps(kind)}, {json.dumps(help_text)}),\n"
             for (name, kind, help_text), commands in (own | common).items()]
    return HEAD + "".join(lines) + ")\n"


if __name__ == "__main__":
    if sys.argv[2:] == ["--write"]:
        TABLE.write_text(text(sys.argv[1]), encoding="utf-8")
    else:
        print(text(sys.argv[1]), end="")
