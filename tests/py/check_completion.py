#!/usr/bin/env python3
"""check_completion.py HEFT: complete command lines in bash, zsh and fish.

Each shell runs on a pseudo-terminal: lines are typed with a tab and run, and the file that a line
writes shows the tensor that the completed word names. A missing shell is skipped. TAP on stdout."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402

SHARE = ROOT / "share/completions"
HANGS = 120  # seconds: a shell that takes longer hangs
# Names of tensors, and the text typed before the tab: the beginning, quoted.
TYPED = {
    "a b": r"a\ ", "a=b": "a=", "it's": "it", 'say "hi"': "say", "$(touch pwned)": r"\$",
    "`touch pwned`": r"\`", "star*": "st", "q?[1]{2,3}": "q", "new\nline": "ne",
    "tab\there": "ta", "back\\slash": "back", "semi;colon": "se", "w:1": "w:1", "ünï": "ü",
    "\x1b[31mred": None, "!bang": r"\!", "~tilde": r"\~", "#hash": r"\#", "x|y&z<>()": "x",
    "del\x7f": "de", "-dash": None, "nul\0": None, "w:2": "w:2", "long.name.2": "long.name.",
    "'quote": r"\'", "invalid \\u202e\u202e": "inv", "%s%n": "%", "dot.": "dot",
    "end'": "en",
}
FILE = "m f'$(x).safetensors"


def write_model(path):
    names = list(TYPED)
    header = json.dumps({
        "__metadata__": {"lic ense": "x"},
        **{n: {"dtype": "U8", "shape": [4], "data_offsets": [4 * i, 4 * i + 4]}
           for i, n in enumerate(names)}
    }).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(map(content, names)))


def write_nested(path):
    """Write a pickle of dictionaries: the model, with a tensor, and the state of an optimizer."""
    def view(name):
        return (b"X" + struct.pack("<I", len(name)) + name +
                b"ctorch._utils\n_rebuild_tensor_v2\n(("
                b"X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpu"
                b"K\x01tQK\0K\x01\x85K\x01\x85\x89NtRs")
    pickled = (b"\x80\x02}X\x05\0\0\0model}" + view(b"b") + b"sX\x09\0\0\0optimizer}" +
               view(b"step") + b"s.")
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("n/data.pkl", pickled)
        z.writestr("n/data/0", bytes(4))
        z.writestr("n/version", "3\n")
    return path


def content(name):
    return b"%04d" % list(TYPED).index(name)


def environment(heft, folder):
    bin_dir = folder / "bin"
    bin_dir.mkdir(exist_ok=True)
    if not (bin_dir / "heft").exists():
        (bin_dir / "heft").symlink_to(heft)
    return {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8",
            "TERM": "dumb", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
            "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}


def complete(heft, *words, shell="fish", kept=0):
    """Return the answer of `heft __complete` without descriptions."""
    p = subprocess.run([heft, "__complete", shell, str(kept), *words], capture_output=True,
                       check=False)
    assert not p.stderr, p.stderr
    return [w.split("\t")[0] for w in p.stdout.decode("utf-8", "replace").split("\0")[:-1]]


# ---- shells on terminals ----


def type_lines(command, lines, folder, env):
    """Type lines into a shell on a terminal; return the text on the terminal."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execve(command[0], command, env)
    shown, left, end = b"", "".join(lines).encode(), time.monotonic() + HANGS
    while time.monotonic() < end:
        ready, able, _ = select.select([fd], [fd] if left else [], [], 1)
        if able:
            left = left[os.write(fd, left[:64]):]
        try:
            shown += os.read(fd, 65536) if ready else b""
        except OSError:
            break
    else:
        os.kill(pid, 9)
        shown += b"\n(killed: the shell hangs)"
    os.close(fd)
    os.waitpid(pid, 0)
    return shown.decode("utf-8", "replace")


def cases(shell):
    """Yield (typed, name of the tensor): words after "heft cat FILE "."""
    yield from ((typed, name) for name, typed in TYPED.items()
                if typed and (shell != "fish" or "\t" not in name))
    if shell == "bash": # elsewhere "$ begins the name of a variable
        yield '"$', "$(touch pwned)"
    yield from [("'it", "it's"), ('"it', "it's"), ("'say", 'say "hi"'), ('"say', 'say "hi"'),
                ("'st", "star*"), ("'ne", "new\nline"),
                ('"back', "back\\slash"), ("'!", "!bang"), ("a' '", "a b"), ("-- -d", "-dash")]


def check_shell(shell, command, begin, quoted_file, env, folder):
    """Yield a result for each typed word."""
    lines, expected = [begin], []
    for i, (typed, name) in enumerate(cases(shell)):
        out = folder / f"{shell}-{i}"
        lines.append(f"heft cat -q {quoted_file} {typed}\t > {out}\n")
        expected.append((typed, name, out))
    shown = type_lines(command, [*lines, "exit\n"], folder, env)
    for typed, name, out in expected:
        got = out.read_bytes() if out.exists() else None
        yield f"{shell} completes {typed}", [] if got == content(name) else [
            f"{name!r} is {content(name)}, not {got}", *shown.splitlines()[-9:]
        ]
    yield f"{shell} runs nothing of a name", [
        "pwned exists"
    ] if (folder / "pwned").exists() else []


