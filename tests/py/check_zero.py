#!/usr/bin/env python3
"""check_zero.py HEFT: checkpoints of DeepSpeed ZeRO as models.

NumPy cuts tensors into the parts of ranks, and the bytes of every joined tensor are compared with
those of the tensor that was cut. Skipped without PyTorch. TAP on stdout."""
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from checks import CheckFailed, read_safetensors, require

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy
    import torch
    import zero_folder as zero
except ImportError as why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def heft(*args, code=0, memory=None):
    limit = (lambda: resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))) if memory else None
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False, preexec_fn=limit)
    require(code is None or p.returncode == code,
            f"{args[0]}: exit {p.returncode}, not {code}: {p.stderr.decode()[:600]}")
    return p


# ---- what Heft makes of a folder ----

TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}


def bytes_of(tensor):
    flat = tensor.contiguous().flatten()
    return (flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat).numpy().tobytes()


def require_equal(path, tensors, scratch, *options, memory=None):
    out = scratch / "out.safetensors"
    p = heft("convert", "-f", *options, path, out, memory=memory)
    found = read_safetensors(out)
    require(set(found) == set(tensors), f"{sorted(found)} instead of {sorted(tensors)}")
    for name, tensor in tensors.items():
        dtype, shape, data = found[name]
        require(dtype == TYPES[tensor.dtype], f"{name}: {dtype}")
        require(shape == tuple(tensor.shape), f"{name}: shape {shape}")
        require(data == bytes_of(tensor), f"{name}: other bytes")
    return p


# ---- checkpoints that are joined ----

def every_stage_and_number_of_ranks(scratch):
    for stage in (1, 2, 3):
        for ranks in (1, 2, 3, 4, 7, 16):
            c = zero.example(scratch / "zero", stage, ranks)
            require_equal(c.write(), c.tensors(), scratch)


def other_writers(scratch):
    """Padding that is stored, bf16_ in the names, the legacy format, and earlier forms of facts."""
    c = zero.example(scratch / "zero", 1, 3)
    require_equal(c.write("bf16_", keeps_padding=True), c.tensors(), scratch)
    c = zero.example(scratch / "zero", 3, 2)
    require_equal(c.write(_use_new_zipfile_serialization=False), c.tensors(), scratch)

    def earlier(kind, rank, value):
        if kind == "optim":
            own = value["optimizer_state_dict"]
            own["zero_stage"] = 3
        else:
            del value["shared_params"], value["frozen_param_shapes"]
            value["param_shapes"] = {n: s for g in value["param_shapes"] for n, s in g.items()}

    c = zero.example(scratch / "zero", 3, 3)
    c.frozen, c.ties = {}, {}
    require_equal(c.write(edit=earlier), c.tensors(), scratch)


def parameters_across_groups(scratch):
    """zero_to_fp32.py takes the groups of ZeRO-3 for one sequence of elements."""
    c = zero.example(scratch / "zero", 3, 4)

    def cut_elsewhere(kind, rank, value):
        if kind == "optim":
            own = value["optimizer_state_dict"]
            whole = torch.cat(own["fp32_flat_groups"])
            own["fp32_flat_groups"] = [whole[:5].clone(), whole[:0].clone(), whole[5:].clone()]

    require_equal(c.write(edit=cut_elsewhere), c.tensors(), scratch)


def slices_and_casts(scratch):
    c = zero.example(scratch / "zero", 3, 3)
    c.write()
    whole = {n: t.bfloat16() if t.dtype == torch.float32 else t for n, t in c.tensors().items()}
    p = heft("cat", "--raw", c.path, "embed.weight[2:5]", code=None)
    if p.returncode == 0:
        require(p.stdout == bytes_of(c.tensors()["embed.weight"][2:5]), "a slice")
    require_equal(c.path, {n: t.bfloat16() if t.is_floating_point() else t
                           for n, t in whole.items()}, scratch, "--cast", "bf16")


