/* zt_parts.c - footer, manifest items and components, as zTensor 0.1 to 1.2 share them. */
#include "format/ztensor/ztensor.h"

enum { LENGTH = 8, MAGIC = HEFT_ZT_MAGIC, DEPTH = 128 };

void heft_zt_omit(heft_index *x, const char *rule, uint64_t at, uint32_t tensor,
                  const char *omitted, const char *text)
{
    heft_ix_omit(x, HEFT_WARNING, rule, (heft_str){ NULL, 0 }, omitted);
    heft_ix_note(x, HEFT_WARNING, rule, at, tensor, text);
}

/* ---- the manifest ---- */

heft_status heft_zt_find_manifest(heft_window *in, heft_index *x, heft_range *out, bool *is_10)
{
    uint64_t end = in->size;
    if (end < MAGIC + LENGTH)
        return heft_error_set(x->err, HEFT_E_FORMAT, end,
                              "file has %U bytes, but header and footer take at least 16", end);
    heft_cur c = heft_cur_open(in, end - LENGTH, LENGTH, "the footer");
    const uint8_t *last = heft_cur_take(&c, LENGTH);
    if (!last)
        return c.st;
    *is_10 = memcmp(last, "ZTEN1000", MAGIC) != 0;
    if (!*is_10) {
        end -= MAGIC;
        c = heft_cur_open(in, end - LENGTH, LENGTH, "the footer");
        last = heft_cur_take(&c, LENGTH);
        if (!last)
            return c.st;
    }
    uint64_t at = end - LENGTH, length = heft_le64(last);
    if (at < MAGIC || length > at - MAGIC)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "manifest has a stated length of %U bytes, but at most %U fit",
                              length, at < MAGIC ? 0 : at - MAGIC);
    *out = (heft_range){ at - length, length };
    x->data_start = MAGIC;
    x->data_end = out->offset;
    return HEFT_OK;
}

heft_status heft_zt_open_manifest(heft_cbor *c, heft_window *in, heft_index *x, heft_range where)
{
    heft_cur cur = heft_cur_whole(in, where.offset, where.length, "the manifest");
    const uint8_t *data = heft_cur_take(&cur, where.length);
    if (cur.st)
        return cur.st;
    *c = heft_cbor_open(data, (size_t)where.length, where.offset,
                        x->limits.depth < DEPTH ? x->limits.depth : (uint32_t)DEPTH, &x->arena,
                        x->err);
    return HEFT_OK;
}

heft_status heft_zt_check_depth(const heft_cbor *c, heft_status st)
{
    if (st != HEFT_E_LIMIT || c->st != st || c->max_depth < DEPTH)
        return st;
    return heft_error_set(c->err, HEFT_E_FORMAT, heft_cbor_offset(c, c->item),
                          "manifest is nested deeper than 128 levels, the limit of zTensor 1");
}

heft_status heft_zt_close_manifest(heft_cbor *c)
{
    if (!c->st && c->p < c->end) {
        c->item = c->p;
        return heft_cbor_fail(c, "%U bytes follow the manifest's only item",
                              (uint64_t)(c->end - c->p));
    }
    return c->st;
}

/* ---- items ---- */

heft_status heft_zt_skip_value(heft_cbor *c, heft_cbor_kind k, heft_zt_item *out)
{
    out->from = c->item;
    heft_status st = heft_cbor_skip(c, k);
    out->to = c->p;
    return st;
}

heft_cbor heft_zt_reopen(const heft_cbor *c, heft_zt_item item)
{
    return heft_cbor_open(item.from, (size_t)(item.to - item.from), heft_cbor_offset(c, item.from),
                          c->max_depth, c->arena, c->err);
}

heft_status heft_zt_expect_u64(heft_cbor *c, heft_cbor_kind k, const char *what, uint64_t *out)
{
    if (!c->st && !heft_cbor_u64(out, c, k))
        return heft_cbor_fail(c, "%s is not an unsigned 64-bit integer", what);
    return c->st;
}

heft_status heft_zt_expect_text(heft_cbor *c, heft_cbor_kind k, const char *what, heft_str *out)
{
    *out = c->str;
    return c->st || k == HEFT_CBOR_TEXT ? c->st : heft_cbor_fail(c, "%s is not a text", what);
}

