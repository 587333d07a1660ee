$HEFT formats --json | $PYTHON -c '
import json, sys
for f in json.load(sys.stdin)["formats"]:
    print(f["name"], "yes" if f["read"] else "no", "yes" if f["write"] else "folder" if f["split"] else "no",
          " ".join(f["suffixes"]) or "-", " ".join(f["versions"]) or "-", f["title"], sep="\t")' > a
$HEFT formats --raw | diff a - && echo same
$HEFT formats | head -1 | tr -s ' '