def copies_of_the_model(scratch):
    """The file with model_states of ZeRO-1 and 2 has a copy, which can be opened by itself."""
    c = zero.example(scratch / "zero", 2, 3)
    c.write()
    halves = {n: t.half() if n not in c.buffers else t for n, t in c.tensors().items()}
    main = c.path / "mp_rank_00_model_states.pt"
    require_equal(main, halves, scratch, "--key", "module")
    require_equal(c.path, halves, scratch, "--key", "module")
    require(b"torch/rank-copies" in heft("verify", c.path).stdout, "the copies are mentioned")
    # a rank is missing: only the copies are there
    (c.path / c.name(2, "optim")).unlink()
    p = require_equal(c.path, halves, scratch)
    require(b"partition_count states 3 ranks" in p.stderr, p.stderr)
    (c.path / c.name(0, "optim")).rename(c.path / c.name(11, "optim"))
    p = require_equal(c.path, halves, scratch)
    require(b"there is no file of rank 0 with optim_states" in p.stderr, p.stderr)
    p = heft("convert", "--strict", "-f", c.path, scratch / "o.pt", code=None)
    require(p.returncode and b"torch/rank-copies" in p.stderr, p.stderr)

    def older(kind, rank, value):
        if kind == "model":
            del value["param_shapes"]

    p = require_equal(c.write(edit=older), halves, scratch)
    require(b"param_shapes is missing" in p.stderr, p.stderr)


def tensors_beside_the_module(scratch):
    """client_state of save_checkpoint() may have tensors, which the model does not get."""
    def add(kind, rank, value):
        if kind == "model":
            value["ema"] = {"layer.weight": torch.ones(3, 4, 2)}

    for stage in (1, 3):
        c = zero.example(scratch / "zero", stage, 2)
        p = require_equal(c.write(edit=add), c.tensors(), scratch)
        require(b"1 tensors beside the module" in p.stderr and b"ema.layer.weight" in p.stderr,
                p.stderr)
        heft("convert", "--strict", c.path, scratch / "s.safetensors", code=5)


def files_opened_alone(scratch):
    c = zero.example(scratch / "zero", 3, 2)
    c.write()
    p = heft("ls", c.path / c.name(0, "model"))
    require(b"torch/rank-alone" in p.stderr, p.stderr)
    p = heft("ls", c.path / c.name(1, "optim"))
    require(b"fp32_flat_groups.0" in p.stdout, p.stdout)


def universal_checkpoints(scratch):
    for stage in (1, 2, 3):
        for ranks in (1, 2, 5):
            c = zero.example(scratch / "zero", stage, ranks)
            require_equal(c.write_universal(), c.tensors(), scratch)
    p = heft("verify", c.path)
    require(b"exp_avg.pt" in p.stdout, p.stdout)
    require(not re.search(rb"fault|warning", heft("scan", c.path).stdout), "scan")


def universal_of_tensor_parallelism(scratch):
    """The files of tensors are whole; those of the ranks, which were copied, are parts."""
    c = zero.example(scratch / "zero", 1, 2)

    def parallel(kind, rank, value):
        if kind == "model":
            value["mp_world_size"] = 2
            for group in value["param_shapes"]:
                for name in group:
                    group[name] = torch.Size([1, *group[name]])

    c.write_universal(parallel)
    (c.path / "mp_rank_01_model_states.pt").write_bytes(
        (c.path / "mp_rank_00_model_states.pt").read_bytes())
    whole = {n: t.float() for group in c.groups for n, t in group.items()}
    p = require_equal(c.path, whole, scratch)
    require(b"6 tensors of the module are left out" in p.stderr, p.stderr)


