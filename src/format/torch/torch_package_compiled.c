/* torch_package_compiled.c - the weights that AOTInductor keeps beside the code of a model.
 *
 *   data/aotinductor/MODEL/weights_config.json   {NAME: [FILE, shape, strides, offset], ...}
 *   data/weights/FILE                            torch.save() of one tensor, with a whole storage
 *
 * Shape, strides and offset are those of a view of that storage. */
#include "format/torch/torch_package.h"

typedef struct reader {
    heft_json j;
    heft_torch_package *p;
    heft_vec sizes, strides; /* uint64_t */
    heft_str name, file;
    uint64_t at, first;
} reader;

/* ---- files ---- */

static heft_status open_saved(const reader *r, uint32_t i)
{
    heft_torch_package *p = r->p;
    const heft_zip_entry *e = p->members[i];
    heft_torch t;
    HEFT_TRY(heft_torch_package_open(&t, p, e));
    heft_status st = heft_torch_open_single(&t, &p->saved[i].tensor);
    p->saved[i].is_big_endian = t.is_big_endian;
    heft_pickle_free(&t.p);
    if (st == HEFT_AGAIN) { /* let other members say what they need */
        p->saved[i].tensor.storage = NULL;
        p->lacks_bytes = true;
        return HEFT_OK;
    }
    return st ? heft_error_in(t.x->err, st, e->name)
              : heft_torch_checksum(&p->t, e, HEFT_NONE, false);
}

static heft_status add_view(heft_torch *t, heft_str name, const heft_torch_stated *view)
{
    const heft_torch_storage *s = view->storage;
    bool is_first = s->first_tensor == HEFT_NONE;
    heft_zip_entry e = { .data = s->offset, .stored = s->stored, .crc = s->crc };
    e.method = s->is_deflated ? HEFT_ZIP_DEFLATED : HEFT_ZIP_STORED;
    HEFT_TRY(heft_torch_add_stated(t, name, view));
    return is_first ? heft_torch_checksum(t, &e, s->first_tensor, false) : HEFT_OK;
}

static heft_status add(reader *r)
{
    heft_torch_package *p = r->p;
    heft_torch *t = &p->t;
    const heft_torch_storage *s = heft_torch_storage_find(t, r->file);
    if (!s)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, r->at,
                              "tensor %q: the package has no member %q in data/weights/", r->name,
                              r->file);
    uint32_t i = (uint32_t)(s - t->storages);
    bool is_open = p->is_read[i];
    p->is_read[i] = true;
    if (!is_open)
        HEFT_TRY(open_saved(r, i));
    heft_torch_stated view = p->saved[i].tensor;
    if (!view.storage)
        return HEFT_OK;
    r->name = heft_torch_package_name(p, r->name);
    if (!r->name.ptr)
        return heft_error_no_memory(t->x->err, "for a name");
    view.sizes = r->sizes.ptr;
    view.strides = r->strides.ptr;
    view.rank = r->sizes.len;
    view.first = r->first;
    view.at = r->at;
    bool is_big_endian = t->is_big_endian;
    t->is_big_endian = p->saved[i].is_big_endian;
    heft_status st = add_view(t, r->name, &view);
    t->is_big_endian = is_big_endian;
    return st;
}

/* ---- reading ---- */

static heft_status read_numbers(reader *r, heft_vec *to, const char *what)
{
    uint64_t n;
    heft_json_kind k = heft_json_next(&r->j);
    if (k != HEFT_JSON_ARRAY)
        return heft_json_fail(&r->j, "tensor %q: %s are not a list", r->name, what);
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_NUMBER && heft_json_u64(&n, r->j.text))
        if (!heft_vec_add(&r->p->t.x->mem, to, &n, sizeof n))
            return heft_error_no_memory(r->p->t.x->err, "for a shape");
    return k == HEFT_JSON_ARRAY_END
               ? HEFT_OK
               : heft_json_fail(&r->j, "tensor %q: %s are not non-negative integers", r->name,
                                what);
}

static heft_status read_tensor(reader *r)
{
    r->name = r->j.text;
    r->at = r->j.base + (uint64_t)(r->j.token - r->j.start);
    r->sizes.len = r->strides.len = 0;
    if (heft_json_next(&r->j) != HEFT_JSON_ARRAY || heft_json_next(&r->j) != HEFT_JSON_STRING)
        return heft_json_fail(&r->j, "tensor %q: not a list that begins with a file", r->name);
    r->file = r->j.text;
    HEFT_TRY(read_numbers(r, &r->sizes, "dimensions"));
    HEFT_TRY(read_numbers(r, &r->strides, "strides"));
    if (heft_json_next(&r->j) != HEFT_JSON_NUMBER || !heft_json_u64(&r->first, r->j.text) ||
        heft_json_next(&r->j) != HEFT_JSON_ARRAY_END)
        return heft_json_fail(&r->j, "tensor %q: the list does not end with an offset", r->name);
    if (r->sizes.len != r->strides.len)
        return heft_json_fail(&r->j, "tensor %q: %U dimensions, but %U strides", r->name,
                              (uint64_t)r->sizes.len, (uint64_t)r->strides.len);
    return add(r);
}

static heft_status read_config(reader *r)
{
    heft_json_kind k = heft_json_next(&r->j);
    if (k != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "the configuration is not an object");
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY)
        HEFT_TRY(read_tensor(r));
    if (!r->j.st)
        (void)heft_json_next(&r->j);
    return r->j.st;
}

heft_status heft_torch_package_compiled(heft_torch_package *p, const heft_zip_entry *e)
{
    heft_index *x = p->t.x;
    size_t bytes = (p->t.storage_count + (size_t)1) * sizeof *p->saved;
    reader r = { .p = p };
    if (!p->saved) {
        p->saved = heft_arena_alloc(&x->arena, bytes, 8);
        if (!p->saved)
            return heft_error_no_memory(x->err, "for the weights of compiled code");
        memset(p->saved, 0, bytes);
    }
    HEFT_TRY(heft_torch_package_json(&r.j, p, e));
    heft_status st = read_config(&r);
    heft_vec_free(&x->mem, &r.sizes, sizeof(uint64_t));
    heft_vec_free(&x->mem, &r.strides, sizeof(uint64_t));
    return st && st != HEFT_AGAIN ? heft_error_in(x->err, st, e->name) : st;
}
