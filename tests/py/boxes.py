"""boxes.py - folders for commands with a preloaded library that fails calls (fail_memory.c,
fail_calls.c)."""
import hashlib
import json
import os
import pickle
import shutil
import struct
import subprocess
import zipfile


def safetensors(tensors, **metadata):
    at, header = 0, {"__metadata__": metadata}
    for name in tensors:
        header[name] = {"dtype": "F32", "shape": [2, 3], "data_offsets": [at, at + 24]}
        at += 24
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(range(24)) * len(tensors)


def contents(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


CACHE = "hub"  # a cache of Hugging Face, below the folder of the command


def make_folders(model):
    """Make a pipeline with a model card, a file of pickles, and a cache with a repository."""
    for component in ("unet", "vae"):
        (model / "pipeline" / component).mkdir(parents=True)
        (model / "pipeline" / component / "model.safetensors").write_bytes(safetensors(["w"]))
    (model / "pipeline" / "other.safetensors").write_bytes(safetensors(["w"]))
    (model / "pipeline" / "README.md").write_text("---\nlicense: mit\nlanguage: [en, fr]\n---\n")
    (model / "pipeline" / "model_index.json").write_text(json.dumps({
        "_class_name": "P", "unet": ["d", "U"], "vae": ["d", "V"], "x": ["d", "Scheduler"]}))
    (model / "p.pkl").write_bytes(pickle.dumps({"a": [os.getcwd, 1]}))
    with zipfile.ZipFile(model / "p.zip", "w") as archive:
        archive.write(model / "p.pkl", "a/data.pkl")
    repository = model / CACHE / "models--o--n"
    blob = repository / "blobs" / hashlib.sha256(safetensors(["w"])).hexdigest()
    snapshot = repository / "snapshots" / ("0" * 40)
    for path, data in (blob, safetensors(["w"])), (repository / "refs" / "main", b"0" * 40):
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to(f"../../blobs/{blob.name}")


class Box:
    """A folder that is restored before each run."""

    def __init__(self, heft, shim, model, folder):
        self.heft, self.shim, self.model, self.folder = heft, shim, model, folder
        self.start = contents(model)
        self.reset()

    def reset(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.model, self.folder)

    def run(self, args, n, fail_on=False, **env):
        """Return name of the failed call, exit status, stdout, stderr, and files."""
        read, write = os.pipe()
        env |= {"LD_PRELOAD": self.shim, "HEFT_FAIL_AT": str(n), "HEFT_FAIL_TELL": str(write)}
        if fail_on:
            env["HEFT_FAIL_ON"] = "1"
        p = subprocess.run([self.heft, *args], cwd=self.folder, env=os.environ | env,
                           pass_fds=[write], capture_output=True)
        os.close(write)
        met = os.read(read, 64).decode()
        os.close(read)
        return met, p.returncode, p.stdout, p.stderr, contents(self.folder)