def shells(env, folder):
    """Yield (name, program, first line): how the completion gets into each shell."""
    fpath = folder / "zsh"
    fpath.mkdir()
    shutil.copy(SHARE / "_heft", fpath)
    yield "bash", ["bash", "--norc", "--noprofile", "-i"], f"source '{SHARE}/heft.bash'\n"
    yield "zsh", ["zsh", "-f", "-i"], (
        f"fpath=('{fpath}' $fpath); autoload -Uz compinit; compinit -u -D\n")
    yield "fish", ["fish", "--no-config", "-i"], f"source '{SHARE}/heft.fish'\n"


# ---- words ----


def values(heft, *words):
    return complete(heft, *words)[1:]


def with_config(heft, model):
    """Return a checkpoint without tensors that has a config."""
    config, out = model.with_name("config.json"), model.with_name("config.gptrs")
    none = model.with_name("none.safetensors")
    config.write_text('{"kind": "gpt", "config": {"n": 1}}')
    none.write_bytes(struct.pack("<Q", 2) + b"{}")
    subprocess.run([heft, "convert", "-f", "-q", "--config", config, none, out], check=True,
                   stderr=subprocess.DEVNULL)
    none.unlink()
    return out


def check_words(heft, model):
    """Yield results about commands, options and values."""
    def same(title, got, want):
        return title, [] if got == want else [f"{got} instead of {want}"]

    listed = subprocess.run([heft, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z]+) ", listed.split("Look:")[1].split("`heft")[0], re.M)
    yield same("all commands", values(heft, ""), [*commands, "help"])
    for command in commands:
        shown = subprocess.run([heft, command, "--help"], capture_output=True, text=True,
                               check=True).stdout
        yield same(f"the options of {command}", values(heft, command, "-"),
                   re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", shown, re.M))
    yield same("the target", values(heft, "convert", "--to", "gp"),
               ["gptrs-checkpoint", "gptrs-archive"])
    yield same("a value behind =", values(heft, "convert", "--to=safe"), ["--to=safetensors"])
    yield same("a value behind a pattern", values(heft, "convert", "--cast", "h.*=bf"),
               ["h.*=bf16"])
    yield same("schemes and mixes", values(heft, "convert", "--quantize", "*.w=mxfp4"),
               ["*.w=mxfp4", "*.w=mxfp4_moe"])
    yield same("a mix", values(heft, "convert", "--quantize=q4_k_"),
               ["--quantize=q4_k_s", "--quantize=q4_k_m"])
    yield same("a type behind an expression", values(heft, "convert", "--tensor-type", "v$=q6"),
               ["v$=q6_k"])
    yield same("the type of one tensor", values(heft, "convert", "--output-tensor-type", "q6"),
               ["q6_k"])
    yield same("an array whose type is named", complete(heft, "ls", model, "--view", "sem"),
               ["stems", "semi;colon="])
    yield same("the type of an array", values(heft, "ls", model, "--view", "semi;colon=bf"),
               ["semi;colon=bf16"])
    yield same("what is decoded", values(heft, "merge", "--dequantize="),
               [f"--dequantize={t}" for t in ("bf16", "f16", "f32")])
    yield same("generations of the target",
               values(heft, "convert", "-t", "mag", "--format-version", ""),
               ["1", "100", "snapshot"])
    yield same("an abbreviated option", values(heft, "ls", "--dty", "bf"), ["bf16"])
    yield same("a value within letters", values(heft, "convert", "-nt", "saf"), ["safetensors"])
    yield same("when to colour", values(heft, "ls", "--color", ""), ["auto", "always", "never"])
    yield same("profiles", values(heft, "verify", "-p", "gp"), ["gpt2"])
    yield from (same(f"tensors of the part that {key} opens",
                     values(heft, "cat", *key, write_nested(model.with_name("n.pt")), ""), ["b"])
                for key in (["--key", "model"], ["--key=model"]))
    yield same("keys of the metadata", values(heft, "edit", model, "--unset", ""), ["lic ense"])
    yield same("a key that is set", complete(heft, "edit", model, "--set", ""),
               ["stems", "lic ense="])
    yield same("a tensor that is renamed", complete(heft, "edit", model, "--rename", "it"),
               ["stems", "it's="])
    yield same("patterns escape what is special", values(heft, "ls", model, "sta"), ["star\\*"])
    yield same("parts", values(heft, "cat", model, "--part", ""), ["data"])
    yield same("parts of the file", values(heft, "cat", with_config(heft, model), "--part", ""),
               ["config"])
    yield same("no parts of no file", values(heft, "cat", "no-such-file", "--part", ""), [])
    yield same("files", complete(heft, "ls", ""), ["files"])
    yield same("a file of an option", complete(heft, "convert", "--vocab", "x"), ["files"])
    yield same("a folder", complete(heft, "split", model, ""), ["folders"])
    yield same("the second input", complete(heft, "merge", model, ""), ["files"])
    yield same("an unknown command", complete(heft, "no-such", ""), [])
    yield same("no value of a flag", values(heft, "ls", "--raw="), [])
    yield same("no words for a number", complete(heft, "convert", "--threads", ""), ["words"])
    for first in ("help", "--no-pager"):
        yield same(f"a command after {first}", values(heft, first, "form"), ["formats"])
    for target in (["--to=mag"], ["-tmag"], ["-ftmag"], ["--to", "mag"], ["--force", "-t", "mag"]):
        yield same(f"generations of the target of {target}",
                   values(heft, "convert", *target, "--format-version", ""),
                   ["1", "100", "snapshot"])
    yield same("an argument after --", values(heft, "cat", "--", model, "dot"), ["dot."])
    yield same("no options after --", values(heft, "cat", "--", model, "-"), ["-dash"])
    for missing in ("no-such-file", "/", "/dev/null", "-", ""):
        yield same(f"no tensors of {missing!r}", values(heft, "cat", missing, ""), [])
    yield same("a long name", values(heft, "cat", model, "x" * 100000), [])


def check_values(heft, model, folder):
    """Yield results of commands with each value that is offered."""
    tried = {
        "ls": [("--sort", []), ("--dtype", []), ("--color", []), ("--messages", [])],
        "convert": [("--digest", ["-t", "ztensor", "--format-version", "2"]),
                    ("--compress", ["-t", "ztensor"]), ("--base-ids", ["-t", "gptrs-checkpoint"]),
                    ("--requires-grad", ["-t", "gptrs-checkpoint"]), ("--to", [])],
        "merge": [("--duplicates", ["-t", "safetensors"])],
    }
    for command, options in tried.items():
        for option, more in options:
            for value in values(heft, command, *more, option, ""):
                outputs = [] if command == "ls" else ["-n" if command == "convert" else "-f",
                                                      folder / "out"]
                p = subprocess.run([heft, command, model, option, value, *more, *outputs],
                                   capture_output=True, text=True, check=False)
                wrong = p.returncode == 2 and "crc32c" not in value
                yield f"heft {command} {option} {value}", p.stderr.splitlines() if wrong else []


def check_refusals(heft):
    for words in ([], ["bash"], ["tcsh", "0", "ls"]):
        p = subprocess.run([heft, "__complete", *words], capture_output=True, check=False)
        yield f"__complete {' '.join(words)} is wrong usage", [] if p.returncode == 2 else [
            f"exit status {p.returncode}"
        ]


def check_bash_quotation(heft, model):
    """Let bash read back the quoted words, within each quotation."""
    wanted = sorted(n for n in TYPED if "\0" not in n and n[0] != "-")
    for quote in ("", "'", '"', "$'"):
        p = subprocess.run([heft, "__complete", "bash", "0", "cat", shell_quote(model), quote],
                           capture_output=True, text=True, check=True, errors="surrogateescape")
        words = p.stdout.splitlines()[1:]
        mark = quote[-1:]
        script = "".join(f"printf '%s\\0' {quote}{w}{'' if w.endswith(mark) else mark}\n"
                         for w in words)
        read = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
        got = sorted(read.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1])
        yield f"bash reads what is quoted after {quote}", [] if got == wanted else [
            str(sorted(set(wanted) ^ set(got))), read.stderr.decode()
        ]


def check_escapes(heft, model):
    """Type the beginning of a name with the escapes of $'...' in bash."""
    def offered(word):
        p = subprocess.run([heft, "__complete", "bash", "0", "cat", shell_quote(model), word],
                           capture_output=True, text=True, check=True)
        return p.stdout.splitlines()[1:]

    plain = offered("$'dot")
    for escaped in (r"\x64ot", r"d\x6Ft", r"d\157\164", r"\dot", r"\x64\x6f\x74"):
        got = offered("$'" + escaped)
        yield f"bash escapes {escaped}", [] if got == plain and len(got) == 1 else [
            f"{got} instead of {plain}"
        ]
    for unknown in (r"dot\n", r"dot\41", r"dot\x61", r"\x6gdot", r"\x6g", r"\9dot"):
        got = offered("$'" + unknown)
        yield f"no name begins with {unknown}", got


def shell_quote(path):
    return "'" + str(path).replace("'", "'\\''") + "'"


def results(heft, folder):
    os.environ["HEFT_PROFILES"] = str(ROOT / "share/heft/profiles")
    model = folder / FILE
    write_model(model)
    yield from check_words(heft, model)
    yield from check_values(heft, model, folder)
    yield from check_refusals(heft)
    env = environment(heft, folder)
    if shutil.which("bash"):
        yield from check_bash_quotation(heft, model)
        yield from check_escapes(heft, model)
    for shell, command, begin in shells(env, folder):
        program = shutil.which(shell)
        if not program:
            yield f"{shell} # SKIP the shell is not installed", []
            continue
        yield from check_shell(shell, [program, *command[1:]], begin, r"m\ f\'\$\(x\).safetensors",
                               env, folder)


def main():
    with tempfile.TemporaryDirectory(prefix="heft-completion-") as folder:
        return tap.report(results(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder)))


sys.exit(main())
