/* fuzz_memory.c - fuzzes failing allocations: from a request of the script's choice on, memory is
 * out while a file is opened, verified, read, edited and converted.  Every call ends, reports
 * HEFT_E_NOMEM, and nothing leaks. */
#include <stdlib.h>

#include <heft/check.h>
#include <heft/editing.h>

#include "fuzz_request.h"

static void check_status(const fuzz_memory *m, heft_status st, const heft_error *err)
{
    fuzz_require_error(st, err);
    fuzz_require(st != HEFT_E_NOMEM || m->has_failed);
}

static void convert(fuzz_memory *m, const heft_file *in, fuzz_script *s)
{
    const heft_format *to = fuzz_writable(fuzz_next(s));
    fuzz_request r;
    fuzz_bytes bytes = { .ptr = NULL };
    heft_error err = fuzz_no_error();
    fuzz_request_init(&r, &m->host, to, s);
    heft_status st = heft_file_convert(in, to, fuzz_sink_at(&bytes), &r.opt, &err);
    check_status(m, st, &err);
    free(bytes.ptr);
}

static void edit(fuzz_memory *m, const heft_file *f)
{
    heft_value set = { .kind = HEFT_KIND_STR, .key = heft_str_from("added") };
    heft_edit_options opt = HEFT_EDIT_OPTIONS_INIT;
    heft_edit *plan = NULL;
    heft_error err = fuzz_no_error();
    set.as.s = heft_str_from("text");
    opt.host = &m->host;
    opt.set = &set;
    opt.set_count = 1;
    heft_status st = heft_edit_plan(&plan, f, &opt, &err);
    check_status(m, st, &err);
    heft_edit_close(plan);
}

static void read_tensors(fuzz_memory *m, const heft_file *f)
{
    for (uint32_t id = 0; id < heft_tensor_count(f); id++) {
        heft_array a;
        heft_error err = fuzz_no_error();
        heft_status st = heft_array_read(&a, f, heft_tensor_at(f, id).name, HEFT_F32, NULL, 0,
                                         &err);
        check_status(m, st, &err);
        heft_array_free(&a);
    }
}

static void verify(fuzz_memory *m, const heft_file *f)
{
    heft_error err = fuzz_no_error();
    heft_status st = heft_file_verify(NULL, f, NULL, &err);
    check_status(m, st, &err);
}

static void use(fuzz_memory *m, const heft_file *f, fuzz_script *s)
{
    uint32_t what = fuzz_next(s) % 8;
    if (what == 0)
        verify(m, f);
    else if (what == 1)
        read_tensors(m, f);
    else if (what == 2)
        edit(m, f);
    else
        convert(m, f, s);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    uint32_t left = fuzz_next(s), is_open = fuzz_next(s) % 8;
    fuzz_memory_init(&m, is_open ? UINT32_MAX : left);
    heft_file *f = fuzz_open_model(&m.host, data, size);
    m.left = left;
    if (f)
        use(&m, f, s);
    heft_file_close(f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = FUZZ_SCRIPT, .takes_models = true };