def universal_checkpoints_are_refused(scratch):
    def links_out(c):
        out = scratch / "outside"
        shutil.copytree(c.path / "zero" / "norm", out, dirs_exist_ok=True)
        (c.path / "zero" / "norm" / "fp32.pt").unlink()
        (c.path / "zero" / "norm" / "fp32.pt").symlink_to(out / "fp32.pt")

    def folder_links_out(c):
        out = scratch / "outside"
        shutil.copytree(c.path / "zero" / "norm", out, dirs_exist_ok=True)
        shutil.rmtree(c.path / "zero" / "norm")
        (c.path / "zero" / "norm").symlink_to(out)

    def save(value):
        return lambda c: torch.save(value, c.path / "zero" / "norm" / "fp32.pt")

    def more(c):
        (c.path / "zero" / "more").mkdir()
        torch.save(torch.ones(4), c.path / "zero" / "more" / "fp32.pt")

    for stage, change, code, words in [
        (2, lambda c: (c.path / "zero" / "norm" / "fp32.pt").unlink(), 4, b"'zero/norm/'"),
        (2, lambda c: shutil.rmtree(c.path / "zero" / "norm"), 4, b"of parameter 'norm'"),
        (2, lambda c: (c.path / "mp_rank_00_model_states.pt").unlink(), 5, b"with the shapes"),
        (2, links_out, 4, b"leaves the model's folder"),
        (2, folder_links_out, 4, b"of parameter 'norm'"),
        (2, save({"param": torch.ones(4), "b": torch.ones(1)}), 3, b"2 tensors instead of one"),
        (2, save({"w": torch.ones(4)}), 3, b"and not 'param'"),
        (2, save({"step": 3}), 3, b"instead of one"),
        (2, save(torch.ones(4, 1)), 3, b"does not have the 4 elements"),
        (3, save(torch.ones(5)), 3, b"does not have the 4 elements"),
        (3, save(torch.ones(8)[::2]), 5, b"strided"),
        (3, more, 5, b"does not have the shape of 'more'"),
        (3, lambda c: (c.path / c.name(2, "model")).unlink(), 3, b"does not have 8 elements")]:
        c = zero.example(scratch / "zero", stage, 3)
        c.write_universal()
        change(c)
        out = scratch / "refused.safetensors"
        p = heft("convert", c.path, out, code=code)
        require(words in p.stderr and not out.exists(), f"{words}: {p.stderr}")


# ---- checkpoints that are refused ----

def refused(scratch, stage, edit, code, words, ranks=3):
    c = zero.example(scratch / "zero", stage, ranks)
    edit(c)
    out = scratch / "refused.safetensors"
    strict = ["--strict"] if code == 5 else [] # a warning says what is left out
    p = heft("convert", *strict, c.path, out, code=code)
    require(words in p.stderr, f"{words}: {p.stderr}")
    require(not out.exists(), f"{words}: a file was written")


def edited(of, change, at=None):
    """Write with a change of the files of a kind, of all ranks or of one."""
    def edit(c):
        def apply(kind, rank, value):
            if kind == of and at in (None, rank):
                change(value["optimizer_state_dict"] if of == "optim" else value)
        c.write(edit=apply)
    return edit


def without(of, rank):
    def edit(c):
        c.write()
        (c.path / c.name(rank, of)).unlink()
    return edit


def renamed(of, rank, name):
    def edit(c):
        c.write()
        old = c.path / c.name(rank, of)
        old.rename(c.path / name)
    return edit


def copied(of, rank, name):
    def edit(c):
        c.write()
        (c.path / name).write_bytes((c.path / c.name(rank, of)).read_bytes())
    return edit


def set_key(key, value):
    return lambda d: d.update({key: value})


def pop(key):
    return lambda d: d.pop(key)


def set_flat(group, change):
    def edit(own):
        for key in ("fp32_flat_groups", "single_partition_of_fp32_groups"):
            if key in own:
                own[key][group] = change(own[key][group])
    return edit


def set_shape(name, shape, keys=("param_shapes", )):
    def edit(value):
        for key in keys:
            for group in value[key] if isinstance(value[key], list) else [value[key]]:
                if name in group:
                    group[name] = shape
    return edit


