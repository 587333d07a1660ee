"""The commands of Heft as functions: options, results, errors, warnings."""
import concurrent.futures
import dataclasses
import errno
import inspect
import json
import os
import pathlib
import subprocess
import sys
import warnings

import pytest

import heft
from heft import _child, _commands, _options
import command_options
from command_files import f32, write_program, write_safetensors

NAMES = sorted(_commands.FUNCTIONS)


def command(*words):
    """Run the command; return stdout."""
    return subprocess.run([_child.COMMAND, *map(os.fspath, words)], check=False,
                          capture_output=True, text=True).stdout


def words_of(name, *args, **options):
    """Return the words of the command line for a call, without those that are always given."""
    chosen = next(c for c in _commands._COMMANDS if c.name == name)
    bound = chosen.signature().bind(*args, **options)
    bound.apply_defaults()
    words = chosen.words(bound.arguments)
    assert words[:2] == [name, "--messages=json"]
    return [w for w in words[2:] if w != "--json"]


@pytest.fixture(name="model")
def _model(tmp_path):
    return write_safetensors(tmp_path / "model.safetensors", {
        "layer.weight": ("F32", [2, 3], f32(1, 2, 3, 4, 5, 6.5)),
        "layer.bias": ("F32", [2], f32(float("nan"), float("inf"))),
        "step": ("I64", [], bytes(8)),
    }, {"license": "MIT"})


# ---- options ----

