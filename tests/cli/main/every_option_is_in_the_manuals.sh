# The tables of docs/cli.md have the options that the commands have, with their letters and values.
$HEFT __describe > described
$PYTHON - "$CASES/../../docs/cli.md" << 'end'
import json, re, sys

sections, title, is_code = {"": []}, "", False
for line in open(sys.argv[1]):
    is_code ^= line.startswith("```")
    if line.startswith("## ") and not is_code:
        title = line[3:].strip()
    sections.setdefault(title, []).append(line.rstrip())


def rows(title):
    """Yield (letter, name, has a value, refers to another command) of the tables of options."""
    inside = False
    for line in sections[title]:
        inside = line.startswith("|") and (inside or line.startswith("| option |"))
        term, _, effect = line[2:].partition(" | ") if inside else ("", "", "")
        letter = ""
        for short, name, value in re.findall(r"`(?:-(\w)|--([a-z-]+)(?: ([^`]*))?)`", term):
            if name:
                yield letter, name, bool(value), "as for `convert`" in effect
            letter = short


common = {name: (letter, value) for letter, name, value, _ in rows("Common behaviour")}
for c in json.load(open("described")):
    own = {o["name"]: (o["letter"] or "", bool(o["value"])) for o in c["options"]}
    told = set()
    for letter, name, value, is_reference in rows(c["name"]):
        told.add(name)
        if own.get(name) not in ((letter, value), (letter, value or is_reference)):
            print(f"docs/cli.md: {c['name']} has no {letter} --{name} with{'' if value else 'out'} a value")
    text = "\n".join(sections[c["name"]] + sections["Common behaviour"])
    for o in c["options"]:
        is_common = o["group"] == "Options of every command"
        if is_common and common.get(o["name"]) != own[o["name"]]:
            print(f"docs/cli.md: --{o['name']} is not an option of every command")
        if not is_common and o["name"] not in told and not re.search(rf"--{o['name']}\b", text):
            print(f"docs/cli.md does not know {c['name']} --{o['name']}")
end
