#!/usr/bin/env python3
"""gen_npy.py ROOT: write .npy samples to ROOT/npy, without Heft and NumPy.

Good samples: every element type, byte orders, orders of dimensions, versions, spellings of the
header. Bad samples: at least one for each error of the parser, and accepted files that NumPy would
not write."""
import sys

import npy_bytes as npy
from samples import Samples

EIGHT = bytes(range(8))


def data(dtype, shape):
    return npy.tensor("data", dtype, shape)


# ---- good -------------------------------------------------------------------------------------

def good_types(s):
    for dtype in npy.TYPES:
        for order, word in (("<", "little"), (">", "big")):
            t = data(dtype, (3, 5))
            s.good(f"{dtype}_{word}.npy", npy.array(t, order), [t])
            s.good(f"{dtype}_{word}_fortran.npy", npy.array(t, order, True), [t])


def good_shapes(s):
    shapes = [(), (0,), (1,), (7,), (2, 0, 3), (4, 3, 2, 5), (1, 9, 1), (2,) * 11, (1,) * 64,
              (300, 700)]
    for i, shape in enumerate(shapes):
        t = data("f32", shape)
        s.good(f"shape{i}.npy", npy.array(t), [t])
        s.good(f"shape{i}_fortran.npy", npy.array(t, fortran=True), [t])
        s.good(f"shape{i}_fortran_big.npy", npy.array(t, ">", fortran=True), [t])


def good_headers(s):
    t = data("i16", (2, 3))
    for version in (2, 3):
        s.good(f"version{version}.npy", npy.array(t, version=(version, 0)), [t])
    s.good("aligned_16.npy", npy.array(t, align=16), [t])
    s.good("unaligned.npy", npy.array(t, align=0), [t])
    s.good("padded_4096.npy", npy.array(t, align=4096), [t])
    spellings = {
        "no_space": "{'descr':'<i2','fortran_order':False,'shape':(2,3)}",
        "quotes": '{"descr": "<i2", "fortran_order": False, "shape": (2, 3)}',
        "backwards": "{'shape': (2, 3,), 'fortran_order': False, 'descr': '<i2', }",
        "lines": " \t{\n'descr' : '<i2' ,\r\n 'fortran_order' : False,\n'shape': ( 2 , 3 ) , } \t",
        "long": "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }",
        "native": "{'descr': '=i2', 'fortran_order': False, 'shape': (2, 3), }",
        "bare": "{'descr': 'i2', 'fortran_order': False, 'shape': (2, 3), }",
        "name": "{'descr': 'int16', 'fortran_order': False, 'shape': (2, 3), }",
        "character": "{'descr': 'h', 'fortran_order': False, 'shape': (2, 3), }",
        "comments": "# an array\n{'descr': '<i2', # little-endian\n'fortran_order': False, "
                    "'shape': (2, #)\n3), }# the end",
        "parentheses": "({('descr'): ('<i2'), 'fortran_order': (False), 'shape': (((2), 3)), })",
        "joined": "{'des' u'cr': '<' \"\"\"i2\"\"\", 'fortran_order': False, 'shape': (2, 3), }",
        "escapes": "{'d\\x65scr': '\\74\\u0069\\\n2', 'fortran_order': False, 'shape': (2, 3), }",
        "numbers": "{'descr': '<i2', 'fortran_order': False, 'shape': (+0b1_0, 0x3), }",
    }
    for name, text in spellings.items():
        s.good(f"spelled_{name}.npy", npy.header(text) + t[3], [t])
    s.good("no_newline.npy", npy.header(spellings["quotes"], end="") + t[3], [t])


# ---- bad --------------------------------------------------------------------------------------

GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


