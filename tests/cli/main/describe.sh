# Programs read in __describe what people read in --help.
$HEFT __describe > described
$PYTHON -c '
import json, os, re, subprocess
run = lambda *words: subprocess.run([os.environ["HEFT"], *words], capture_output=True, text=True).stdout
described = json.load(open("described"))
listed = run("--help").split("Look:")[1].split("`heft")[0]
print([c["name"] for c in described] == re.findall(r"^  ([a-z]+) ", listed, re.M))
for c in described:
    text = run(c["name"], "--help")
    shown = re.findall(r"^  (?:-(.), |    )--([a-z-]+)( \S|\[=)?", text, re.M)
    told = [(o["letter"] or "", o["name"], bool(o["value"])) for o in c["options"]]
    if told != [(letter, name, bool(value)) for letter, name, value in shown] or not told:
        print(c["name"], "has other options in --help")
    if any(o["group"] + ":\n" not in text or (o["kind"] == "flag") != (not o["value"]) for o in c["options"]):
        print(c["name"], "has other groups or kinds")
    for o in c["options"]:
        if o["words"]:
            refused = subprocess.run([os.environ["HEFT"], c["name"], "--" + o["name"], "x"], capture_output=True, text=True)
            if ", ".join(o["words"][:-1]) + " or " + o["words"][-1] not in refused.stderr or refused.returncode != 2:
                print(c["name"], o["name"], "has other words")
'
