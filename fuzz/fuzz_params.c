/* fuzz_params.c - fuzzes the parameter store: a program of calls on the parameters of a model.  The
 * store gives the bytes of the file, counts what is in memory, and keeps to the budget once nothing
 * is held. */
#include <string.h>

#include <heft/params.h>

#include "fuzz.h"

enum { MAX_HELD = 64, CALLS = 48 };

typedef struct program {
    heft_params *store;
    heft_file *model; /* a second opening of the file, to compare */
    heft_id128 held[MAX_HELD], pinned[MAX_HELD], forms[MAX_HELD];
    uint32_t held_count, pinned_count, form_count;
    uint64_t form_kind;
} program;

static void check_bytes(const program *p, const heft_param *param, heft_id128 key)
{
    heft_array a;
    heft_str name = heft_params_name(p->store, key);
    fuzz_require(name.ptr);
    fuzz_require(!heft_array_read(&a, p->model, name, HEFT_UNTYPED, NULL, 0, NULL));
    fuzz_require(a.bytes == param->bytes && a.rank == param->rank && a.dtype == param->dtype);
    fuzz_require(!a.bytes || !memcmp(a.data, param->data, (size_t)a.bytes));
    heft_array_free(&a);
}

static void acquire(program *p, heft_id128 key)
{
    heft_param param;
    heft_error err = fuzz_no_error();
    if (p->held_count == MAX_HELD)
        return;
    heft_status st = heft_params_acquire(&param, p->store, key, &err);
    fuzz_require_error(st, &err);
    if (st)
        return;
    check_bytes(p, &param, key);
    p->held[p->held_count++] = key;
}

static void resolve(program *p, heft_id128 key)
{
    heft_derivation d = heft_derivation_f32();
    heft_param param;
    heft_error err = fuzz_no_error();
    if (p->form_count == MAX_HELD)
        return;
    p->form_kind = d.kind;
    heft_status st = heft_params_resolve(&param, p->store, key, &d, &err);
    fuzz_require_error(st, &err);
    if (st)
        return;
    fuzz_require(param.dtype == HEFT_F32);
    p->forms[p->form_count++] = key;
}

static void pin(program *p, heft_id128 key)
{
    heft_error err = fuzz_no_error();
    if (p->pinned_count == MAX_HELD)
        return;
    heft_status st = heft_params_pin(p->store, key, &err);
    fuzz_require_error(st, &err);
    if (!st)
        p->pinned[p->pinned_count++] = key;
}

static void release(program *p)
{
    if (p->held_count)
        heft_params_release(p->store, p->held[--p->held_count]);
}

static void unpin(program *p)
{
    if (p->pinned_count)
        heft_params_unpin(p->store, p->pinned[--p->pinned_count]);
}

static void release_form(program *p)
{
    if (p->form_count)
        heft_params_release_form(p->store, p->forms[--p->form_count], p->form_kind);
}

static void call(program *p, fuzz_script *s)
{
    uint32_t what = fuzz_next(s) % 8, count = heft_params_count(p->store);
    heft_id128 key = heft_params_key_at(p->store, count ? fuzz_next(s) % (count + 1) : 0);
    if (what < 2)
        acquire(p, key);
    else if (what == 2)
        resolve(p, key);
    else if (what == 3)
        pin(p, key);
    else if (what == 4)
        unpin(p);
    else if (what == 5)
        release_form(p);
    else
        release(p);
    heft_params_stats stats = heft_params_statistics(p->store);
    fuzz_require(stats.resident <= stats.peak);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    program p = { .store = NULL };
    heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
    heft_id128 space;
    fuzz_memory_init(&m, UINT32_MAX);
    p.model = fuzz_open_model(&m.host, data, size);
    heft_file *f = p.model ? fuzz_open_model(&m.host, data, size) : NULL;
    opt.host = &m.host;
    opt.budget = fuzz_next(s) * UINT64_C(8);
    opt.copy = fuzz_next(s) % 2;
    opt.check_parts = fuzz_next(s) % 2;
    if (f) {
        fuzz_require(!heft_params_open(&p.store, &opt, NULL));
        bool is_added = !heft_params_add(&space, p.store, f, NULL);
        for (uint32_t i = 0; is_added && i < CALLS; i++)
            call(&p, s);
        while (p.held_count || p.pinned_count || p.form_count) {
            release(&p);
            unpin(&p);
            release_form(&p);
        }
        fuzz_require(!opt.budget || heft_params_statistics(p.store).resident <= opt.budget);
        heft_params_close(p.store);
    }
    heft_file_close(p.model);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 32, .takes_models = true };
