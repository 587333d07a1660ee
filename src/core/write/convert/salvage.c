/* salvage.c - writes the intact tensors of a damaged file. */
#include <heft/doctor.h>

#include "base/error.h"

typedef struct salvage {
    const heft_doctor *d;
    heft_progress_fn progress; /* progress of the caller */
    void *ctx;
} salvage;

static bool keep_intact(void *ctx, const heft_tensor *t)
{
    const heft_doctor *d = ((const salvage *)ctx)->d;
    return !heft_doctor_is_lost(d, heft_tensor_find(heft_doctor_file(d), t->name));
}

static bool report_progress(void *ctx, uint64_t done, uint64_t total)
{
    const salvage *s = ctx;
    return s->progress(s->ctx, done, total);
}

heft_status heft_doctor_salvage(const heft_doctor *d, const heft_format *to, heft_sink *take,
                                const heft_write_options *write, heft_progress_fn progress,
                                void *progress_ctx, heft_error *err)
{
    heft_doctor_summary summary;
    salvage s = { d, progress, progress_ctx };
    heft_convert_options o = HEFT_CONVERT_OPTIONS_INIT;
    heft_doctor_summarize(&summary, d);
    if (!summary.can_salvage) {
        heft_sink_discard(take);
        return heft_error_plain(err, HEFT_E_FORMAT, "no tensor of the file can be salvaged");
    }
    o.write = write;
    o.keep = keep_intact;
    o.ctx = &s;
    o.exact_metadata = true;
    o.no_verify = true; /* the missing bytes of a checksum read as zeros */
    o.progress = progress ? report_progress : NULL;
    return heft_file_convert(heft_doctor_file(d), to, take, &o, err);
}
