#!/usr/bin/env python3
"""gen_torch_package.py ROOT: write packages of torch.export (.pt2) to ROOT/torch.

The packages are made with json and zipfile, by the layouts that torch/export/pt2_archive reads:
files of torch.save() as PyTorch 2.7 and 2.8 write them, and storages with a configuration, since
2.9."""
import json
import struct
import sys
import zipfile

from gen_torch import archive, described, gather, noise, plain, program, rebuilt, persistent, zipped
from samples import Samples

# number in the schema, Heft's name, bytes
TYPES = [(1, "u8", 1), (2, "i8", 1), (3, "i16", 2), (4, "i32", 4), (5, "i64", 8), (6, "f16", 2),
         (7, "f32", 4), (8, "f64", 8), (9, "u32", 4), (10, "c64", 8), (11, "c128", 16),
         (12, "bool", 1), (13, "bf16", 2), (28, "u16", 2), (29, "f8_e4m3fn", 1),
         (30, "f8_e5m2", 1), (31, "f8_e4m3fnuz", 1), (32, "f8_e5m2fnuz", 1), (33, "f8_e8m0", 1),
         (34, "u32", 4), (35, "u64", 8)]
END = [("archive_format", b"pt2"), ("archive_version", b"0"), ("byteorder", b"little"),
       (".data/serialization_id", b"1"), ("version", b"3\n"), (".data/version", b"6\n")]
WEIGHTS, CONSTANTS = "data/weights/", "data/constants/"
GRAPH = [("models/model.json", b'{"graph_module": {}}')]
SYMBOL = {"as_expr": {"expr_str": "s0", "hint": {"as_int": 4}}}
FLOATS = noise(1, 96)


def sizes(numbers):
    return [{"as_int": n} for n in numbers]


def meta(dtype=7, shape=(), strides=(), offset=0, **changed):
    return {
        "dtype": dtype, "sizes": sizes(shape), "requires_grad": False,
        "device": {"type": "cpu", "index": None}, "strides": sizes(strides),
        "storage_offset": {"as_int": offset}, "layout": 7, **changed
    }


def entry(path, tensor_meta, use_pickle=False):
    return {
        "path_name": path, "is_param": True, "use_pickle": use_pickle, "tensor_meta": tensor_meta
    }


def text(value):
    return value if isinstance(value, bytes) else json.dumps({"config": value}).encode()


def package(weights, members=(), constants=None, constant_members=(), model="model", **how):
    """Return a package as PyTorch 2.9 writes it."""
    found = [(WEIGHTS + n, data) for n, data in members]
    found.append((f"{WEIGHTS}{model}_weights_config.json", text(weights)))
    found += [(CONSTANTS + n, data) for n, data in constant_members]
    found.append((f"{CONSTANTS}{model}_constants_config.json", text(constants or {})))
    return archive([*found, *GRAPH, *how.pop("more", ()), *how.pop("end", END)], **how)


def one(m=None, data=FLOATS, **changed):
    """Return a package with one tensor "w", whose entry has the changes."""
    e = entry("weight_0", m or meta(7, (4, 6), (6, 1)))
    e.update(changed)
    return package({"w": {k: v for k, v in e.items() if v != "none"}}, [("weight_0", data)])


def without(key):
    m = meta(7, (4, 6), (6, 1))
    del m[key]
    return m


def w(data=FLOATS, dtype="f32"):
    return [("w", dtype, (4, 6), data)]


# ---- good ----

def good_types(s):
    config, members, listed = {}, [], []
    for i, (number, short, size) in enumerate(TYPES):
        data = bytes(b & 1 for b in noise(i, 6)) if short == "bool" else noise(i, 6 * size)
        config[f"type{number}"] = entry(f"weight_{i}", meta(number, (2, 3), (3, 1)))
        members.append((f"weight_{i}", data))
        listed.append((f"type{number}", short, (2, 3), data))
    s.good("package_types.pt2", package(config, members), listed)


