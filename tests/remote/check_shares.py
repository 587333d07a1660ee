"""check_shares.py HEFT: an object of S3, written in shares by several processes.

The judge is heft without shares. Shares are killed, run again, belong to a different plan or upload,
or lose parts, pieces and records on the server. TAP on stdout."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading

import s3_server
from loopback import HEFT, check, heft, run, safetensors, skip

server = s3_server.S3Server()
ENV = {"AWS_ACCESS_KEY_ID": s3_server.KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET,
       "AWS_SESSION_TOKEN": s3_server.SESSION, "AWS_REGION": s3_server.REGION,
       "AWS_ENDPOINT_URL": server.url, "HF_HUB_OFFLINE": ""}
MIB = 1 << 20
FEWER = bool(os.environ.get("HEFT_TEST_FEWER"))
KEY, PATH = "s3://bucket/dir/out +&.{}", "/bucket/dir/out +&.{}"
folder = pathlib.Path(tempfile.mkdtemp())
large, small, damaged = folder / "large.zt", folder / "small.zt", folder / "damaged.zt"
expected = {}


def environment(**more):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("HF_", "AWS_", "CURL_", "SSL_", "OMPI_", "PMI_", "PMIX_", "SLURM_"))
             and "proxy" not in k.lower()}
    return {**clean, "HOME": "/nonexistent", **ENV, **more}


def start(*args, **more):
    return subprocess.Popen([HEFT, *map(str, args)], env=environment(**more), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def call(*args, **more):
    p = start(*args, **more)
    out, err = p.communicate(timeout=600)
    return p.returncode, err.decode(errors="replace")


def share(i, n, *options, source=None, key=KEY.format("mag")):
    return call("convert", *options, "--share", f"{i}/{n}", source or large, key)


def finish(*options, source=None, key=KEY.format("mag")):
    return call("convert", *options, "--finish", source or large, key)


def clear(plan=None):
    server.reset(plan)
    server.objects.clear()
    server.page, server.quote, server.obeys = 1000, '"', True


def beside(suffix="mag"):
    """Names of the objects beside the output."""
    start = PATH.format(suffix) + ".shares/"
    return {n.removeprefix(start) for n in server.objects if n != PATH.format(suffix)}


def remains():
    return beside() | set(server.uploads)


def stored(suffix="mag"):
    return server.objects.get(PATH.format(suffix))


def is_right(suffix="mag", source=None):
    """The output has the bytes of a conversion by one process, and nothing else remains."""
    source = source or large
    if (source, suffix) not in expected:
        one = folder / f"one.{suffix}"
        one.unlink(missing_ok=True)
        heft("convert", str(source), str(one))
        expected[source, suffix] = one.read_bytes()
    return stored(suffix) == expected[source, suffix] and not beside(suffix) and not server.uploads \
        and not server.refusals


def make_sources():
    raw = folder / "raw.safetensors"
    data = random.Random(5)
    raw.write_bytes(safetensors({f"layer.{i}": data.randbytes(5 * MIB + 13 * i) for i in range(7)}))
    heft("convert", "--digest", "crc32c", str(raw), str(large))
    raw.write_bytes(safetensors({f"layer.{i}": data.randbytes(100 + i) for i in range(5)}))
    heft("convert", "--digest", "sha256", str(raw), str(small))
    raw.unlink()
    wrong = bytearray(large.read_bytes())
    wrong[len(wrong) // 2] ^= 1
    damaged.write_bytes(wrong)


def counts():
    cases = [("mag", large, (1, 2, 4)), ("npz", large, (2,)), ("safetensors", small, (7,)), ("npz", small, (2,))]
    for suffix, source, several in cases:
        for n in several:
            clear()
            server.page, server.quote = (2, "&quot;") if n == 4 else (1000, '"')
            order = random.Random(n).sample(range(1, n + 1), n)
            answers = [share(i, n, source=source, key=KEY.format(suffix)) for i in order]
            check(f"{n} shares of {source.name} to {suffix} give the bytes of one process",
                  is_right(suffix, source) and all(c == 0 for c, _ in answers), answers, beside(suffix), server.refusals)
    clear()
    answers = [call("merge", "--share", f"{i}/2", large, small, KEY.format("zt"), "--duplicates", "last")
               for i in (2, 1)]
    one = folder / "merged.zt"
    heft("merge", "--duplicates", "last", str(large), str(small), str(one))
    check("merge writes shares", stored("zt") == one.read_bytes() and not beside("zt"), answers, beside("zt"))


def killed():
    """A share is killed when a part is on the way, and run again."""
    for query_of in ("partNumber", "record") if FEWER else ("partNumber", "piece", "record"):
        gate = threading.Event()
        reached = threading.Event()

        def plan(method, query):
            name = server.path.rpartition("/")[2]
            hit = method == "PUT" and ("partNumber" in query if query_of == "partNumber" else
                                       name.startswith("piece-" if query_of == "piece" else "share-"))
            if hit:
                reached.set()
            more = {"status": 503} if query_of == "record" else {}  # a record that arrives late would count
            return {"gate": gate, **more} if hit else None
        clear(plan)
        p = start("convert", "--share", "1/2", large, KEY.format("mag"))
        check(f"a share sends its {query_of}", reached.wait(600))
        p.send_signal(signal.SIGKILL)
        p.communicate()
        server.plan = lambda method, query: None
        gate.set()
        last, again = share(2, 2), share(1, 2)
        check(f"a share that was killed at a {query_of} is run again", is_right() and last[0] == again[0] == 0,
              last, again, remains(), server.refusals)


def straggler():
    """A share is written by two processes, and the slower one ends after the object is complete."""
    for held in ("piece-",) if FEWER else ("piece-", "share-"):
        gate, reached, first = threading.Event(), threading.Event(), []

        def plan(method, query):
            name = server.path.rpartition("/")[2]
            if method != "PUT" or not name.startswith(held) or not name.endswith("2") or first:
                return None
            first.append(1)
            reached.set()
            return {"gate": gate}
        clear()
        share(1, 2)
        server.plan = plan
        p = start("convert", "-j1", "--share", "2/2", large, KEY.format("mag"))
        reached.wait(600)
        code, err = share(2, 2)
        check(f"a share is written while another process is at its {held}", code == 0 and is_right(), code, err, remains())
        gate.set()
        err = p.communicate()[1]
        check(f"the slower process leaves nothing, held at its {held}", is_right(), p.returncode, err, remains())


def other_plans():
    clear()
    share(1, 2, source=small)
    for about, (code, err) in (("count", share(2, 3, source=small)), ("input", share(2, 2, source=large)),
                               ("options", share(2, 2, "--set", "a=b", source=small)), ("options of --finish", finish("--set", "a=b", source=small))):
        check(f"a share of a plan with another {about} is refused", code == 2 and "another plan" in err and
              stored() is None and len(server.uploads) == 1, code, err, remains())
    code, err = finish(source=small)
    check("--finish reports a missing share", code == 2 and "1 of 2 shares are missing" in err, code, err)
    code, err = share(1, 2, "-v", source=small)
    check("a share with a record is not written again", code == 0 and "was there" in err, code, err)
    code, err = share(2, 2, source=small)
    check("the last share completes the object", code == 0 and is_right(source=small), code, err, remains())
    code, err = share(2, 2, source=small)
    check("an object is not replaced", code == 2 and "already exists" in err and not remains(), code, err)
    codes = [share(i, 2, "--force", source=small) for i in (1, 2)]
    check("--force replaces an object", is_right(source=small) and codes[1][0] == 0, codes, remains())
    code, err = finish("--force", source=small)
    check("--finish without shares is refused", code == 2 and "there are no shares" in err, code, err)


def parts():
    """The parts of the only upload."""
    return next(iter(server.uploads.values()))[1]


def change_part():
    etag, data = parts()[2]
    parts()[2] = ('"0123456789abcdef0123456789abcdef"', data[:-1] + b"x")


def shorten_part():
    etag, data = parts()[2]
    parts()[2] = (etag, data[:-1])


def change_object(start, change):
    name = next(n for n in server.objects if ".shares/" + start in n and n.endswith(("share-00001", "00001-of-2")))
    changed = change(server.objects[name])
    server.etags[name] = f'"{len(changed or b"")}-changed"'
    server.objects[name] = changed
    if changed is None:
        del server.objects[name]


def losses():
    """The server loses or changes what a share has stored: --finish says which share to repeat."""
    clear(lambda method, query: {"status": 400} if method == "POST" and "uploadId" in query else None)
    answers = [share(i, 2) for i in (1, 2)]
    check("a failed completion is reported", answers[1][0] == 4 and stored() is None, answers)
    objects, etags = dict(server.objects), dict(server.etags)
    name, (path, whole) = next(iter(server.uploads.items()))
    cases = [
        ("a changed part", change_part),
        ("a shortened part", shorten_part),
        ("a removed part", lambda: parts().pop(2)),
        ("a changed piece", lambda: change_object("piece-", lambda d: d[:5] + b"x" + d[6:])),
        ("a shortened piece", lambda: change_object("piece-", lambda d: d[:-1])),
        ("an extended piece", lambda: change_object("piece-", lambda d: d + b"x")),
        ("a removed piece", lambda: change_object("piece-", lambda d: None)),
        ("a changed record", lambda: change_object("share-", lambda d: d.replace(b'"count"', b'"c"'))),
        ("a record without ETags", lambda: change_object("share-", lambda d: d.replace(b"part 2", b"part 9"))),
        ("a record of another upload", lambda: change_object("share-", lambda d: d.replace(b"id%", b"no%"))),
        ("a record with a line more", lambda: change_object("share-", lambda d: d.replace(b"\n\n", b"\nx\n\n"))),
        ("an empty record", lambda: change_object("share-", lambda d: b"")),
    ]
    for about, change in cases:
        clear()
        server.objects.update(objects)
        server.etags.update(etags)
        server.uploads[name] = (path, dict(whole))
        change()
        code, err = finish()
        check(f"{about} is found", code == 2 and stored() is None, code, err, remains())
        check(f"{about} is reported with its share", about == "a changed record" or
              ("share 1" in err and "again" in err), code, err)
        if about not in ("a removed part", "a changed piece", "a changed record"):
            continue
        code, err = share(1, 2)
        check(f"after {about} the share is run again", code == 0 and is_right(), code, err, remains())


def refused_requests():
    """The server refuses single requests: each refusal is reported, nothing is taken for missing."""
    def refuse(method, key="", path=""):
        return lambda m, q: {"status": 403} if m == method and key in {"", *q} and server.path.endswith(path) else None
    clear(refuse("GET", path="/out +&.mag"))
    code, err = share(1, 2, source=small)
    check("an output that cannot be looked for", code == 4 and "credentials" in err and not remains(), code, err, remains())
    clear(refuse("GET", path="/plan"))
    code, err = share(1, 2, source=small)
    check("a plan that cannot be read", code == 4 and "credentials" in err and not remains(), code, err, remains())
    clear()
    share(1, 2, source=small)
    objects = beside()
    for about, plan in (("an upload that cannot be removed", refuse("DELETE", "uploadId")),
                        ("objects that cannot be listed", refuse("GET", "list-type"))):
        server.plan = plan
        code, err = call("convert", "--abort", small, KEY.format("mag"))
        check(about, code == 4 and "credentials" in err and beside() == objects, code, err,
              remains())
    server.reset_plan()
    code, err = call("convert", "--abort", small, KEY.format("mag"))
    check("--abort removes the rest", code == 0 and not remains(), code, err, remains())


def replaced():
    """While a share is written, the shares are given up and begun again."""
    def replace(method, query):
        if method == "PUT" and "/piece-" in server.path:
            plan = PATH.format("mag") + ".shares/plan"
            server.objects[plan] = server.objects[plan].replace(b"upload id", b"upload jd")
    clear(replace)
    code, err = share(1, 2, source=small)
    check("a share of an earlier upload has no record", code == 2 and "given up these shares and begun again" in err and
          not any(n.startswith("share-") for n in beside()), code, err, remains())


def forgotten():
    """The list of parts lacks a part that was just stored."""
    def forget(method, query):
        if method == "GET" and "uploadId" in query and query["uploadId"] in server.uploads:
            server.uploads[query["uploadId"]][1].clear()
    clear()
    share(1, 2, source=small)
    server.plan = forget
    code, err = share(2, 2, source=small)
    check("a part that the server has forgotten", code == 4 and "part 1 is missing in the server's list of parts" in err and
          stored() is None, code, err, remains())


def long_addresses():
    """After the address of the output there is no room for ".shares/", or none for ".shares/plan"."""
    most = 8192 - 1
    for room in (0, 7, 8, 11):
        clear()
        key = "k" * (most - len(f"{server.url}/bucket/") - room)
        code, err = share(1, 2, "--to", "mag", source=small, key=f"s3://bucket/{key}")
        check(f"an address with {room} bytes to the limit", code == 5 and "the address is too long" in err and
              not server.objects and not server.uploads, code, err[-300:])


def gone():
    """The upload is removed by the server; the plan is damaged."""
    clear()
    share(1, 2)
    server.uploads.clear()
    for about, (code, err) in (("a share", share(2, 2)), ("the same share", share(1, 2))):
        check(f"{about} reports an upload that is gone", code != 0 and "--abort" in err and stored() is None, code, err)
    code, err = call("convert", "--abort", large, KEY.format("mag"))
    check("--abort removes the rest", code == 0 and not remains(), code, err, remains())
    clear()
    share(1, 2)
    plan = PATH.format("mag") + ".shares/plan"
    text = server.objects[plan]
    for wrong in (b"", text.replace(b"upload", b"uplaod"), text + b"x", text.replace(b"id%", b"id<")):
        server.objects[plan] = wrong
        code, err = finish()
        check(f"the plan {wrong[-30:]} is refused", code == 2 and "damaged" in err and stored() is None, code, err)
    server.objects[plan] = text
    code, err = share(2, 2)
    check("the right plan is accepted", code == 0 and is_right(), code, err)


def giving_up():
    clear()
    share(1, 2)
    check("a share leaves an upload", len(server.uploads) == 1 and "plan" in beside(), remains())
    code, err = call("convert", "--abort", large, KEY.format("mag"))
    check("--abort leaves nothing", code == 0 and not remains(), code, err, remains())
    code, err = call("convert", "--abort", large, KEY.format("mag"))
    check("--abort without shares is refused", code == 2 and "there are no shares" in err, code, err)
    code, err = call("convert", "--abort", "--share", "1/2", large, KEY.format("mag"))
    check("--abort excludes --share", code == 2 and "excludes" in err, code, err)
    gate, reached = threading.Event(), threading.Event()

    def plan(method, query):
        if "partNumber" in query:
            reached.set()
            return {"gate": gate}
        return None
    server.reset(plan)
    p = start("convert", "--share", "2/2", large, KEY.format("mag"))
    reached.wait(600)
    server.plan = lambda method, query: None
    call("convert", "--abort", large, KEY.format("mag"))
    gate.set()
    err = p.communicate()[1].decode()
    check("a share whose upload is given up fails", p.returncode not in (0, None) and stored() is None and
          "plan" not in beside(), p.returncode, err, remains())


def completions():
    """The completion fails, is lost, or is interrupted; several processes complete at the same time."""
    clear(lambda method, query: {"status": 400} if method == "POST" and "uploadId" in query else None)
    for i in (1, 2):
        share(i, 2, source=small)
    server.reset_plan()
    several = [start("convert", "--force", "--finish", small, KEY.format("mag")) for _ in range(3)]
    ends = [(p.communicate()[1], p.returncode) for p in several]
    check("several processes complete at the same time", is_right(source=small) and
          {c for _, c in ends} <= {0, 2} and any(c == 0 for _, c in ends), ends, remains())
    lost = []

    def lose(method, query):
        first = method == "POST" and "uploadId" in query and not lost
        if first:
            lost.append(1)
        return {"lost": first}
    clear(lose)
    answers = [share(i, 2, source=small) for i in (1, 2)]
    check("a completion whose answer is lost is a success", is_right(source=small) and answers[1][0] == 0, answers, remains())
    gate, reached = threading.Event(), threading.Event()

    def stop(method, query):
        if method == "DELETE":
            reached.set()
            return {"gate": gate, "status": 503}
        return None
    clear(stop)
    share(1, 2, source=small)
    p = start("convert", "--share", "2/2", small, KEY.format("mag"))
    reached.wait(600)
    p.kill()
    p.communicate()
    gate.set()
    server.reset_plan()
    check("a process is killed after the completion", stored() is not None and "done" in beside(), remains())
    code, err = finish("--force", source=small)
    check("the next process removes what is left", code == 0 and is_right(source=small), code, err, remains())

    def appear(method, query):
        if "partNumber" in query:
            server.objects[PATH.format("mag")] = b"other"
    clear(appear)
    answers = [share(i, 2, source=small) for i in (1, 2)]
    check("an object that appears meanwhile is kept", answers[1][0] == 2 and "already exists" in answers[1][1] and
          stored() == b"other", answers)


def at_once():
    for n in range(1 if FEWER else 3):
        clear()
        several = [start("convert", "-j1", "--share", f"{i}/4", small, KEY.format("mag")) for i in (1, 2, 3, 4)]
        ends = [(p.communicate()[1], p.returncode) for p in several]
        check(f"four shares at the same time, {n}", is_right(source=small) and all(c == 0 for _, c in ends), ends,
              remains())


def refusals():
    clear()
    server.obeys = False
    code, err = share(1, 2)
    check("a server that ignores If-None-Match is refused", code == 5 and "If-None-Match" in err and not remains(),
          code, err, remains())
    clear()
    code, err = share(1, 2, "--compress", "zstd", key=KEY.format("zt"))
    check("compressed parts are refused", code == 5 and "sizes are not known in advance" in err and not server.uploads,
          code, err)
    for url in ("https://127.0.0.1:1/out.mag", "hf://a/b/out.mag"):
        code, err = share(1, 2, key=url)
        check(f"{url} is refused", code == 5 and "s3://BUCKET/KEY" in err, code, err)
    code, err = share(1, 2, "--offline")
    check("--offline refuses shares on a server", code == 4 and not remains(), code, err)
    codes = [share(i, 2, source=damaged)[0] for i in (1, 2)]
    check("a wrong checksum of the input is found", 3 in codes and stored() is None, codes)
    call("convert", "--abort", large, KEY.format("mag"))
    check("nothing remains of the damaged input", not remains(), remains())


def open_mpi():
    if not shutil.which("mpirun"):
        skip("shares under Open MPI", "mpirun is not installed (openmpi-bin)")
        return
    clear()
    p = subprocess.run(["mpirun", "--oversubscribe", "--mca", "btl", "self", "-n", "2", HEFT, "convert", "--share",
                        "auto", str(large), KEY.format("mag")], capture_output=True, check=False,
                       env=environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    check("two ranks of Open MPI write an object", p.returncode == 0 and is_right(), p.returncode, p.stderr, remains())
    clear()
    for rank in ("0", "1"):
        code, err = call("convert", "--share", "auto", large, KEY.format("mag"), SLURM_PROCID=rank, SLURM_NTASKS="2")
        check(f"rank {rank} under Slurm writes its share", code == 0, code, err)
    check("two ranks under Slurm write an object", is_right(), remains())


try:
    make_sources()
    run(server.url + "/x", (counts, killed, straggler, other_plans, losses, refused_requests, replaced, forgotten,
                            long_addresses, gone, giving_up, completions, at_once, refusals, open_mpi))
finally:
    shutil.rmtree(folder, ignore_errors=True)