def test_the_options_are_those_of_the_command():
    table = command_options.TABLE.read_text(encoding="utf-8")
    assert table == command_options.text(_child.COMMAND), "run python/tests/command_options.py HEFT --write"
    assert sorted(command_options.COMMANDS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_signature_and_documentation_come_from_the_table(name):
    function = getattr(heft, name)
    parameters = inspect.signature(function).parameters
    for option in _options.options_of(name):
        assert parameters[option.keyword].kind is inspect.Parameter.KEYWORD_ONLY
        assert f"    {option.keyword}: " in function.__doc__
    assert function.__name__ == name and function.__module__ == "heft"


@pytest.mark.parametrize("options, words", [
    ({"cast": "bf16"}, ["--cast=bf16"]),
    ({"cast": {"*.weight": "bf16", "a=b": "f32"}}, ["--cast=*.weight=bf16", "--cast=a=b=f32"]),
    ({"cast": ["*.weight=bf16", "f32"]}, ["--cast=*.weight=bf16", "--cast=f32"]),
    ({"keep": "a*"}, ["--keep=a*"]),
    ({"keep": ["a*", "--x"]}, ["--keep=a*", "--keep=--x"]),
    ({"keep": []}, []),
    ({"compress": {"*": "zstd:3", "b": None}}, ["--compress=*=zstd:3", "--compress=b=none"]),
    ({"requires_grad": True}, ["--requires-grad=true"]),
    ({"requires_grad": {"a": False, "b": None}}, ["--requires-grad=a=false",
                                                  "--requires-grad=b=unset"]),
    ({"set": {"a": 1, "b": True, "c": 0.5, "d": None, "e": "1", "f": 2**63, "g": ("f32", 1)}},
     ["--set=a:i64=1", "--set=b:bool=true", "--set=c:f64=0.5", "--set=d:null=", "--set=e:str=1",
      f"--set=f:u64={2**63}", "--set=g:f32=1"]),
    ({"set_id": {"a=b": 7, "c": None}}, ["--set-id=a=b=7", "--set-id=c=none"]),
    ({"special": {"pad": 0, "unk": None}}, ["--special=pad=0,unk=none"]),
    ({"lora": {"a": 0.5, "b=c": -1}}, ["--lora=a=0.5", "--lora=b=c=-1.0"]),
    ({"lora": ["a", "b=2"]}, ["--lora=a", "--lora=b=2=1"]),
    ({"align": 64, "max_bytes": "2GiB"}, ["--align=64", "--max-bytes=2GiB"]),
    ({"force": True, "strict": False, "no_verify": True}, ["--force", "--no-verify"]),
])
def test_options_become_words(options, words):
    assert words_of("convert", "in", "out", **options) == [*words, "--", "in", "out"]


def test_paths_are_names_whatever_they_are():
    assert words_of("convert", "-", b"--force")[-2:] == ["./-", "--force"]
    assert words_of("merge", ["a", "b"], "c")[-3:] == ["a", "b", "c"]
    assert words_of("edit", "a", rename={"x": "y=z"})[0] == "--rename=x=y=z"
    assert words_of("convert", "a", "b", rename={"s/x": "y"})[0] == "--rename=s/x=y"
    assert words_of("edit", "a", rename=["a=b", "s/c/d/"])[:2] == ["--rename=a=b", "--rename=s/c/d/"]
    with pytest.raises(ValueError, match="as an expression"):
        words_of("edit", "a", rename={"s/x": "y/z/"})


@pytest.mark.parametrize("options, error", [
    ({"cast": 3}, TypeError), ({"force": 1}, TypeError), ({"keep": [1]}, TypeError),
    ({"align": 1.5}, TypeError), ({"align": True}, TypeError), ({"set": ["a"]}, TypeError),
    ({"set": {"a=b": 1}}, ValueError), ({"set": {"a": 2**64}}, OverflowError),
    ({"set": {"a": object()}}, TypeError), ({"to": 1}, TypeError), ({"nothing": 1}, TypeError),
    ({"progress": 3}, TypeError), ({"vocab": 3}, TypeError), ({"generator": "a\0b"}, ValueError),
])
def test_wrong_options_are_refused_before_anything_runs(model, options, error):
    with pytest.raises(error):
        heft.convert(model, model.with_suffix(".zt"), **options)
    assert not model.with_suffix(".zt").exists()


def test_wrong_arguments_name_the_function(model):
    with pytest.raises(TypeError, match=r"convert\(\)"):
        heft.convert(model)
    with pytest.raises(TypeError, match="patterns"):
        heft.stats(model, 3)
    with pytest.raises(ValueError, match="no files"):
        heft.merge([], "out.zt")


# ---- results ----

def test_info_is_the_document(model):
    document, info = json.loads(command("info", "--json", model)), heft.info(model)
    for name in ("file", "format", "version", "size", "tensors", "bytes", "alignment", "metadata"):
        assert getattr(info, name) == document[name]
    assert info.parameters == document["parameters"] and info.model is None
    # Only quantised tensors have a "type" in the document.
    assert [dataclasses.asdict(t) for t in info.by_dtype] == [
        {"type": None, **row} for row in document["by_dtype"]]
    assert [dataclasses.asdict(m) for m in info.modules] == document["modules"]
    assert heft.info(model, verbose=True).memory > 0
    with pytest.raises(AttributeError):
        info.format = "other"


def test_hash_and_stats_are_the_documents(model):
    document = json.loads(command("hash", "--json", model))
    digests = heft.hash(model)
    assert digests.model == document["model"]
    assert digests.tensors == {t["name"]: t["digest"] for t in document["tensors"]}
    stats = heft.stats(model, "layer.*")
    assert [t.name for t in stats.tensors] == ["layer.weight", "layer.bias"]
    assert stats["layer.weight"].max == 6.5 and stats["layer.weight"].shape == (2, 3)
    with pytest.warns(UserWarning, match="layer.bias"):
        found = heft.stats(model, finite=True)
    assert [m.tensor for m in found.messages] == ["layer.bias"]
    bias = stats["layer.bias"]
    assert bias.sparsity == bias.zeros / bias.count and bias.first_not_finite == (0, )
    assert (bias.nan, bias.inf, bias.min) == (1, 1, None)


def test_verify_gives_findings(model, tmp_path):
    report = heft.verify(model)
    assert report and report.ok and report.format == "safetensors"
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(model.read_bytes()[:-1])
    report = heft.verify(bad)
    assert not report
    assert report.findings[0].severity == "fault"
    assert report.findings[0].rule == "safetensors/structure"
    assert [r.ok for r in heft.verify([model, bad])] == [True, False]
    assert isinstance(heft.verify([model]), list)


def test_doctor_gives_advice_and_salvages(model, tmp_path):
    assert heft.doctor(model)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(model.read_bytes()[:-3])
    found = heft.doctor(cut, output=tmp_path / "rest.safetensors")
    assert not found and found.findings[0].kind == "truncated"
    assert "download" in found.findings[0].advice
    assert found.expected_size == model.stat().st_size
    assert [t.name for t in found.lost] == ["step"]
    assert sorted(heft.open(found.salvaged)) == ["layer.bias", "layer.weight"]


def test_scan_gives_findings(model, tmp_path):
    scan = heft.scan(model)
    assert scan and not scan.pickles and not scan.findings
    bad = tmp_path / "bad.pkl"
    bad.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    scan = heft.scan(bad)
    assert not scan and scan.pickles == 1
    finding, = scan.findings
    assert (finding.rule, finding.module, finding.name) == ("pickle/import", "os", "system")
    assert (finding.offset, finding.member, finding.unpacked) == (0, None, False)
    assert [s.ok for s in heft.scan([model, bad])] == [True, False]
    assert isinstance(heft.scan(tmp_path), list)


def test_verify_knows_the_profiles_of_the_package(model):
    report = heft.verify(model, profile="gpt2")
    assert not report and any(f.rule.startswith("profile/") for f in report.findings)


def test_diff_gives_changes(model, tmp_path):
    other = tmp_path / "other.zt"
    heft.convert(model, other, cast={"layer.bias": "bf16"}, drop="step")
    found = heft.diff(model, other)
    assert not found.equal and found.only_in_a == ("step",) and found.only_in_b == ()
    assert [(c.name, c.what, c.a, c.b) for c in found.changed] == [
        ("layer.bias", "dtype", "f32", "bf16")]
    assert heft.diff(model, model).equal
    assert found.summary["only_in_a"] == 1
    assert heft.diff(model, other, ignore_dtype=True).changed == ()
    assert heft.diff(model, other, "layer.w*").equal and found.metadata["equal"]
    heft.edit(other, set={"license": "BSD"})
    assert heft.diff(model, other).metadata["changed"][0]["key"] == "license"
    assert heft.diff(model, other, ignore_metadata=True).metadata is None
    heft.edit(other, set={"license": "MIT"})
    heft.edit(other, rename={"layer.bias": "b", "layer.weight": "w"})
    found = heft.diff(model, other)
    assert [(r.a, r.b) for r in found.renamed] == [("layer.weight", "w")]
    found = heft.diff(model, other, rename=["layer.bias=b", "s/layer.weight/w/"])
    assert [c.name for c in found.changed] == ["b"] and not found.renamed
    with pytest.raises(TypeError):
        bool(found)


def test_values_of_metadata_keep_their_types(model, tmp_path):
    values = {"i": -1, "u": 2**64 - 1, "b": True, "f": 0.1, "t": "1"}
    done = heft.convert(model, tmp_path / "out.gguf", set=values, drop="step")
    metadata = heft.info(done.file).metadata
    assert {key: metadata[key] for key in values} == values
    assert all(type(metadata[key]) is type(value) for key, value in values.items())


def test_adapters_are_merged(tmp_path):
    np = pytest.importorskip("numpy")
    base, adapter = tmp_path / "base.safetensors", tmp_path / "adapter.safetensors"
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    down, up = np.ones((2, 3), np.float32), np.full((4, 2), 0.5, np.float32)
    heft.save({"w.weight": w}, base)
    heft.save({"w.lora_down.weight": down, "w.lora_up.weight": up}, adapter)
    target = tmp_path / "merged.safetensors"
    done = heft.merge_lora(base, {str(adapter): 3}, target)
    assert done.file == target and done.bytes == target.stat().st_size
    with heft.open(target) as f:
        assert np.array_equal(f["w.weight"].numpy(), w + 3)
    with pytest.raises(heft.NotFoundError, match="match nothing"):
        heft.merge_lora(adapter, adapter, target, force=True)


def test_convert_split_merge_edit_and_append(model, tmp_path):
    done = heft.convert(model, tmp_path / "out.zt", cast={"*.weight": "bf16"})
    assert done.file == tmp_path / "out.zt" and done.format == "ztensor"
    assert done.bytes == done.file.stat().st_size
    shards = heft.split(model, tmp_path / "shards", count=2)
    assert all(path.exists() for path in shards.files) and len(shards.files) == 3
    merged = heft.merge(tmp_path / "shards", tmp_path / "one.safetensors")
    assert heft.diff(model, merged.file).equal
    edited = heft.edit(merged.file, set={"epoch": "7"}, unset="license", rename={"step": "s"})
    assert edited.changed and heft.info(merged.file).metadata == {"epoch": "7", "format": "pt"}
    assert not heft.edit(merged.file, set={"epoch": "7"}).changed
    added = heft.append(done.file, model, rename="s/^/ema./")
    assert added.tensors == 3 and added.in_place
    assert "ema.step" in heft.hash(done.file).tensors


def test_deltas_are_made_and_applied(model, tmp_path):
    other = heft.edit(heft.convert(model, tmp_path / "other.safetensors").file,
                      set={"license": "BSD"}, rename="step=s").file
    delta = tmp_path / "d.zt"
    made = heft.delta(model, other, output=delta)
    assert made.file == delta and made.metadata == 2 and not made.dry_run
    assert made.tensors == {"none": 2, "sparse": 0, "xor": 0, "whole": 0, "added": 1, "removed": 1}
    assert heft.delta(model, other, dry_run=True).file is None
    done = heft.apply(model, delta, output=tmp_path / "new.safetensors")
    assert done.tensors == made.tensors and heft.diff(done.file, other).equal
    with pytest.raises(heft.Error, match="another model"):
        heft.apply(other, delta, output=tmp_path / "no.safetensors")
    with pytest.raises(heft.UnsupportedError, match="in place"):
        heft.apply(done.file, delta, in_place=True, no_verify=True)


def test_counts_of_deltas_are_those_of_numpy(tmp_path):
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(5)
    old = {"some": rng.random(70000, np.float32), "most": rng.random(600), "same": np.ones(3, "i1"),
           "gone": np.ones(2, "i2"), "other": np.ones((2, 3), np.float32)}
    new = {"some": old["some"].copy(), "most": old["most"] + 1, "same": old["same"],
           "other": np.ones((3, 2), np.float32), "more": rng.random(11)}
    new["some"][rng.permutation(70000)[:321]] += 1
    paths = [tmp_path / f"{name}.safetensors" for name in ("old", "new", "made")]
    for tensors, path in zip((old, new), paths):
        heft.save(tensors, path)
    changed = np.count_nonzero(old["some"] != new["some"]) * 4
    changed += sum(new[name].nbytes for name in ("most", "other", "more"))
    delta = tmp_path / "d.zt"
    done = [heft.delta(*paths[:2], dry_run=True), heft.delta(*paths[:2], output=delta),
            heft.apply(paths[0], delta, output=paths[2])]
    for d in done:
        assert d.changed_bytes == changed and d.metadata == 0
        assert d.tensors == {"none": 1, "sparse": 1, "xor": 1, "whole": 1, "added": 1, "removed": 1}
    made = heft.load(paths[2])
    assert made.keys() == new.keys()
    assert all(np.array_equal(made[name], new[name]) for name in new)


def test_errors_name_the_damaged_model(tmp_path):
    old, new = (tmp_path / name for name in ("old.zt", "new.zt"))
    for path, values in (old, (1, 2)), (new, (3, 2)):
        write_safetensors(tmp_path / "m.safetensors", {"w": ("F32", [2], f32(*values))})
        heft.convert(tmp_path / "m.safetensors", path, digest="crc32c")
    raw = bytearray(old.read_bytes())
    raw[raw.index(f32(1, 2))] ^= 1
    old.write_bytes(raw)
    with pytest.raises(heft.ChecksumError) as error:
        heft.delta(old, new, dry_run=True)
    assert error.value.messages[-1].file == str(old)
    with pytest.raises(heft.ChecksumError) as error:
        heft.blend([new, old], tmp_path / "o.zt", method="linear")
    assert error.value.messages[-1].file == str(old)


def test_the_quality_of_quantised_weights_is_measured(tmp_path):
    numbers = f32(*(i % 17 - 8 for i in range(4 * 64)))
    source = write_safetensors(tmp_path / "in.safetensors",
                               {"a.weight": ("F32", [4, 64], numbers),
                                "b.weight": ("F32", [4, 64], bytes(4 * 64 * 4))})
    done = heft.convert(source, tmp_path / "out.pt", quantize="int4:32", verify_quality=True)
    a, b = done.quality
    assert (a.name, a.type_a, a.type_b, a.compared) == ("a.weight", "f32", "pack-quantized", 256)
    assert 0 < a.rmse < a.max_abs < 1 and 0.99 < a.cosine < 1
    assert (b.rmse, b.cosine) == (0, None)
    assert done.total_quality.compared == 512 and done.total_quality.rmse == a.rmse / 2**0.5
    assert heft.convert(source, tmp_path / "b.pt", quantize="int4:32").quality is None


def test_a_dry_run_writes_nothing(model, tmp_path):
    done = heft.convert(model, tmp_path / "out.zt", dry_run=True)
    assert done.dry_run and done.bytes > 0 and not done.file.exists()
    before = model.read_bytes()
    edit = heft.edit(model, set={"a": "b"}, dry_run=True)
    assert edit.dry_run and model.read_bytes() == before


def test_file_names_of_any_bytes(model, tmp_path):
    out = os.fsencode(tmp_path) + b"/\xff.zt"
    done = heft.convert(model, out)
    assert os.fsencode(done.file) == out and os.path.exists(out)
    assert os.fsencode(heft.info(out).file) == out


# ---- errors and warnings ----

def test_a_missing_file_is_an_oserror(tmp_path):
    with pytest.raises(heft.Error) as caught:
        heft.info(tmp_path / "none")
    error = caught.value
    assert isinstance(error, OSError) and error.errno == errno.ENOENT and error.status == "io"
    assert error.filename == str(tmp_path / "none")


def test_a_damaged_file_is_a_format_error(model):
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(heft.FormatError) as caught:
        heft.hash(model)
    assert caught.value.status == "format" and caught.value.rule == "safetensors/structure"
    assert caught.value.offset > 0


def test_a_wrong_checksum_is_a_checksum_error(model, tmp_path):
    file = heft.convert(model, tmp_path / "out.zt", digest="sha256").file
    data = bytearray(file.read_bytes())
    data[data.index(f32(1, 2, 3))] ^= 1
    file.write_bytes(data)
    with pytest.raises(heft.ChecksumError):
        heft.hash(file)
    assert heft.hash(file, no_verify=True).model
    assert not heft.verify(file)


def test_a_missing_name_is_a_keyerror(model):
    with pytest.raises(heft.NotFoundError) as caught:
        heft.edit(model, unset="nothing")
    assert isinstance(caught.value, KeyError) and caught.value.rule == "heft/no-metadata"


def test_a_limit_is_a_limit_error(model):
    with pytest.raises(heft.LimitError) as caught:
        heft.info(model, max_tensors=1)
    assert caught.value.rule == "heft/limit-tensors"


def test_an_existing_target_stays(model, tmp_path):
    target = tmp_path / "out.zt"
    target.write_text("old")
    with pytest.raises(heft.Error, match="already exists"):
        heft.convert(model, target)
    assert target.read_text() == "old"
    heft.convert(model, target, force=True)


def test_a_loss_error_names_the_tensor(model, tmp_path):
    with pytest.raises(heft.LossError) as caught:
        heft.convert(model, tmp_path / "out.npy")
    error = caught.value
    assert error.status == "lossy" and error.rule == "npy/one-tensor"
    assert error.tensor in ("layer.weight", "layer.bias", "step")
    assert any("npy" in note for note in error.__notes__)


def test_losses_are_warnings_at_the_call(model, tmp_path):
    with pytest.warns(heft.LossWarning, match="license") as caught:
        done = heft.convert(model, tmp_path / "out.npz")
    assert caught[0].filename == __file__
    assert caught[0].message.rule == "npz/metadata"
    assert done.losses and done.losses[0].severity == "warning"


def test_strict_makes_losses_errors(model, tmp_path):
    with pytest.raises(heft.LossError):
        heft.convert(model, tmp_path / "out.npz", strict=True)
    assert not (tmp_path / "out.npz").exists()


def test_strict_conflicts_of_a_merge_are_a_loss_error(model, tmp_path):
    other = write_safetensors(tmp_path / "b.safetensors", {"v": ("U8", [1], b"x")},
                              {"license": "GPL"})
    with pytest.raises(heft.LossError, match="license"):
        heft.merge([model, other], tmp_path / "out.zt", strict=True)
    with pytest.warns(heft.LossWarning, match="license"):
        heft.merge([model, other], tmp_path / "out.zt")


def test_warnings_about_files(tmp_path):
    odd = write_safetensors(tmp_path / "odd.safetensors", {"../x": ("U8", [1], b"x")})
    with pytest.warns(heft.FileWarning, match="looks like a path"):
        heft.info(odd)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heft.info(odd, quiet=True)


def test_a_child_that_is_killed_is_an_error(model, tmp_path, monkeypatch):
    monkeypatch.setattr(_child, "COMMAND", write_program(tmp_path / "killed", """
os.kill(os.getpid(), signal.SIGKILL)
"""))
    with pytest.raises(heft.Error, match="SIGKILL"):
        heft.info(model)


def test_lines_of_others_on_stderr_become_notes_of_the_error(model, tmp_path, monkeypatch):
    monkeypatch.setattr(_child, "COMMAND", write_program(tmp_path / "talks", """
print("ld.so: trouble", 7, file=sys.stderr)
say(kind="error", text="broken", status="format", file=None, rule="a/b", tensor="t", offset=3)
sys.stderr.write("[1, 2]\\nno newline")
sys.exit(3)
"""))
    with pytest.raises(heft.FormatError, match="broken") as caught:
        heft.info(model)
    assert caught.value.__notes__ == ["ld.so: trouble 7", "[1, 2]", "no newline"]
    assert (caught.value.rule, caught.value.tensor, caught.value.offset) == ("a/b", "t", 3)


# ---- the command, threads ----

def test_python_m_heft_is_the_command(model):
    mine = subprocess.run([sys.executable, "-m", "heft", "ls", "--raw", model], check=True,
                          capture_output=True, text=True)
    assert mine.stdout == command("ls", "--raw", model)
    wrong = subprocess.run([sys.executable, "-m", "heft", "ls", "none"], check=False,
                           capture_output=True, text=True)
    assert wrong.returncode == 4 and wrong.stderr.startswith("heft: none: ")


def test_functions_run_on_several_threads(model):
    want = heft.hash(model)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(got == want for got in pool.map(heft.hash, [model] * 32))


def test_joined_shares_return_the_result_of_one_process(tmp_path):
    file, stem = tmp_path / "a.safetensors", tmp_path / "part"
    heft.save({"a": b"1234", "b": b"5678"}, file)
    for share in ("1/2", (2, 2)):
        assert heft.verify(file, share=share, output=stem) is None
    assert heft.verify(file, join=stem) == heft.verify(file)


def test_shares_complete_the_target(tmp_path):
    file, target, want = (tmp_path / name for name in ("a.safetensors", "b.zt", "one.zt"))
    heft.save({"a": b"1234" * 100, "b": b"5678"}, file)
    heft.convert(file, want)
    first = heft.convert(file, target, share=(2, 2))
    assert (first.share, first.shares, first.missing) == (2, 2, 1) and not target.exists()
    with pytest.raises(heft.Error, match="1 of 2 shares"):
        heft.convert(file, target, finish=True)
    assert heft.convert(file, target, share="1/2").missing == 0
    assert target.read_bytes() == want.read_bytes()
    assert heft.convert(file, want, force=True).share is None


def test_shares_are_given_up(tmp_path):
    file, target = tmp_path / "a.safetensors", tmp_path / "b.zt"
    heft.save({"a": b"1234" * 100, "b": b"5678"}, file)
    heft.convert(file, target, share=(1, 2))
    assert heft.convert(file, target, abort=True) is None
    assert sorted(tmp_path.iterdir()) == [file]
    with pytest.raises(heft.Error, match="no shares"):
        heft.convert(file, target, abort=True)


@pytest.mark.parametrize("share", [(0, 2), (3, 2), "x", (1,), (1, 2.5), (True, 2), 5])
def test_other_shares_are_refused(share, tmp_path):
    heft.save({"a": b"1234"}, tmp_path / "a.safetensors")
    with pytest.raises((heft.Error, ValueError, TypeError)):
        heft.convert(tmp_path / "a.safetensors", tmp_path / "b.zt", share=share)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.safetensors"]


def test_shares_on_a_dask_cluster(tmp_path):
    pytest.importorskip("distributed", reason="python3-distributed is not installed")
    file, target, want = (tmp_path / name for name in ("a.safetensors", "b.zt", "one.zt"))
    heft.save({f"t{i}": bytes([i]) * 5000 for i in range(20)}, file)
    heft.convert(file, want)
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/shares_dask.py"
    for _ in range(2):
        subprocess.run([sys.executable, example, "--shares", "5", file, target], check=True)
        assert target.read_bytes() == want.read_bytes()
        target.unlink()


# ---- blends, and tensors that are replaced ----

@pytest.fixture(name="pair")
def _pair(tmp_path):
    for name, values in (("a", [1.0, 2.0]), ("b", [3.0, 6.0])):
        write_safetensors(tmp_path / f"{name}.safetensors", {"w": ("F32", [2], f32(*values))})
    return [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]


def test_blend(pair, tmp_path):
    out = tmp_path / "out.safetensors"
    planned = heft.blend(pair, out, method="linear", weight=[3, 1], dry_run=True)
    assert not out.exists() and planned.dry_run
    done = heft.blend(pair, out, method="linear", weight=[3, 1])
    assert done.file == out and done.format == "safetensors"
    assert done.bytes == planned.bytes == out.stat().st_size
    assert heft.open(out)["w"].numpy().tolist() == [1.5, 3.0]
    heft.blend(pair[1], out, method="slerp", base=pair[0], t=1, force=True)
    assert heft.open(out)["w"].numpy().tolist() == [3.0, 6.0]
    with pytest.raises(heft.ArgumentError, match="base"):
        heft.blend(pair, out, method="ties", force=True)


def test_words_of_blends():
    words = words_of("blend", ["a", "b"], "o", method="ties", weight={"mlp": [1, 2], "*": 3},
                     density=1 / 3, normalize=False, factor=0.5, tied={"h": "e"}, seed=7)
    assert words == ["--method=ties", "--weight=mlp=1.0,2.0", "--weight=*=3.0",
                     f"--density={1 / 3!r}", "--factor=0.5", "--normalize=false", "--seed=7",
                     "--tied=h=e", "--", "a", "b", "o"]


def test_replaced_tensor(pair):
    done = heft.edit(pair[0], tensor={"w": f"{pair[1]}"})
    assert done.changed and done.in_place
    assert heft.open(pair[0])["w"].numpy().tolist() == [3.0, 6.0]