VIEWS = {
    "whole": ((4, 6), (6, 1), 0), "transposed": ((6, 4), (1, 6), 0), "row": ((6,), (1,), 12),
    "column": ((4,), (6,), 2), "expanded": ((3, 6), (0, 1), 6), "overlapping": ((5, 4), (2, 1), 1),
    "scalar": ((), (), 23), "none": ((0, 6), (6, 1), 0), "one": ((1, 1), (7, 9), 3)
}


def good_views(s):
    config = {n: entry("weight_0", meta(7, shape, strides, at))
              for n, (shape, strides, at) in VIEWS.items()}
    listed = [(n, "f32", shape, gather(FLOATS, 4, shape, strides, at))
              for n, (shape, strides, at) in VIEWS.items()]
    members = [("weight_0", FLOATS)]
    s.good("package_views.pt2", package(config, members), listed)
    s.good("package_deflated.pt2", package(config, members, method=zipfile.ZIP_DEFLATED), listed)
    s.good("package_no_folder.pt2", package(config, members, folder=""), listed)


def good_big_endian(s):
    end = [(n, b"big" if n == "byteorder" else d) for n, d in END]
    swapped = b"".join(FLOATS[i:i + 4][::-1] for i in range(0, 96, 4))
    data = package({"w": entry("weight_0", meta(7, (4, 6), (6, 1)))}, [("weight_0", swapped)],
                   end=end)
    s.good("package_big_endian.pt2", data, w())


def good_constants(s):
    data = package({"w": entry("weight_0", meta(7, (4, 6), (6, 1)))}, [("weight_0", FLOATS)],
                   {"c": entry("tensor_0", meta(5, (2,), (1,)))}, [("tensor_0", noise(3, 16))],
                   more=[("data/sample_inputs/model.pt", zipped({"x": plain((2,))})),
                         ("data/aotinductor/model/code.so", b"\x7fELF" + bytes(60)),
                         ("extra/notes.txt", b"words")])
    s.good("package_constants.pt2", data, [*w(), ("c", "i64", (2,), noise(3, 16))])


def saved(model, value, folder=WEIGHTS):
    return f"{folder}{model}.pt", zipped(value)


def good_saved(s):
    """PyTorch 2.7 and 2.8."""
    a, b, c = plain((2, 3)), plain((3,), 2), plain((2,), 3)
    members = [saved("model", {"a.weight": a, "a.bias": b}), saved("model", {"c": c}, CONSTANTS)]
    listed = [described("a.weight", a), described("a.bias", b), described("c", c)]
    s.good("package_saved.pt2", archive([*members, *GRAPH, *END]), listed)
    members[1] = saved("model", {}, CONSTANTS)
    s.good("package_no_constants.pt2", archive([*members, *GRAPH, *END]), listed[:2])
    members[1] = (CONSTANTS + "model.pt", b"")
    s.good("package_empty_constants.pt2", archive([*members, *GRAPH, *END]), listed[:2])


def good_models(s):
    """Names begin with the model only if there are several."""
    a, b = plain((2, 3)), plain((3,), 2)
    c = plain((2,), 3)
    members = [saved("one", {"w": a}), saved("two", {"w": b}), saved("two", {"c": c}, CONSTANTS)]
    listed = [described("one.w", a), described("two.w", b), described("two.c", c)]
    s.good("package_two.pt2", archive([*members, *GRAPH, *END]), listed)
    config = {"w": entry("weight_0", meta(7, (4, 6), (6, 1)))}
    data = package(config, [("weight_0", FLOATS)], model="x", more=[
        (f"{WEIGHTS}y_weights_config.json", text(config))])
    s.good("package_shared.pt2", data, [(f"{m}.w", "f32", (4, 6), FLOATS) for m in "xy"])


def good_pickled(s):
    """A tensor of a subclass is a file of torch.save()."""
    a, b = plain((2, 3)), plain((3,), 2)
    config = {"a": entry("weight_0", meta(7, (2, 3), (3, 1)), True),
              "b": entry("weight_1", meta(7, (3,), (1,)), True)}
    c = plain((2,), 3)
    members = [("weight_0", zipped(a)), ("weight_1", zipped({"data": b, "scale": c}))]
    listed = [described("a", a), described("b.data", b), described("b.scale", c)]
    s.good("package_pickled.pt2", package(config, members), listed)


