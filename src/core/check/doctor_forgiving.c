/* doctor_forgiving.c - opens a file that breaks the rules of its format, although the index clearly
 * names the bytes of each tensor: parsers pass over such errors (heft_ix_forgive()), and zeros
 * after the end of the content are cut off. */
#include "base/error.h"
#include "core/check/byte_survey.h"
#include "core/check/diagnosis.h"
#include "core/read/open_file.h"

static const char rewrite[] = "the tensors are whole: write them to a new file, which follows the "
                              "rules ('heft doctor FILE -o OUT')";

static heft_status step_forgiving(heft_file *f, heft_error *err)
{
    f->x.forgives = true;
    f->x.present = heft_padded_present(f->source);
    return heft_file_step(f, err);
}

heft_status heft_doctor_open_at(heft_doctor *d, uint64_t size, const heft_open_options *opt,
                                heft_error *err)
{
    d->view = heft_padded_source_of(d->source, size);
    return heft_file_open_one(&d->file, &d->view.base, opt,
                              d->forgives ? step_forgiving : heft_file_step, err);
}

void heft_doctor_add_forgiven(heft_doctor *d)
{
    const heft_note *notes = d->file->x.notes.ptr;
    for (uint32_t i = 0; i < d->file->x.notes.len; i++) {
        heft_doctor_row row = { HEFT_FAULT, HEFT_NONE, notes[i].rule, NULL, NULL, notes[i].where };
        bool is_padding = notes[i].where.offset != HEFT_NOWHERE &&
                          notes[i].where.offset >= d->source->size; /* the file is truncated */
        if (notes[i].severity != HEFT_FAULT || is_padding)
            continue;
        row.advice = d->lost_count || d->file->x.left_out ? NULL : rewrite;
        heft_doctor_add(d, row, "%s", notes[i].text);
    }
}

/* Try the sizes without zeros at the end.  The content may end with a few zeros of a number. */
static heft_status cut_zeros(heft_doctor *d, const heft_open_options *o, heft_error *err)
{
    enum { OF_NUMBER = 8 };
    heft_error ignored;
    uint64_t from, size = d->source->size;
    heft_status st = heft_find_zero_tail(&from, d->source, d->host->allocator, err);
    uint64_t end = from;
    for (; !st && !d->file && end < size && end - from <= OF_NUMBER; end++)
        if (heft_doctor_open_at(d, end, o, &ignored) == HEFT_E_NOMEM)
            st = heft_error_no_memory(err, "to examine the file");
    if (st || !d->file)
        return st;
    heft_doctor_row row = { HEFT_FAULT, HEFT_NONE, "trailing-bytes",
                            NULL,       rewrite,   { end - 1, size - end + 1 } };
    heft_doctor_add(d, row, "%U zero bytes follow the end of the content", size - end + 1);
    return HEFT_OK;
}

heft_status heft_doctor_open_forgiving(heft_doctor *d, heft_error *why, heft_error *err)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    o.host = d->host;
    if (why->status != HEFT_E_FORMAT)
        return HEFT_OK;
    d->forgives = true;
    heft_status st = heft_doctor_open_at(d, d->source->size, &o, why);
    if (st && st != HEFT_E_FORMAT && st != HEFT_E_CHECKSUM) {
        *err = *why;
        return st;
    }
    if (st && why->expected_bytes <= d->source->size)
        st = cut_zeros(d, &o, err);
    else
        st = HEFT_OK;
    if (!st && d->file)
        heft_doctor_add_forgiven(d);
    return st;
}
