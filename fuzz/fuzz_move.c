/* fuzz_move.c - fuzzes moving the data of a model to a file and back: sizes are as planned, the
 * files open, and a sound model has the same tensors each time. */
#include <heft/private.h>
#include <heft/source.h>
#include <stdlib.h>

#include "fuzz.h"

typedef struct moved {
    fuzz_bytes model, other;
    heft_move_result result;
} moved;

static heft_status move_data(moved *m, const heft_file *f, const char *location, uint32_t align)
{
    heft_error err = fuzz_no_error();
    heft_move_options o = HEFT_MOVE_OPTIONS_INIT;
    heft_move_result planned;
    o.location = location;
    o.align = align;
    *m = (moved){ .result = { .bytes = 0 } };
    heft_status plan = heft_file_move_data(&planned, f, NULL, NULL, &o, &err);
    fuzz_require_error(plan, &err);
    err = fuzz_no_error();
    heft_status st = heft_file_move_data(&m->result, f, fuzz_sink(&m->model), fuzz_sink(&m->other),
                                         &o, &err);
    fuzz_require_error(st, &err);
    fuzz_require(!plan || st);
    fuzz_require(st || (m->model.len == planned.bytes && m->other.len == planned.other_bytes));
    return st;
}

static heft_status open_other(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    const moved *m = ctx;
    (void)name;
    return heft_source_open_memory(out, m->other.ptr, m->other.len, err);
}

static heft_file *reopen(const moved *m)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_shard_folder folder = { sizeof folder, "m", open_other, (void *)(uintptr_t)m, NULL, NULL };
    heft_file *f;
    o.shards = &folder;
    fuzz_require(!fuzz_open(&f, m->model.ptr, m->model.len, &o));
    return f;
}

static void release(moved *m)
{
    free(m->model.ptr);
    free(m->other.ptr);
}

/* Move the data back, and compare with the first model. */
static void move_back(const heft_file *first, const moved *out, bool is_sound)
{
    moved back;
    heft_file *f = reopen(out), *again;
    if (is_sound)
        fuzz_require_same(first, f);
    heft_status st = move_data(&back, f, NULL, 0);
    fuzz_require(!is_sound || !st);
    if (!st) {
        again = reopen(&back);
        fuzz_require(!back.other.len && !heft_shard_file_count(again));
        if (is_sound)
            fuzz_require_same(first, again);
        heft_file_close(again);
    }
    heft_file_close(f);
    release(&back);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    moved out;
    fuzz_memory_init(&m, UINT32_MAX);
    uint32_t align = fuzz_next(s) % 2 ? 1U << fuzz_next(s) % 13 : 0;
    heft_file *f = fuzz_open_model(&m.host, data, size);
    if (f) {
        bool is_sound = fuzz_is_sound(f);
        heft_status st = move_data(&out, f, "other", align);
        fuzz_require(!is_sound || !st || st == HEFT_E_UNSUPPORTED);
        if (!st)
            move_back(f, &out, is_sound);
        release(&out);
    }
    heft_file_close(f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 2, .takes_models = true };