heft_status heft_zt_read_encoding(heft_cbor *c, heft_cbor_kind k, bool *is_zstd)
{
    heft_str name;
    *is_zstd = false;
    if (c->st || k == HEFT_CBOR_NULL)
        return c->st;
    HEFT_TRY(heft_zt_expect_text(c, k, "encoding", &name));
    *is_zstd = heft_str_is(name, "zstd");
    if (!*is_zstd && !heft_str_is(name, "raw"))
        return heft_cbor_fail(c, "encoding %q is neither \"raw\" nor \"zstd\"", name);
    return HEFT_OK;
}

heft_status heft_zt_read_shape(heft_cbor *c, heft_cbor_kind k, heft_index *x)
{
    if (k != HEFT_CBOR_ARRAY)
        return heft_cbor_fail(c, "shape is not an array");
    while ((k = heft_cbor_next(c)) != HEFT_CBOR_ARRAY_END) {
        uint64_t dim;
        HEFT_TRY(heft_zt_expect_u64(c, k, "a dimension", &dim));
        HEFT_TRY(heft_ix_dim(x, dim));
    }
    return HEFT_OK;
}

uint32_t heft_zt_field(heft_cbor *c, heft_cbor_kind k, const heft_zt_fields *f, uint32_t *seen,
                       bool *packed)
{
    enum { PACKED = 4 };
    if (c->st || (k != HEFT_CBOR_TEXT && k != HEFT_CBOR_UINT)) {
        heft_cbor_fail(c, "a key in %s is not a text", f->map_name);
        return f->count;
    }
    uint32_t i = 0;
    if (k == HEFT_CBOR_UINT) {
        *packed = true;
        i = c->u < PACKED ? (uint32_t)c->u : f->count;
    } else {
        while (i < f->count && !heft_str_is(c->str, f->names[i]))
            i++;
    }
    uint32_t bit = i < f->count ? 1u << i : 0;
    if (*seen & bit)
        heft_cbor_fail(c, "\"%s\" occurs twice in %s", f->names[i], f->map_name);
    *seen |= bit;
    return i;
}

/* ---- components ---- */

static heft_status fail(heft_index *x, uint32_t tensor, const heft_zt_part *p, const char *what)
{
    return heft_error_set(x->err, HEFT_E_FORMAT, p->at, "tensor %q, component %q: %s",
                          heft_ix_name(x, tensor), p->role, what);
}

static bool is_dense_data(const heft_ix_tensor_row *row, const heft_zt_part *p)
{
    return row->layout == HEFT_DENSE && heft_str_is(p->role, "data");
}

/* Set the decoded length: the length required by the layout, otherwise the length stated by the
 * manifest. */
static heft_status resolve_length(heft_index *x, uint32_t tensor, const heft_zt_part *p,
                                  uint64_t *length)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    const uint64_t *dims = heft_ix_dims(x, tensor);
    uint64_t n;
    bool fits = true;
    *length = p->decoded;
    if (is_dense_data(row, p))
        fits = heft_product(&n, dims, row->rank) && heft_dtype_bytes(length, p->dtype, n);
    else if (row->layout == HEFT_SPARSE_CSR && row->rank && heft_str_is(p->role, "indptr"))
        fits = heft_add(&n, dims[0], 1) && heft_mul(length, n, heft_dtype_size(p->dtype));
    if (!fits)
        return fail(x, tensor, p, "shape overflows 64 bits");
    if (p->decoded != HEFT_UNKNOWN_LENGTH && p->decoded != *length)
        return heft_error_set(
            x->err, HEFT_E_FORMAT, p->at,
            "tensor %q, component %q: stated decoded length is %U bytes, but its shape needs %U",
            heft_ix_name(x, tensor), p->role, p->decoded, *length);
    return HEFT_OK;
}

/* Register the digest for checking: "crc32c:0x1A2B3C4D", or "sha256:" and 64 digits. Digests of
 * other algorithms are reported as unknown. */