def compiled(config, members, model="model"):
    code = f"data/aotinductor/{model}/"
    return archive([(code + "c.so", b"\x7fELF" + bytes(60)), (code + "c.cpp", b"int a;"),
                    *[(WEIGHTS + n, data) for n, data in members],
                    (code + "weights_config.json", json.dumps(config).encode()), *END])


def good_compiled(s):
    """Weights beside the code of AOTInductor are views of tensors that torch.save() wrote."""
    a, b = plain((4, 6)), plain((5,), 2, ("DoubleStorage", "float64", "f64", 8))
    config = {"a": ["weight_0", [4, 6], [6, 1], 0], "t": ["weight_0", [6, 4], [1, 6], 0],
              "row": ["weight_0", [6], [1], 6], "b": ["weight_1", [5], [1], 0]}
    data = compiled(config, [("weight_0", zipped(a)), ("weight_1", zipped(b))])
    floats = described("a", a)[3]
    turned = gather(floats, 4, (6, 4), (1, 6), 0)
    listed = [("a", "f32", (4, 6), floats), ("t", "f32", (6, 4), turned),
              ("row", "f32", (6,), floats[24:48]), described("b", b, "f64", 8)]
    s.good("package_compiled.pt2", data, listed)


# ---- bad ----

def bad_left_out(s):
    for name, data, why in [
        ("type", one(meta(14, (4, 6), (6, 1))), "an unknown element type"),
        ("type_zero", one(meta(0, (4, 6), (6, 1))), "the element type 0"),
        ("sparse", one(meta(7, (4, 6), (6, 1), layout=2)), "a sparse tensor"),
        ("no_bytes", one(data=b""), "a tensor of the device meta"),
        ("symbolic", one(meta(7, (4, 6), (6, 1), sizes=[SYMBOL, *sizes([6])])), "a symbol")]:
        s.bad(f"package_{name}.pt2", data, "reject", why, rule="torch/unreadable")
    config = {"w": entry("weight_0", meta(7, (4, 6), (6, 1)))}
    rest = [("weight_0", FLOATS), ("weight_1", FLOATS)]
    s.bad("package_rest.pt2", package(config, rest), "warn", "a storage that no tensor has",
          rule="torch/storage")
    nul = {"w\0x": entry("weight_0", meta(7, (4, 6), (6, 1)))}
    s.bad("package_nul.pt2", package(nul, rest[:1]), "warn", "a NUL in a name", rule="torch/name")
    objects = {"o": entry("custom_obj_0", None, True)}
    stored = [("custom_obj_0", zipped({"a": 1}))]
    s.bad("package_object.pt2", package(config, rest[:1], objects, stored), "warn",
          "an object that is not a tensor", rule="torch/storage")
    s.bad("package_config_name.pt2", package(config, rest[:1], more=[
        (f"{WEIGHTS}model_other_config.json", b"{}")]), "warn", "an unknown configuration",
          rule="torch/storage")