ZERO = "zero_pp_rank_"
REFUSALS = [
    # a rank is missing, or there is one too many
    (3, without("optim", 1), 4, b"no such file of rank 1"),
    (3, without("optim", 2), 4, b"_optim_states.pt of 2"),
    (3, without("model", 1), 4, b"no such file of rank 1"),
    (3, without("model", 2), 4, b"each of which has a part of the frozen parameter"),
    (3, copied("optim", 2, ZERO + "3_mp_rank_00_optim_states.pt"), 4, b"states 3 ranks"),
    (3, copied("optim", 2, "bf16_" + ZERO + "2_mp_rank_00_optim_states.pt"), 5, b"ZeRO-3"),
    (3, edited("optim", set_key("partition_count", 4)), 4, b"partition_count states 4 ranks"),
    (3, edited("optim", set_key("partition_count", [3, 1])), 5, b"differs by group"),
    (3, edited("optim", set_key("partition_count", "3")), 5, b"is not the number of ranks"),
    (3, edited("optim", pop("partition_count")), 5, b"partition_count, the number of ranks"),
    (3, edited("optim", set_key("ds_zero_partition_groups", [{"partition_count": 1}])), 5,
     b"among fewer ranks"),
    (3, edited("optim", set_key("zero_stage", 2)), 5, b"contradict each other"),
    (3, edited("optim", pop("fp32_flat_groups")), 5, b"the flat tensors of a rank are missing"),
    # tensor parallelism and experts
    (3, copied("optim", 0, ZERO + "0_mp_rank_01_optim_states.pt"), 5, b"tensor or pipeline"),
    (2, copied("model", 0, "mp_rank_01_model_states.pt"), 5, b"tensor or pipeline"),
    # flat tensors that do not fit
    (3, edited("optim", set_flat(0, lambda t: t[:-1].clone()), 2), 3, b"that of rank 0 has"),
    (3, edited("optim", set_flat(1, lambda t: t[:-1].clone())), 3, b"end within its"),
    (3, edited("optim", set_flat(1, lambda t: torch.cat([t, t]))), 3, b"more elements than"),
    (2, edited("optim", set_flat(0, lambda t: t[:-1].clone())), 3, b"end after"),
    (2, edited("optim", set_flat(0, lambda t: torch.cat([t, t]))), 3, b"its parameters take"),
    (3, edited("optim", set_flat(0, lambda t: t.reshape(2, -1))), 3, b"several dimensions"),
    (3, edited("optim", set_flat(0, lambda t: t.half()), 1), 3, b"differ in their element types"),
    (3, edited("optim", set_flat(0, lambda t: torch.cat([t, t])[::2])), 5, b"strided"),
    (2, edited("optim", lambda own: own["single_partition_of_fp32_groups"].append(
        torch.zeros(1))), 3, b"groups of parameters in param_shapes"),
    (3, edited("optim", lambda own: own["fp32_flat_groups"].append(torch.zeros(0)), 1), 3,
     b"another number of groups"),
    # shapes and names
    (3, edited("model", pop("param_shapes")), 5, b"param_shapes is missing"),
    (3, edited("model", set_shape("one", "1")), 3, b"not a tuple of numbers"),
    (3, edited("model", set_shape("one", torch.Size([1 << 40, 1 << 40]))), 3, b"passes 2^64"),
    (3, edited("model", lambda v: v["param_shapes"][0].update({7: torch.Size([1])})), 3,
     b"not a text"),
    (3, edited("model", lambda v: v["param_shapes"].append([1])), 3, b"not a dictionary"),
    (3, edited("model", set_shape("one", torch.Size([2])), 1), 3, b"other parameters than"),
    (3, edited("model", lambda v: v["param_shapes"][1].update(
        one=v["param_shapes"][1].pop("norm"))), 3, b"'one' is listed twice"),
    (3, edited("model", lambda v: v["buffer_names"].append(3)), 3, b"in buffer_names"),
    (3, edited("model", lambda v: v["shared_params"].update(a=3)), 3, b"in shared_params"),
    (3, edited("model", lambda v: v["shared_params"].update(a="b")), 5, b"which the files do not"),
    (3, edited("model", lambda v: v["module"].update(more=torch.ones(2))), 5,
     b"neither in param_shapes nor in buffer_names"),
    # frozen parameters
    (3, edited("model", lambda v: v["frozen_param_fragments"].pop("frozen.bias"), 1), 3,
     b"no elements in frozen_param_fragments"),
    (3, edited("model", lambda v: v["frozen_param_fragments"].update(
        {"frozen.bias": torch.zeros(9).bfloat16()}), 1), 3, b"does not have 1 elements"),
    (2, edited("model", lambda v: v["frozen_param_shapes"].update(
        {"frozen.bias": torch.Size([3])})), 3, b"another shape than"),
    # buffers
    (3, edited("model", lambda v: v["module"].pop("layer.mean"), 1), 3, b"is missing, or of"),
    (3, edited("model", lambda v: v["module"].update({"layer.mean": torch.zeros(6)}), 2), 3,
     b"different copies"),
    # files of another kind
    (3, renamed("optim", 2, ZERO + "3_mp_rank_00_model_states.pt"), 4, b"_optim_states.pt of 2"),
]


def refusals(scratch):
    for i, row in enumerate(REFUSALS):
        try:
            refused(scratch, *row)
        except CheckFailed as why:
            raise CheckFailed(f"row {i}, {row[3]}: {why}") from why