def said(descr="'<f4'", order="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


LITERALS = [
    ("empty", "", "reject", "an empty header"),
    ("no_brace", GOOD[1:], "reject", "no opening brace"),
    ("no_end", GOOD[:-1], "reject", "no closing brace"),
    ("behind", GOOD + " 1", "reject", "text after the dictionary"),
    ("second", GOOD + GOOD, "reject", "two dictionaries"),
    ("empty_dict", "{}", "reject", "no field"),
    ("no_descr", "{'fortran_order': False, 'shape': (2,), }", "reject", "no descr"),
    ("no_order", "{'descr': '<f4', 'shape': (2,), }", "reject", "no fortran_order"),
    ("no_shape", "{'descr': '<f4', 'fortran_order': False}", "reject", "no shape"),
    ("descr_twice", GOOD[:-1] + "'descr': '<f4'}", "reject", "a key twice"),
    ("other_key", GOOD[:-1] + "'x': 1}", "reject", "a key that NumPy does not define"),
    ("no_colon", GOOD.replace("descr':", "descr'"), "reject", "no colon"),
    ("no_comma", GOOD.replace("'<f4',", "'<f4'"), "reject", "no comma between fields"),
    ("two_commas", GOOD.replace("'<f4',", "'<f4',,"), "reject", "two commas"),
    ("key_bare", GOOD.replace("'descr'", "descr"), "reject", "a key without quotes"),
    ("key_open", "{'descr", "reject", "a key that does not end"),
    ("key_number", "{1: 2}", "reject", "a key that is a number"),
    ("escape", GOOD.replace("<f4", "\\N{LESS-THAN SIGN}f4"), "reject", "a character by its name"),
    ("escape_short", GOOD.replace("<f4", "<f4\\x3"), "reject", "an escape without its last digit"),
    ("string_open", "{'descr': '<f4", "reject", "a string that does not end"),
    ("parenthesis_open", "(" + GOOD, "reject", "a parenthesis that is not closed"),
    ("indented", "\n " + GOOD, "reject", "a first line that is indented"),
    ("bytes", said(descr="b'<f4'"), "reject", "a type that is bytes"),
    ("line_in_string", GOOD.replace("<f4", "<f\n4"), "reject", "a line feed in a string"),
    ("call", said(descr="__import__('os')"), "reject", "a call"),
    ("sum", said(shape="(1+1,)"), "reject", "an expression"),
    ("order_number", said(order="0"), "reject", "fortran_order is a number"),
    ("order_text", said(order="'False'"), "reject", "fortran_order is text"),
    ("order_lower", said(order="false"), "reject", "fortran_order in the spelling of JSON"),
    ("shape_list", said(shape="[2]"), "reject", "shape is a list"),
    ("shape_number", said(shape="2"), "reject", "shape is a number"),
    ("shape_in_brackets", said(shape="(2)"), "reject", "shape is a number in parentheses"),
    ("shape_negative", said(shape="(-2,)"), "reject", "a negative dimension"),
    ("shape_octal", said(shape="(02,)"), "reject", "a dimension with a leading zero"),
    ("shape_hex", said(shape="(0x,)"), "reject", "a hexadecimal dimension without digits"),
    ("shape_nested", said(shape="((2,), 1)"), "reject", "a tuple as a dimension"),
    ("shape_float", said(shape="(2.0,)"), "reject", "a dimension with a point"),
    ("shape_open", said(shape="(2,"), "reject", "shape does not end"),
    ("shape_no_comma", said(shape="(1 2)"), "reject", "no comma between dimensions"),
    ("shape_comma", said(shape="(,)"), "reject", "a comma instead of a dimension"),
    ("shape_2_63", said(shape=f"({2**63},)"), "reject", "a dimension of 2^63"),
    ("shape_2_64", said(shape=f"({2**64},)"), "reject", "a dimension of 2^64"),
    ("shape_long", said(shape=f"({10**40},)"), "reject", "a dimension of 41 digits"),
    ("shape_wraps", said(shape=f"({2**32}, {2**32})"), "reject", "a product of 2^64"),
    ("shape_bytes_wrap", said(shape=f"({2**62}, 1)"), "reject", "2^64 bytes"),
    ("shape_65", said(shape="(" + "1, " * 64 + "2)"), "reject", "65 dimensions"),
    ("size_more", said(shape="(3,)"), "reject", "twelve bytes are needed, eight are there"),
    ("size_fortran", said(order="True",
                          shape="(3, 3)"), "reject", "too few bytes for a matrix by columns"),
    ("size_less", said(shape="(1,)"), "warn", "four bytes after the array"),
    ("size_empty", said(shape="(0,)"), "warn", "an empty array and eight bytes"),
    ("descr_none", said(descr="''"), "reject", "no type at all"),
    ("descr_order", said(descr="'<'"), "reject", "a byte order without a type"),
    ("descr_unknown", said(descr="'<q8'"), "reject", "an unknown type letter"),
    ("descr_size", said(descr="'<f3'"), "reject", "an unknown type size"),
    ("descr_behind", said(descr="'<f4x'"), "reject", "text after the type"),
    ("descr_number", said(descr="4"), "reject", "the type is a number"),
    ("descr_object", said(descr="'|O'"), "refuse", "Python objects"),
    ("descr_object8", said(descr="'|O8'"), "refuse", "Python objects with a size"),
    ("descr_bytes", said(descr="'|S4'"), "refuse", "byte strings"),
    ("descr_bytes_old", said(descr="'|a4'"), "refuse", "byte strings, old type letter"),
    ("descr_text", said(descr="'<U1'"), "refuse", "texts"),
    ("descr_text_big", said(descr="'>U1'"), "refuse", "texts"),
    ("descr_void", said(descr="'|V4'"), "refuse", "raw bytes, or a type of another package"),
    ("descr_bf16", said(descr="'<V2'", shape="(4,)"), "accept", "bfloat16 of ml_dtypes"),
    ("descr_e5m2", said(descr="'<f1'", shape="(8,)"), "warn", "float8_e5m2 of ml_dtypes"),
    ("descr_e4m3", said(descr="'|V1'", shape="(8,)"), "warn", "a type of one byte of ml_dtypes"),
    ("descr_date", said(descr="'<M8[ns]'"), "refuse", "dates"),
    ("descr_span", said(descr="'<m8[s]'"), "refuse", "time spans"),
    ("descr_f12", said(descr="'<f12'"), "refuse", "extended precision of 32-bit x86"),
    ("descr_f16", said(descr="'<f16'"), "refuse", "extended precision"),
    ("descr_c32", said(descr="'<c32'"), "refuse", "complex numbers of extended precision"),
    ("descr_record", said(descr="[('a', '<f4'), ('b', '<i4')]"), "refuse", "records"),
    ("descr_sub", said(descr="('<f4', (2,))"), "refuse", "a type with a shape"),
    ("descr_dict", said(descr="{'names': ['a']}"), "refuse", "records as a dictionary"),
    ("bool_values", said(descr="'|b1'", shape="(8,)"), "warn", "booleans above 1"),
]


def bad_files(s):
    for name, text, expect, why in LITERALS:
        s.bad(f"{name}.npy", npy.header(text) + EIGHT, expect, why)
    whole = npy.header(GOOD) + EIGHT
    s.bad("nul_behind.npy",
          npy.header(GOOD + "\0x", align=0) + EIGHT, "reject", "a zero byte in the header")
    s.bad("magic_only.npy", whole[:6], "reject", "magic number only")
    s.bad("no_length.npy", whole[:9], "reject", "truncated within the length")
    s.bad("cut_in_header.npy", whole[:40], "reject", "truncated within the header")
    s.bad("cut_in_data.npy", whole[:-1], "reject", "the last byte is missing")
    s.bad("short_version2.npy",
          npy.header(GOOD, (2, 0))[:11], "reject", "truncated within the length of version 2")
    s.bad("length_max.npy",
          npy.header(GOOD, length=65535) + EIGHT, "reject", "a header longer than the file")
    s.bad("length_2_32.npy",
          npy.header(GOOD, (2, 0), length=2**32 - 1) + EIGHT, "reject", "a header of 4 GiB")
    s.bad("length_short.npy",
          npy.header(GOOD, length=20) + EIGHT, "reject", "a header truncated by the length field")
    s.bad("version0.npy", npy.header(GOOD, (0, 0)) + EIGHT, "refuse", "version 0")
    s.bad("version4.npy", npy.header(GOOD, (4, 0)) + EIGHT, "refuse", "version 4")
    s.bad("version1_1.npy", npy.header(GOOD, (1, 1)) + EIGHT, "refuse", "version 1.1")
    long = npy.header(GOOD + " " * (1 << 20), (2, 0)) + EIGHT
    s.bad("header_limit.npy", long, "refuse", "a header of more than a MiB")
    most = npy.header(GOOD + " " * ((1 << 20) - len(npy.header(GOOD, (2, 0)))), (2, 0)) + EIGHT
    s.bad("header_most.npy", most, "accept", "a header of a MiB")
    s.bad("two_arrays.npy", whole + whole, "warn", "two arrays, of which NumPy reads the first")
    s.bad("columns.npy", npy.array(data("f32", (3, 2)), fortran=True), "accept",
          "a matrix by columns")
    s.bad("big.npy", npy.array(data("f32", (3, 2)), ">"), "accept", "big-endian numbers")


def main():
    s = Samples(sys.argv[1], "npy")
    for make in (good_types, good_shapes, good_headers, bad_files):
        make(s)


main()
