/* doctor_forgiving.c - opens a file that breaks the rules of its format, although the index clearly
 * names the bytes of each tensor: parsers pass over such errors (heft_ix_forgive()), and zeros
 * after the end of the content are cut off. */
#include "base/error.h"
#include "core/check/diagnosis.h"
#include "core/read/file.h"

#include <string.h>

static heft_source *from_of(heft_source *s)
{
    return ((heft_padded_source *)s)->from;
}

static heft_status read_padded(heft_source *s, uint64_t offset, void *buf, size_t len,
                               heft_error *err)
{
    heft_source *from = from_of(s);
    uint64_t left = offset < from->size ? from->size - offset : 0;
    size_t present = left < len ? (size_t)left : len;
    if (present < len)
        memset((uint8_t *)buf + present, 0, len - present);
    return present ? from->ops->read(from, offset, buf, present, err) : HEFT_OK;
}

static const void *map_padded(heft_source *s, uint64_t offset, uint64_t len)
{
    heft_source *from = from_of(s);
    bool is_padded = s->size != from->size;
    return !is_padded && HEFT_HAS(from->ops, map) ? from->ops->map(from, offset, len) : NULL;
}

static heft_status check_padded(heft_source *s, heft_error *err)
{
    heft_source *from = from_of(s);
    return HEFT_HAS(from->ops, check) ? from->ops->check(from, err) : HEFT_OK;
}

static void begin_inner_access(heft_source *s)
{
    heft_source *from = from_of(s);
    if (HEFT_HAS(from->ops, begin_access))
        from->ops->begin_access(from);
}

static void end_inner_access(heft_source *s)
{
    heft_source *from = from_of(s);
    if (HEFT_HAS(from->ops, end_access))
        from->ops->end_access(from);
}

static heft_status check_unchanged(heft_source *s, heft_error *err)
{
    heft_source *from = from_of(s);
    return HEFT_HAS(from->ops, check_unchanged) ? from->ops->check_unchanged(from, err) : HEFT_OK;
}

static void close_padded(heft_source *s)
{
    (void)s;
}

static const heft_source_ops padded_ops = { .size = sizeof(heft_source_ops),
                                            .read = read_padded,
                                            .map = map_padded,
                                            .check = check_padded,
                                            .begin_access = begin_inner_access,
                                            .end_access = end_inner_access,
                                            .close = close_padded,
                                            .check_unchanged = check_unchanged };

/* Show `from` at `size` bytes, more or fewer than it has.  Both objects stay with the caller:
 * closing the source does nothing. */
static heft_padded_source padded_source_of(heft_source *from, uint64_t size)
{
    return (heft_padded_source){ { &padded_ops, size }, from };
}

/* Return the size without zeros of a padded source, or the size of any other source. */
static uint64_t padded_present(heft_source *s)
{
    return s->ops == &padded_ops && from_of(s)->size < s->size ? from_of(s)->size : s->size;
}

static const char rewrite[] = "the tensors are whole: write them to a new file, which follows the "
                              "rules ('heft doctor FILE -o OUT')";

static heft_status step_forgiving(heft_file *f, heft_error *err)
{
    f->x.forgives = true;
    f->x.present = padded_present(f->source);
    return heft_file_step(f, err);
}

heft_status heft_doctor_open_at(heft_doctor *d, uint64_t size, const heft_open_options *opt,
                                heft_error *err)
{
    d->view = padded_source_of(d->source, size);
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
