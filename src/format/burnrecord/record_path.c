/* record_path.c - dotted names of values: the fields of all enclosing modules. */
#include "format/burnrecord/burnrecord.h"

heft_status heft_record_no_memory(const heft_record *r)
{
    return heft_error_no_memory(r->x->err, "for the names of a record");
}

static heft_status put(heft_record *r, heft_str s)
{
    if (s.len > UINT32_MAX || !heft_vec_reserve(&r->x->mem, &r->path, (uint64_t)s.len + 1, 1))
        return heft_record_no_memory(r);
    if (s.len)
        memcpy((char *)r->path.ptr + r->path.len, s.ptr, s.len);
    r->path.len += (uint32_t)s.len;
    return HEFT_OK;
}

heft_status heft_record_enter(heft_record *r, uint32_t path_len, heft_str name)
{
    r->path.len = path_len;
    if (path_len)
        HEFT_TRY(put(r, heft_lit(".")));
    return put(r, name);
}

heft_status heft_record_charge(heft_record *r, uint64_t bytes, uint64_t at)
{
    if (bytes > r->budget)
        return heft_error_set(r->x->err, HEFT_E_LIMIT, at,
                              "the record: names and metadata take far more memory than the file");
    r->budget -= bytes;
    return HEFT_OK;
}

heft_status heft_record_name(heft_record *r, uint64_t at, const char *fallback, heft_str *out)
{
    heft_str path = { r->path.ptr, r->path.len };
    if (!path.len)
        path = heft_lit(fallback);
    HEFT_TRY(heft_record_charge(r, path.len, at));
    *out = heft_ix_copy(r->x, path);
    return out->ptr ? HEFT_OK : heft_record_no_memory(r);
}
