/* fuzz_map.c - fuzzes maps: a text, or rules that the script makes up, are applied to a small model
 * and back, and the results have the same bytes read as a whole and in sections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/map.h>

#include "fuzz.h"

/* Tensors that every rule of make_rules() may name. */
static const char header[] =
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[0,96]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[96,192]},"
    "\"e.0\":{\"dtype\":\"BF16\",\"shape\":[3,4],\"data_offsets\":[192,216]},"
    "\"e.1\":{\"dtype\":\"BF16\",\"shape\":[3,4],\"data_offsets\":[216,240]},"
    "\"v\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[240,256]},"
    "\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[256,264]}}";
enum { PREFIX = 8, HEADER = sizeof header - 1, PAYLOAD = 264, MODEL = PREFIX + HEADER + PAYLOAD };

static void make_model(uint8_t model[MODEL])
{
    for (size_t i = 0; i < PREFIX; i++)
        model[i] = (uint8_t)((uint64_t)HEADER >> 8 * i);
    memcpy(model + PREFIX, header, HEADER);
    for (size_t i = 0; i < PAYLOAD; i++)
        model[PREFIX + HEADER + i] = (uint8_t)(i * 7 + i / 9);
}

/* ---- maps ---- */

static size_t put(char *text, size_t len, size_t most, const char *word)
{
    int n = snprintf(text + len, most - len, "%s", word);
    return n > 0 && (size_t)n < most - len ? len + (size_t)n : len;
}

static size_t make_rules(char *text, size_t most, fuzz_script *s)
{
    static const char *const names[] = { "a -> x",         "a, b -> x",      "a -> x, y",
                                         "a, b -> x, y",   "e.{i} -> x.{i}", "e.{i} -> x",
                                         "v -> x",         "s -> x",         "a -> x.{i}",
                                         "{n*} -> z.{n*}", "a => x",         "e.{i}, v -> x" };
    static const char *const operations[] = { "fold",       "merge", "swap",        "stack",
                                              "unstack",    "split", "concat",      "rotary",
                                              "interleave", "add",   "resize",      "join",
                                              "take",       "f32",   "swap-numbers" };
    static const char *const numbers[] = { "0",
                                           "1",
                                           "2",
                                           "3",
                                           "4",
                                           "6",
                                           "i",
                                           "_",
                                           "-1",
                                           "12",
                                           "18446744073709551615",
                                           "9223372036854775808" };
    static const char *const ties[] = { "", "tie-right x y\n", "untie a b\n",
                                        "untie a c\nb -> y\nc -> y\ntie-right x y if 1\n" };
    enum { TIES = sizeof ties / sizeof *ties };
    enum { NAMES = sizeof names / sizeof *names, NUMBERS = sizeof numbers / sizeof *numbers };
    enum { OPERATIONS = sizeof operations / sizeof *operations };
    size_t len = put(text, 0, most, "map t\ntitle t\nfrom x\nto y\n");
    for (uint32_t i = fuzz_next(s) % 4 + 1; i--;) {
        len = put(text, len, most, names[fuzz_next(s) % NAMES]);
        for (uint32_t k = fuzz_next(s) % 4, first = 1; k--; first = 0) {
            len = put(text, len, most, first ? " : " : "; ");
            len = put(text, len, most, operations[fuzz_next(s) % OPERATIONS]);
            for (uint32_t n = fuzz_next(s) % 4; n--;) {
                len = put(text, len, most, " ");
                len = put(text, len, most, numbers[fuzz_next(s) % NUMBERS]);
            }
        }
        len = put(text, len, most, "\n");
    }
    return put(text, len, most, ties[fuzz_next(s) % TIES]);
}

/* ---- models ---- */

static void read_all(const heft_file *f, fuzz_script *s)
{
    for (uint32_t id = 0; id < heft_tensor_count(f) && id < 64; id++) {
        heft_tensor t = heft_tensor_at(f, id);
        for (uint32_t i = 0; i < t.part_count; i++)
            fuzz_require_sections(f, t.first_part + i, s);
    }
}

static heft_file *apply(const heft_map *m, const heft_file *f, heft_map_direction direction,
                        fuzz_script *s)
{
    heft_map_options opt = HEFT_MAP_OPTIONS_INIT;
    heft_error err = fuzz_no_error();
    heft_file *out = NULL;
    opt.direction = direction;
    opt.allow_unmatched = fuzz_next(s) % 2;
    heft_status st = heft_map_apply(&out, m, f, &opt, &err);
    fuzz_require_error(st, &err);
    fuzz_require(st ? !out : out != NULL);
    if (out)
        read_all(out, s);
    return out;
}

static void try_map(heft_str text, const heft_host *host, fuzz_script *s)
{
    uint8_t model[MODEL];
    heft_error err = fuzz_no_error();
    heft_map *m = NULL;
    heft_status st = heft_map_parse(&m, text, host, &err);
    fuzz_require_error(st, &err);
    make_model(model);
    heft_file *f = st ? NULL : fuzz_open_model(host, model, sizeof model);
    heft_file *there = f ? apply(m, f, HEFT_MAP_FORWARD, s) : NULL;
    heft_file *back = there ? apply(m, there, HEFT_MAP_INVERSE, s) : NULL;
    heft_file_close(back);
    heft_file_close(there);
    heft_file_close(f);
    heft_map_close(m);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    char rules[2048];
    fuzz_memory m;
    fuzz_memory_init(&m, UINT32_MAX);
    size_t len = make_rules(rules, sizeof rules, s);
    try_map((heft_str){ rules, len }, &m.host, s);
    try_map((heft_str){ (const char *)data, size }, &m.host, s);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 80 };