def bad_entries(s):
    s.bad("package_config_deep.pt2", package(b'{"other": ' + b"[" * 100000), "refuse",
          "a configuration that is nested too deeply")
    s.bad("package_expanded_vast.pt2", one(meta(7, (2**40, 6), (0, 1))), "refuse",
          "a tensor that is larger than its file")
    good = json.dumps(meta(7, (4, 6), (6, 1)))
    for name, data, words in [
        ("short", one(data=FLOATS[:-1]), "its elements take bytes"),
        ("strides_far", one(meta(7, (4, 6), (7, 1))), "its elements take bytes"),
        ("offset_far", one(meta(7, (4, 6), (6, 1), 1)), "its elements take bytes"),
        ("strides_vast", one(meta(7, (4, 6), (2**62, 1))), ""),
        ("offset_vast", one(meta(7, (4, 6), (6, 1), 2**63)), "offset exceeds 63 bits"),
        ("sizes_vast", one(meta(7, (2**32, 2**32), (0, 0))), "exceeds 64 bits"),
        ("negative", one(meta(7, (4, -6), (6, 1))), "not a non-negative integer"),
        ("stride_negative", one(meta(7, (4, 6), (-6, 1))), "not a non-negative integer"),
        ("rank", one(meta(7, (4, 6), (1,))), "are missing"),
        ("no_dtype", one(without("dtype")), "are missing"),
        ("no_sizes", one(without("sizes")), "are missing"),
        ("no_strides", one(without("strides")), "are missing"),
        ("no_offset", one(without("storage_offset")), "are missing"),
        ("no_meta", one(tensor_meta=None), "are missing"),
        ("no_path", one(path_name="none"), "no path_name"),
        ("gone", one(path_name="weight_7"), "has no member"),
        ("up", one(path_name="../constants/model_constants_config.json"), "has no member"),
        ("absolute", one(path_name="/etc/passwd"), "has no member"),
        ("path_number", one(path_name=7), "path_name is not a text"),
        ("pickle_word", one(use_pickle="yes"), "neither true nor false"),
        ("meta_list", one(tensor_meta=[]), "tensor_meta is not an object"),
        ("sizes_number", one(meta(7, (), (), sizes=3)), "sizes are not a list"),
        ("sizes_plain", one(meta(7, (), (), sizes=[3, 4])), "sizes are not numbers"),
        ("size_empty", one(meta(7, (), (), sizes=[{}])), "has not one number"),
        ("size_twice", package(one_text(good.replace('t": 4}', 't": 4, "as_int": 4}')),
                               [("weight_0", FLOATS)]), "has not one number"),
        ("offset_number", one(meta(7, (4, 6), (6, 1), storage_offset=0)), "is not an object"),
        ("dtype_word", one(meta("float32", (4, 6), (6, 1))), "not a non-negative integer"),
        ("field_twice", package(one_text(good.replace('"layout": 7', '"layout": 7, "dtype": 7')),
                                [("weight_0", FLOATS)]), "dtype occurs twice"),
        ("name_twice", package(one_text(good, '"w": 1, "w"'), [("weight_0", FLOATS)]), ""),
        ("same_name", package(one_text(good, twice=True), [("weight_0", FLOATS)]), ""),
        ("entry_list", package({"w": []}), "is not an object"),
        ("no_config", package(b"{}"), "no object \"config\""),
        ("config_twice", package(b'{"config": {}, "config": {}}'), "not one object"),
        ("config_list", package(b'{"config": []}'), "not one object"),
        ("config_word", package(b"config"), ""),
        ("config_empty", package(b""), ""),
        ("config_more", package(b'{"config": {}} {}'), "")]:
        s.bad(f"package_{name}.pt2", data, "reject", words or name, message=words)


def one_text(tensor_meta, key='"w"', twice=False):
    body = f'{key}: {{"path_name": "weight_0", "use_pickle": false, "tensor_meta": {tensor_meta}}}'
    return ('{"config": {' + ", ".join([body] * (1 + twice)) + "}}").encode()


def bad_saved(s):
    a = plain((2, 3))
    good = zipped({"w": a})
    for name, data, words in [
        ("saved_cut", good[:-30], "in 'model/data/weights/model.pt'"),
        ("saved_words", b"words" * 40, "in 'model/data/weights/model.pt'"),
        ("saved_nested", archive([*GRAPH, *END]), "no member data.pkl"),
        ("saved_far", far(good), "in 'model/data/weights/model.pt'"),
        ("saved_pickle", program(rebuilt(persistent(), offset=b"K\x07")), "its elements take")]:
        members = [(WEIGHTS + "model.pt", data), *GRAPH, *END]
        s.bad(f"package_{name}.pt2", archive(members), "reject", name, message=words)
    members = [(WEIGHTS + "model.pt", good), *GRAPH, *END]
    s.bad("package_saved_deflated.pt2", archive(members, deflate=(WEIGHTS + "model.pt",)), "refuse",
          "a compressed file of torch.save()")
    twice = {n: entry("weight_0", meta(7, (2, 3), (3, 1)), True) for n in "ab"}
    s.bad("package_pickled_twice.pt2", package(twice, [("weight_0", zipped(a))]), "reject",
          "two names of a pickle", message="another name has")


