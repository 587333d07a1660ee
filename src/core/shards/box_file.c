/* box_file.c - finds the elements of a box that is stored as a file of weights with one tensor. */
#include "core/shards/box_file.h"

#include "base/error.h"
#include "core/read/file.h"
#include "core/read/range_source.h"

static heft_str name_of(const heft_file *f, uint32_t row)
{
    return heft_ix_name(&f->x, ((const heft_ix_assembled *)f->x.assembled.ptr)[row].tensor);
}

static heft_status parse_alone(heft_file *f, heft_error *err)
{
    HEFT_TRY(heft_file_parse(f, err));
    if (f->x.shards.len || f->x.assembled.len)
        return heft_error_plain(err, HEFT_E_FORMAT, "it refers to other files");
    return heft_file_finish(f, err);
}

/* Compare the only tensor with what the index says of the box. */
static bool is_as_stated(const heft_file *item, const heft_index *x, const heft_boxes *b,
                         uint32_t row, uint32_t box)
{
    const heft_ix_assembled *a = (const heft_ix_assembled *)x->assembled.ptr + row;
    const heft_ix_tensor_row *t = heft_ix_row(&item->x, 0);
    const uint64_t *dims = heft_ix_dims(&item->x, 0), *sizes = heft_box_sizes(b, box);
    bool is_same = t->dtype == heft_ix_row(x, a->tensor)->dtype && t->rank == b->rank &&
                   heft_str_eq(heft_ix_stored_dtype(&item->x, 0),
                               heft_ix_stored_dtype(x, a->tensor));
    for (uint32_t i = 0; is_same && i < b->rank; i++)
        is_same = dims[i] == sizes[i];
    return is_same;
}

static heft_status find_elements(uint64_t *offset, const heft_file *item, const heft_file *f,
                                 uint32_t row, uint32_t box, heft_error *err)
{
    heft_boxes b = heft_ix_boxes(&f->x, row);
    const heft_ix_tensor_row *t = heft_ix_row(&item->x, 0);
    if (heft_ix_tensors(&item->x) != 1 || item->x.left_out)
        return heft_error_plain(err, HEFT_E_FORMAT, "it has %U tensors instead of one",
                                (uint64_t)heft_ix_tensors(&item->x) + item->x.left_out);
    if (!is_as_stated(item, &f->x, &b, row, box))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "its tensor is %s with %U dimensions, not of the type and shape "
                                "that the index states",
                                heft_dtype_name(t->dtype), (uint64_t)t->rank);
    const heft_ix_part_row *p = heft_ix_part_row_at(&item->x, t->first_part);
    if (t->layout || t->part_count != 1 || !heft_ix_is_plain(p))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "its tensor is compressed, sparse, strided or byte-swapped");
    *offset = p->offset;
    return HEFT_OK;
}

/* Say where the file is that is not as expected. */
static heft_status report(const heft_file *f, uint32_t row, const heft_ix_box *box, heft_status st,
                          const heft_error *why, heft_error *err)
{
    if (st == HEFT_E_IO || st == HEFT_E_NOMEM || st == HEFT_E_CANCELLED) {
        *err = *why;
        return st;
    }
    bool is_kept = st == HEFT_E_UNSUPPORTED || st == HEFT_E_CHECKSUM || st == HEFT_E_LIMIT;
    heft_error_plain(err, is_kept ? st : HEFT_E_FORMAT,
                     "tensor %q: its piece of %U bytes at offset %U: %s", name_of(f, row),
                     box->length, heft_global_offset_local(&f->x, box->offset), why->message);
    return heft_file_error_at(f, box->offset, err->status, err);
}

/* Find the elements in a file that a source shows; is_compared: compare the checksum, too.  Set
 * *offset to their offset in the file. */
static heft_status open_item(heft_source *s, const heft_file *f, uint32_t row, uint32_t box,
                             bool *is_compared, uint64_t *offset, heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_limits limits = f->x.limits;
    heft_file *item;
    limits.read_counter = NULL;
    opt.host = f->host;
    opt.limits = &limits;
    opt.no_verify = f->no_verify;
    HEFT_TRY(heft_file_open_one(&item, s, &opt, parse_alone, err));
    heft_status st = find_elements(offset, item, f, row, box, err);
    if (!st && is_compared)
        st = heft_part_verify(is_compared, item, heft_ix_row(&item->x, 0)->first_part, err);
    heft_file_close(item);
    return st;
}

/* Find the elements in the range of a box, or in its content, which is kept in *decoded. */
static heft_status open_box(const heft_file *f, uint32_t row, uint32_t box, bool *is_compared,
                            heft_decoded_box *decoded, uint64_t *offset, heft_error *err)
{
    const heft_ix_box *at = heft_ix_boxes(&f->x, row).rows + box;
    heft_range_source range;
    heft_error why;
    heft_source *s = heft_range_source_init(&range, f, (heft_range){ at->offset, at->length });
    heft_status st = HEFT_OK;
    if (heft_box_is_zstd(at)) {
        st = heft_decoded_box_open(decoded, f, row, box, &why);
        s = &decoded->base;
    }
    if (!st)
        st = open_item(s, f, row, box, is_compared, offset, &why);
    return st ? report(f, row, at, st, &why, err) : HEFT_OK;
}

heft_status heft_box_open_decoded(heft_decoded_box *out, uint64_t *offset, const heft_file *f,
                                  uint32_t row, uint32_t box, heft_error *err)
{
    return open_box(f, row, box, NULL, out, offset, err);
}

heft_status heft_box_find_elements(uint64_t *offset, const heft_file *f, uint32_t row, uint32_t box,
                                   heft_error *err)
{
    const heft_ix_box *at = heft_ix_boxes(&f->x, row).rows + box;
    *offset = 0;
    if (heft_box_holds(at) == HEFT_BOX_FILE)
        HEFT_TRY(open_box(f, row, box, NULL, NULL, offset, err));
    *offset += at->offset;
    return HEFT_OK;
}

heft_status heft_box_verify(const heft_file *f, uint32_t row, uint32_t box, bool *is_compared,
                            heft_error *err)
{
    bool unused = false;
    const heft_ix_box *at = heft_ix_boxes(&f->x, row).rows + box;
    uint32_t number = heft_global_offset_file(&f->x, at->offset);
    heft_source *s = heft_file_source(f, number);
    uint64_t offset = heft_global_offset_local(&f->x, at->offset);
    is_compared = is_compared ? is_compared : &unused;
    *is_compared = false;
    if (!s || heft_box_holds(at) == HEFT_BOX_PART) /* a missing shard is another finding */
        return HEFT_OK;
    if (!heft_range_in((heft_range){ offset, at->length }, s->size)) {
        heft_error_plain(err, HEFT_E_FORMAT,
                         "tensor %q: its piece of %U bytes at offset %U passes the end of the "
                         "file, %U",
                         name_of(f, row), at->length, offset, s->size);
        return heft_file_error_at(f, at->offset, HEFT_E_FORMAT, err);
    }
    if (heft_box_holds(at) == HEFT_BOX_BYTES)
        return HEFT_OK;
    heft_decoded_box decoded = { .spill = { .host = f->host } };
    heft_status st = open_box(f, row, box, is_compared, &decoded, &offset, err);
    heft_decoded_box_close(&decoded);
    return st;
}