static heft_status add_digest(heft_index *x, uint32_t tensor, const heft_zt_part *p)
{
    static const struct {
        const char *begins, *algorithm;
    } known[] = { { "crc32c:0x", "crc32c" }, { "sha256:", "sha256" } };
    uint32_t part = x->parts.len - 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!heft_str_begins(p->digest, known[i].begins))
            continue;
        heft_status st = heft_ix_digest(x, part, "ztensor/digest", known[i].algorithm, p->digest,
                                        heft_lit(known[i].begins).len, false);
        return st == HEFT_E_FORMAT
                   ? heft_error_set(x->err, st, p->at,
                                    "tensor %q, component %q: %q is not a %s digest",
                                    heft_ix_name(x, tensor), p->role, p->digest, known[i].algorithm)
                   : st;
    }
    heft_zt_omit(x, "ztensor/digest-unknown", p->at, tensor,
                 "digests of unknown algorithms are left out",
                 "digest of an unknown algorithm was not checked");
    return HEFT_OK;
}

heft_status heft_zt_add_part(heft_index *x, uint32_t tensor, const heft_zt_part *p)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    uint64_t length = p->range.length;
    if (!heft_range_in(p->range, x->file_bytes))
        return fail(x, tensor, p, "data extends past the end of the file");
    if (p->range.length && p->range.offset < x->data_start)
        return fail(x, tensor, p, "data overlaps the header");
    if (p->range.length && p->range.offset + p->range.length > x->data_end)
        return fail(x, tensor, p, "data overlaps the manifest or the footer");
    if (row->part_count >= HEFT_ZT_MAX_PARTS)
        return heft_error_set(x->err, HEFT_E_LIMIT, p->at, "tensor %q: more than %U components",
                              heft_ix_name(x, tensor), (uint64_t)HEFT_ZT_MAX_PARTS);
    if (heft_ix_part_find(x, tensor, p->role) != HEFT_NONE)
        return fail(x, tensor, p, "component occurs twice");
    if (p->is_zstd)
        HEFT_TRY(resolve_length(x, tensor, p, &length));
    if (!p->is_zstd && is_dense_data(row, p))
        HEFT_TRY(heft_ix_dense(x, tensor, p->at, p->range.offset, p->range.length));
    else
        HEFT_TRY(heft_ix_part(x, tensor, p->role, p->dtype, p->range, length,
                              p->is_zstd ? HEFT_ZSTD : HEFT_RAW));
    if (p->is_big_endian)
        heft_ix_part_row_at(x, x->parts.len - 1)->flags |= HEFT_P_BIG_ENDIAN;
    return p->digest.ptr ? add_digest(x, tensor, p) : HEFT_OK;
}

/* ---- layouts ---- */

static bool has_part(const heft_index *x, uint32_t tensor, const char *role)
{
    return heft_ix_part_find(x, tensor, heft_lit(role)) != HEFT_NONE;
}

heft_status heft_zt_check_layout(heft_index *x, uint32_t tensor, uint64_t at)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    const char *reason = NULL;
    if (row->layout == HEFT_DENSE && !has_part(x, tensor, "data"))
        reason = "dense tensor without the component \"data\"";
    else if (row->layout == HEFT_SPARSE_CSR &&
             !(has_part(x, tensor, "values") && has_part(x, tensor, "indices") &&
               has_part(x, tensor, "indptr")))
        reason = "sparse_csr needs the components \"values\", \"indices\" and \"indptr\"";
    else if (row->layout == HEFT_SPARSE_CSR && row->rank != 2)
        reason = "sparse_csr needs exactly two dimensions";
    else if (row->layout == HEFT_SPARSE_COO &&
             !(has_part(x, tensor, "values") && has_part(x, tensor, "coords")))
        reason = "sparse_coo needs the components \"values\" and \"coords\"";
    if (reason)
        return heft_error_set(x->err, HEFT_E_FORMAT, at, "tensor %q: %s", heft_ix_name(x, tensor),
                              reason);
    if (row->layout == HEFT_DENSE && row->part_count > 1)
        heft_ix_note(x, HEFT_WARNING, "ztensor/dense-component", at, tensor,
                     "dense tensor has components other than \"data\", which readers ignore");
    if (row->layout == HEFT_SPARSE_COO && !row->rank)
        heft_ix_note(x, HEFT_WARNING, "ztensor/coo-rank", at, tensor,
                     "scalar is stored as sparse_coo, so its entries have no coordinates");
    return HEFT_OK;
}