def parts_of_another_size(scratch):
    """Elements that moved from one rank's part to the next."""
    def move(kind, rank, value):
        if kind == "optim":
            flats = value["optimizer_state_dict"]["single_partition_of_fp32_groups"]
            flats[0] = torch.cat([flats[0], torch.zeros(2)]) if rank else flats[0][:-2].clone()

    c = zero.example(scratch / "zero", 2, 2)
    p = heft("ls", c.write(edit=move), code=3)
    require(b"do not belong together" in p.stderr and p.stderr.count(b", in '") == 1, p.stderr)


# ---- damage, and large models ----

def damaged_bytes_are_found(scratch):
    c = zero.example(scratch / "zero", 3, 3)
    c.write()
    second = c.path / c.name(1, "optim")
    content = bytearray(second.read_bytes())
    at = content.find(c.flats_cut_each(1)[0].tobytes())
    require(at > 0, "the bytes of the part")
    content[at] ^= 1
    second.write_bytes(content)
    for command in (["convert", "-f", c.path, scratch / "o.safetensors"], ["hash", c.path]):
        p = heft(*command, code=3)
        require(b"rank_1_mp_rank_00_optim" in p.stderr, p.stderr)
    p = heft("verify", c.path, code=1)
    require(b"torch/crc32" in p.stdout, p.stdout)
    second.write_bytes(content[:-100])
    heft("convert", "-f", c.path, scratch / "o.safetensors", code=3)


def damaged_pickles_do_no_harm(scratch):
    """Bytes of pickles change, which have no checksum in the legacy format."""
    random = numpy.random.RandomState(5)
    for stage in (1, 3):
        c = zero.example(scratch / "zero", stage, 2)
        c.write(_use_new_zipfile_serialization=False)
        for path in sorted(c.path.iterdir()):
            content = path.read_bytes()
            for _ in range(60):
                changed = bytearray(content)
                for at in random.randint(300, 1500, 1 + random.randint(3)):
                    changed[at % len(changed)] = random.choice([0, 1, 2, 0x7F, 0xFF, 0x2E, 0x4B])
                path.write_bytes(changed)
                p = heft("convert", "-f", c.path, scratch / "o.safetensors", code=None)
                require(p.returncode in (0, 3, 4, 5), f"exit {p.returncode}: {p.stderr[:300]}")
            path.write_bytes(content)
        require_equal(c.path, c.tensors(), scratch)


def many_ranks(scratch):
    """512 ranks are listed quickly, and joined in little memory."""
    c = zero.example(scratch / "zero", 3, 512)
    c.groups.append({f"w{i}": torch.arange(4096.0) + i for i in range(40)})
    c.write()
    begin = time.monotonic()
    heft("ls", c.path)
    seconds = time.monotonic() - begin
    require(seconds < 20, f"{seconds} s to list")
    require_equal(c.path, c.tensors(), scratch, memory=256 << 20)
    # without buffers and frozen parameters, one file with model_states is enough
    c.buffers, c.frozen, c.ties = {}, {}, {}
    c.groups.append({f"u{i}": torch.arange(512.0) - i for i in range(160)})
    require_equal(c.write(), c.tensors(), scratch, memory=128 << 20)


def large_tensors(scratch):
    ranks, group = 4, {"w": torch.arange(12.0e6).reshape(3, -1), "v": torch.arange(1.0e6) * 3}
    for stage in (2, 3):
        c = zero.Checkpoint(scratch / "zero", stage, ranks, [group])
        require_equal(c.write(), c.tensors(), scratch, memory=256 << 20)


def scan_knows_the_classes(scratch):
    for stage in (2, 3):
        c = zero.example(scratch / "zero", stage, 2)
        c.write()
        p = heft("scan", c.path)
        require(not re.search(rb"fault|warning", p.stdout + p.stderr), p.stdout + p.stderr)


HEFT = sys.argv[1]
CHECKS = [every_stage_and_number_of_ranks, other_writers, parameters_across_groups,
          slices_and_casts, copies_of_the_model, tensors_beside_the_module, files_opened_alone,
          universal_checkpoints, universal_of_tensor_parallelism,
          universal_checkpoints_are_refused, parts_of_another_size, refusals,
          damaged_bytes_are_found, damaged_pickles_do_no_harm, large_tensors, many_ranks,
          scan_knows_the_classes]


def results():
    for check in CHECKS:
        title, complaints = check.__name__.replace("_", " "), []
        with tempfile.TemporaryDirectory() as scratch:
            try:
                check(pathlib.Path(scratch))
            except CheckFailed as why:
                complaints.append(why)
        yield title, complaints


sys.exit(tap.report(results()))
