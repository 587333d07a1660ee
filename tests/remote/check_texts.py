"""check_texts.py HEFT: config.json and the tokenizer next to a model on a server.

What a conversion makes of an address is what it makes of the same files in a folder."""
import json
import pathlib
import sys
import tempfile

from loopback import Server, check, heft, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "py"))
try:
    import made_models
    import made_tokenizers
    from check_gguf_runs import weights_file
except ImportError:
    print("1..0 # SKIP numpy is not installed")
    sys.exit(0)

COMMIT = "0" * 40


def texts_of_model():
    tokenizer = made_tokenizers.byte_level("qwen2", count=4)
    model = made_models.Model("qwen2", len(tokenizer["model"]["vocab"]) + 2)
    model.forward([1])
    return {"model.safetensors": weights_file(model.weights),
            "config.json": json.dumps(model.c).encode(),
            "tokenizer.json": json.dumps(tokenizer).encode(),
            "generation_config.json": b'{"eos_token_id": 3}'}


files = texts_of_model()
listing = json.dumps({"sha": COMMIT, "siblings": [{"rfilename": n} for n in files]}).encode()
server = Server({
    **{f"/m/{n}": d for n, d in files.items()},
    **{f"/o/n/resolve/{v}/{n}": d for n, d in files.items() for v in ("main", "v1", COMMIT)},
    "/api/models/o/n/revision/main": listing, "/api/models/o/n/revision/v1": listing,
    **{f"/bucket/a/{n}": d for n, d in files.items()},
    "/alone/model.safetensors": files["model.safetensors"]})
settings = {"HF_ENDPOINT": server.url, "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "c"}
temporary = tempfile.TemporaryDirectory()
here = pathlib.Path(temporary.name)
folder = here / "folder"
folder.mkdir()
for name, data in files.items():
    (folder / name).write_bytes(data)


def read(path):
    return path.read_bytes() if path.exists() else None


def paths():
    return [r[0] for r in server.requests]


def maps():
    code, _, err = heft("convert", "--map", "auto", str(folder), str(here / "near.gguf"))
    check("a folder becomes GGUF", code == 0, code, err)
    for i, address in enumerate((f"{server.url}/m/model.safetensors",
                                 f"{server.url}/m/model.safetensors?signed=1", "hf://o/n",
                                 "hf://o/n@v1/model.safetensors", "s3://bucket/a/model.safetensors")):
        server.reset()
        out = here / f"far{i}.gguf"
        code, _, err = heft("convert", "--map", "auto", address, str(out), **settings)
        check(f"{address.split('://')[0]} {i}: the same file",
              code == 0 and read(out) == read(here / "near.gguf"), code, err, paths())
        signed = [p for p in paths() if "signed" in p and "model.safetensors" not in p]
        check(f"{i}: the query stays with its file", not signed, signed)


def revisions():
    server.reset()
    heft("convert", "--map", "auto", "hf://o/n@v1", str(here / "v1.gguf"), **settings)
    texts = [p for p in paths() if p.endswith((".json", ".txt", ".model", ".jinja"))]
    check("texts are those of the revision", texts and all("/resolve/v1/" in p for p in texts), paths())


def schemes():
    (here / "near").mkdir()
    (here / "far").mkdir()
    near, far = here / "near/model.safetensors", here / "far/model.safetensors"
    code, _, err = heft("convert", "--quantize", "fp8", str(folder), str(near))
    check("a folder is quantised", code == 0, code, err)
    code, _, err = heft("convert", "--quantize", "fp8", f"{server.url}/m/model.safetensors", str(far))
    check("an address is quantised, with its config.json", code == 0 and read(near) == read(far)
          and read(near.parent / "config.json") == read(far.parent / "config.json"), code, err)


def failures():
    out = here / "no.gguf"
    code, _, err = heft("convert", "--map", "auto", f"{server.url}/alone/model.safetensors", str(out))
    check("no config.json", code == 2 and "model_type" in err and not out.exists(), code, err)

    def refused(status):
        return lambda number, handler: {"status": status} if "config.json" in handler.path else {}
    server.reset(refused(403))
    code, _, err = heft("convert", "--map", "qwen2", f"{server.url}/m/model.safetensors", str(out))
    check("a refused text counts as missing", code == 0 and "counts as missing" in err, code, err)
    out.unlink(missing_ok=True)
    server.reset(refused(418))
    code, _, err = heft("convert", "--map", "qwen2", f"{server.url}/m/model.safetensors", str(out))
    check("another failure ends the conversion", code == 4 and not out.exists()
          and "config.json" in err, code, err)
    server.reset(lambda number, handler: {"data": b"{"} if handler.path == "/m/tokenizer.json" else {})
    code, _, err = heft("convert", "--map", "auto", f"{server.url}/m/model.safetensors", str(out))
    check("a damaged tokenizer is an error", code == 3 and "tokenizer.json" in err
          and not out.exists(), code, err)


def listings():
    server.reset()
    code, _, err = heft("ls", f"{server.url}/m/model.safetensors")
    check("a list asks for no texts", code == 0 and len(server.requests) == 1, paths(), err)


run(f"{server.url}/m/model.safetensors", (maps, revisions, schemes, failures, listings))