def bad_compiled(s):
    a = [("weight_0", zipped(plain((4, 6))))]
    row = ["weight_0", [4, 6], [6, 1], 0]
    for name, config, members, words in [
        ("gone", {"w": ["weight_1", *row[1:]]}, a, "no member 'weight_1'"),
        ("far", {"w": [*row[:3], 1]}, a, "its elements take bytes"),
        ("rank", {"w": ["weight_0", [4, 6], [1], 0]}, a, "2 dimensions, but 1 strides"),
        ("negative", {"w": ["weight_0", [4, -6], [6, 1], 0]}, a, "not non-negative integers"),
        ("size_word", {"w": ["weight_0", "4", [6, 1], 0]}, a, "are not a list"),
        ("offset_word", {"w": [*row[:3], "0"]}, a, "does not end with an offset"),
        ("more", {"w": [*row, 0]}, a, "does not end with an offset"),
        ("file_number", {"w": [0, *row[1:]]}, a, "begins with a file"),
        ("entry", {"w": {}}, a, "begins with a file"),
        ("list", [], a, "the configuration is not an object"),
        ("raw", {"w": row}, [("weight_0", FLOATS)], "in 'model/data/weights/weight_0'"),
        ("no_pickle", {"w": row}, [("weight_0", archive(END))], "no member data.pkl")]:
        s.bad(f"package_compiled_{name}.pt2", compiled(config, members), "reject", name,
              message=words)
    for name, member in [("dict", zipped({"w": plain((4, 6))})), ("empty", b"")]:
        s.bad(f"package_compiled_{name}.pt2", compiled({"w": row}, [("weight_0", member)]),
              "refuse", "a file that is not a tensor")


def far(data):
    """Let the local header of the first member lie far outside of the inner archive."""
    at = data.index(b"PK\1\2") + 42
    return data[:at] + struct.pack("<I", 2**31) + data[at + 4:]


def bad_packages(s):
    config = {"w": entry("weight_0", meta(7, (4, 6), (6, 1)))}
    members = [("weight_0", FLOATS)]
    for name, path, content in [("format", "archive_format", b"pt3"),
                                ("version", "archive_version", b"1"),
                                ("version_long", "archive_version", b"0" * 99)]:
        end = [(n, content if n == path else d) for n, d in END]
        s.bad(f"package_{name}.pt2", package(config, members, end=end), "refuse", name)
    s.bad("package_byteorder.pt2", package(config, members, end=[
        (n, b"middle" if n == "byteorder" else d) for n, d in END]), "reject", "byte order",
          message="the byte order is neither")
    s.bad("package_no_weights.pt2", archive([
        ("data/aotinductor/model/code.so", b"\x7fELF" + bytes(60)), *END]), "refuse",
          "compiled code alone")
    s.bad("package_model_name.pt2", archive([
        *((f"{WEIGHTS}{m * 256}_weights_config.json", text({})) for m in "ab"), *END]), "refuse",
          "names of models that are longer than those of files")
    whole = package(config, members)
    at = whole.index(FLOATS)
    s.bad("package_crc.pt2", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:], "reject",
          "a storage that was changed", rule="torch/crc32")
    at = whole.index(b'"is_param": true')
    s.bad("package_config_crc.pt2", whole[:at] + b'"is_Param"' + whole[at + 10:], "reject",
          "a configuration that was changed", rule="torch/crc32")
    s.bad("package_cut.pt2", whole[:whole.index(b"PK\1\2")], "reject", "a truncated package")


def main():
    s = Samples(sys.argv[1], "torch")
    for write in (good_types, good_views, good_big_endian, good_constants, good_saved, good_models,
                  good_pickled, good_compiled, bad_left_out, bad_entries, bad_saved, bad_compiled,
                  bad_packages):
        write(s)


if __name__ == "__main__":
    main()
