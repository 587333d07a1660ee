/* fuzz_doctor.c - fuzzes the diagnosis of damaged files: any bytes have a diagnosis, and salvaged
 * tensors form a sound file. */
#include <stdlib.h>

#include <heft/doctor.h>
#include <heft/write.h>

#include "fuzz.h"

static void check_diagnoses(const heft_doctor *d, const heft_doctor_summary *summary)
{
    uint32_t count = heft_diagnosis_count(d);
    for (uint32_t i = 0; i < count; i++) {
        heft_diagnosis x = heft_diagnosis_at(d, i);
        fuzz_require(*x.kind && *x.text && (!x.advice || *x.advice));
        fuzz_require(x.tensor == HEFT_NONE || x.tensor < summary->tensors);
    }
    fuzz_require(count || !(summary->faults || summary->warnings));
    fuzz_require(summary->lost <= summary->tensors);
    fuzz_require(!summary->lost || summary->faults);
}

static void salvage(const heft_doctor *d, const heft_doctor_summary *summary)
{
    fuzz_bytes out = { NULL, 0, 0 };
    heft_error err = fuzz_no_error();
    heft_write_options w = HEFT_WRITE_OPTIONS_INIT;
    heft_file *f = NULL;
    w.allow_loss = true;
    heft_status st = heft_doctor_salvage(d, heft_format_find(HEFT_STR("safetensors")),
                                         fuzz_sink(&out), &w, NULL, NULL, &err);
    fuzz_require_error(st, &err);
    fuzz_require(st || summary->can_salvage);
    if (!st) {
        fuzz_require(!fuzz_open(&f, out.ptr, out.len, NULL));
        fuzz_require(heft_tensor_count(f) <= summary->tensors - summary->lost);
        fuzz_require(!fuzz_faults(f));
    }
    heft_file_close(f);
    free(out.ptr);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    heft_source *source;
    heft_doctor *d;
    heft_doctor_summary summary;
    heft_error err = fuzz_no_error();
    heft_doctor_options o = HEFT_DOCTOR_OPTIONS_INIT;
    size_t cut = fuzz_next(s) % 2 ? size * fuzz_next(s) / 256 : size;
    fuzz_memory_init(&m, UINT32_MAX);
    o.host = &m.host;
    fuzz_require(!heft_source_open_memory(&source, data, cut, NULL));
    heft_status st = heft_doctor_open(&d, source, &o, &err);
    fuzz_require_error(st, &err);
    if (!st) {
        heft_doctor_summarize(&summary, d);
        check_diagnoses(d, &summary);
        if (!heft_doctor_file(d) || fuzz_is_small(heft_doctor_file(d)))
            salvage(d, &summary);
    }
    heft_doctor_close(d);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 2, .takes_models = true };
