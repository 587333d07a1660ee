# A kernel without Landlock or seccomp is no error; --verbose says which part the command lacks.
"$PYTHON" - <<'EOF'
import os, subprocess, sys, traced
LANDLOCK = ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"]
if traced.SKIP:
    print(traced.SKIP)
    sys.exit(77)
subprocess.run(["strace", "-o", "calls", "-e", "trace=" + ",".join([*LANDLOCK, "seccomp"]),
                traced.HEFT, "ls", "small.safetensors"], capture_output=True, check=False)
calls = open("calls").read() if os.path.exists("calls") else ""
if "landlock_restrict_self(" not in calls or "seccomp(" not in calls:
    print("there is no sandbox, of this build or on this system")
    sys.exit(77)
for call in (*LANDLOCK, "seccomp"):
    for error in ("ENOSYS", "EPERM"):
        for more in ([], ["--verbose"], ["--verbose", "--no-sandbox"]):
            code, said = traced.run([f"inject={call}:error={error}"], "convert", "--force", *more,
                                    "small.safetensors", "o.mag")
            print(call, error, *more, code, said, sep="\n  ")
EOF
