/* torch_package_config.c - the tensors of a program in a package, since PyTorch 2.9.
 *
 *   {"config": {NAME: {"path_name": a member of the folder, "use_pickle": false, "is_param": bool,
 *                      "tensor_meta": {"dtype": number, "sizes": [{"as_int": n}, ...],
 *                                      "strides": [{"as_int": n}, ...], "layout": 7,
 *                                      "storage_offset": {"as_int": n}, ...}}}}
 *
 * The member is the storage, without a header; several tensors may be views of one storage.  With
 * use_pickle it is a file of torch.save(), or of an object that is not a tensor.
 *
 * Reference: torch/_export/serde/schema.py. */
#include "format/torch/torch_package.h"

enum { STRIDED = 7 };
enum { /* fields */
       PATH = 1,
       PICKLE = 2,
       META = 4,
       DTYPE = 8,
       SIZES = 16,
       STRIDES = 32,
       OFFSET = 64,
       LAYOUT = 128
};
enum { NEEDED = DTYPE | SIZES | STRIDES | OFFSET };

typedef struct reader {
    heft_json j;
    heft_torch_package *p;
    heft_vec sizes, strides; /* uint64_t */
    heft_str name, path;     /* name of the tensor; path: name of the member */
    uint64_t at, dtype, layout, first;
    uint32_t fields;
    bool is_pickled, is_symbolic; /* symbolic: a size is an expression */
} reader;

/* The numbers of element types in the schema. */
static const char *const dtypes[] = {
    [1] = "uint8",
    [2] = "int8",
    [3] = "int16",
    [4] = "int32",
    [5] = "int64",
    [6] = "float16",
    [7] = "float32",
    [8] = "float64",
    [9] = "complex32",
    [10] = "complex64",
    [11] = "complex128",
    [12] = "bool",
    [13] = "bfloat16",
    [28] = "uint16",
    [29] = "float8_e4m3fn",
    [30] = "float8_e5m2",
    [31] = "float8_e4m3fnuz",
    [32] = "float8_e5m2fnuz",
    [33] = "float8_e8m0fnu",
    [34] = "uint32",
    [35] = "uint64",
};

static const heft_torch_type *find_type(uint64_t number)
{
    const char *name = number < sizeof dtypes / sizeof *dtypes ? dtypes[number] : NULL;
    for (size_t i = 0; name && i < HEFT_TORCH_TYPES; i++)
        if (heft_str_is(heft_lit(name), heft_torch_types[i].dtype))
            return &heft_torch_types[i];
    return NULL;
}

/* ---- adding ---- */

static heft_status leave_out(const reader *r, heft_range where, const char *why)
{
    heft_ix_left_out(r->p->t.x, HEFT_LEFT_OUT, "torch/unreadable", where, "%q is left out: %s",
                     r->name, why);
    return HEFT_OK;
}

/* Add the tensors of a file of torch.save().  Each is the file of one name. */
static heft_status add_pickled(const reader *r, uint32_t i)
{
    heft_torch_package *p = r->p;
    bool is_twice = p->is_read[i];
    p->is_read[i] = true;
    if (is_twice)
        return heft_error_set(p->t.x->err, HEFT_E_FORMAT, r->at,
                              "tensor %q: another name has the pickled member %q, too", r->name,
                              r->path);
    if (!(r->fields & META))
        return heft_torch_package_leave_out(p, i, r->name, "an object that is not a tensor");
    return heft_torch_package_saved(p, p->members[i], r->name);
}

/* Leave out, and say why, what has no elements that can be read; else set *type. */
static heft_status judge(const reader *r, const heft_torch_storage *s, const heft_torch_type **type)
{
    const uint64_t *sizes = r->sizes.ptr;
    heft_range where = { r->at, 0 };
    bool is_empty = false;
    for (uint32_t i = 0; i < r->sizes.len; i++)
        is_empty = is_empty || !sizes[i];
    if (r->is_symbolic)
        return leave_out(r, where, "its shape is an expression");
    if ((r->fields & LAYOUT) && r->layout != STRIDED)
        return leave_out(r, where, "it is not dense");
    if (s->is_opaque)
        return leave_out(r, where, "its member is encrypted, or neither stored nor deflated");
    if (!s->bytes && !is_empty)
        return leave_out(r, where, "the package has no bytes of it");
    *type = find_type(r->dtype);
    if (!*type)
        heft_ix_left_out(r->p->t.x, HEFT_LEFT_OUT, "torch/unreadable", where,
                         "%q is left out: element type %U is not known", r->name, r->dtype);
    return HEFT_OK;
}

static heft_status add_raw(const reader *r, heft_torch_storage *s)
{
    const heft_torch_type *type = NULL;
    heft_torch *t = &r->p->t;
    if ((r->fields & NEEDED) != NEEDED || r->sizes.len != r->strides.len)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, r->at,
                              "tensor %q: the element type, the offset, or the sizes or strides of "
                              "a dimension are missing",
                              r->name);
    if (!s->is_located)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, r->at,
                              "tensor %q: the archive ends within the member %q", r->name, s->key);
    HEFT_TRY(judge(r, s, &type));
    if (!type)
        return HEFT_OK;
    heft_torch_stated view = { .storage = s,
                               .type = type,
                               .sizes = r->sizes.ptr,
                               .strides = r->strides.ptr,
                               .rank = r->sizes.len,
                               .first = r->first,
                               .at = r->at };
    return heft_torch_add_stated(t, r->name, &view);
}

static heft_status add(reader *r)
{
    heft_torch_package *p = r->p;
    heft_torch *t = &p->t;
    if (!(r->fields & PATH))
        return heft_error_set(t->x->err, HEFT_E_FORMAT, r->at, "tensor %q has no path_name",
                              r->name);
    heft_torch_storage *s = heft_torch_storage_find(t, r->path);
    if (!s)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, r->at,
                              "tensor %q: the package has no member %q beside the configuration",
                              r->name, r->path);
    r->name = heft_torch_package_name(p, r->name);
    if (!r->name.ptr)
        return heft_error_no_memory(t->x->err, "for a name");
    uint32_t i = (uint32_t)(s - t->storages);
    if (r->is_pickled)
        return add_pickled(r, i);
    p->is_read[i] = true;
    return add_raw(r, s);
}

/* ---- reading ---- */

/* Read a number that is not negative. */
static heft_status read_number(reader *r, uint64_t *out, const char *what)
{
    if (heft_json_next(&r->j) == HEFT_JSON_NUMBER && heft_json_u64(out, r->j.text))
        return HEFT_OK;
    return heft_json_fail(&r->j, "tensor %q: %s is not a non-negative integer", r->name, what);
}

/* Read {"as_int": n}, whose brace was read; an expression sets is_symbolic. */
static heft_status read_size(reader *r, uint64_t *out, const char *what)
{
    heft_json_kind k;
    uint32_t found = 0;
    *out = 0;
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        bool is_int = heft_str_is(r->j.text, "as_int");
        found += is_int;
        r->is_symbolic = r->is_symbolic || !is_int;
        HEFT_TRY(is_int ? read_number(r, out, what) : heft_json_skip(&r->j, k));
    }
    if (k != HEFT_JSON_OBJECT_END)
        return r->j.st;
    return found == 1 || (!found && r->is_symbolic)
               ? HEFT_OK
               : heft_json_fail(&r->j, "tensor %q: %s has not one number", r->name, what);
}

static heft_status read_sizes(reader *r, heft_vec *to, const char *what)
{
    heft_memory *m = &r->p->t.x->mem;
    heft_json_kind k = heft_json_next(&r->j);
    uint64_t size;
    if (k != HEFT_JSON_ARRAY)
        return heft_json_fail(&r->j, "tensor %q: %s are not a list", r->name, what);
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_OBJECT) {
        HEFT_TRY(read_size(r, &size, what));
        if (!heft_vec_add(m, to, &size, sizeof size))
            return heft_error_no_memory(r->p->t.x->err, "for a shape");
    }
    return k == HEFT_JSON_ARRAY_END
               ? HEFT_OK
               : heft_json_fail(&r->j, "tensor %q: %s are not numbers", r->name, what);
}

/* Note that a field was read; HEFT_E_FORMAT if it was read before. */
static heft_status take_field(reader *r, uint32_t field, const char *name)
{
    if (r->fields & field)
        return heft_json_fail(&r->j, "tensor %q: %s occurs twice", r->name, name);
    r->fields |= field;
    return HEFT_OK;
}

static heft_status read_meta_field(reader *r)
{
    static const struct {
        const char *key;
        uint32_t field;
    } known[] = { { "dtype", DTYPE },
                  { "sizes", SIZES },
                  { "strides", STRIDES },
                  { "storage_offset", OFFSET },
                  { "layout", LAYOUT } };
    size_t i = 0, n = sizeof known / sizeof *known;
    while (i < n && !heft_str_is(r->j.text, known[i].key))
        i++;
    if (i == n)
        return heft_json_skip(&r->j, HEFT_JSON_KEY);
    const char *key = known[i].key;
    HEFT_TRY(take_field(r, known[i].field, key));
    switch (known[i].field) {
    case DTYPE:
        return read_number(r, &r->dtype, key);
    case LAYOUT:
        return read_number(r, &r->layout, key);
    case SIZES:
        return read_sizes(r, &r->sizes, key);
    case STRIDES:
        return read_sizes(r, &r->strides, key);
    default:
        if (heft_json_next(&r->j) != HEFT_JSON_OBJECT)
            return heft_json_fail(&r->j, "tensor %q: %s is not an object", r->name, key);
        return read_size(r, &r->first, key);
    }
}

/* Read the description of a tensor; objects of other kinds have null instead. */
static heft_status read_meta(reader *r)
{
    heft_json_kind k = heft_json_next(&r->j);
    HEFT_TRY(take_field(r, META, "tensor_meta"));
    if (k == HEFT_JSON_NULL) {
        r->fields &= ~(uint32_t)META;
        return HEFT_OK;
    }
    if (k != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "tensor %q: tensor_meta is not an object", r->name);
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY)
        HEFT_TRY(read_meta_field(r));
    return r->j.st;
}

static heft_status read_field(reader *r)
{
    heft_str key = r->j.text;
    if (heft_str_is(key, "tensor_meta"))
        return read_meta(r);
    if (heft_str_is(key, "path_name")) {
        HEFT_TRY(take_field(r, PATH, "path_name"));
        if (heft_json_next(&r->j) != HEFT_JSON_STRING)
            return heft_json_fail(&r->j, "tensor %q: path_name is not a text", r->name);
        r->path = r->j.text;
        return HEFT_OK;
    }
    if (!heft_str_is(key, "use_pickle"))
        return heft_json_skip(&r->j, HEFT_JSON_KEY);
    HEFT_TRY(take_field(r, PICKLE, "use_pickle"));
    heft_json_kind k = heft_json_next(&r->j);
    r->is_pickled = k == HEFT_JSON_TRUE;
    return k == HEFT_JSON_TRUE || k == HEFT_JSON_FALSE
               ? HEFT_OK
               : heft_json_fail(&r->j, "tensor %q: use_pickle is neither true nor false", r->name);
}

/* Read the tensor whose name is the key that was just read. */
static heft_status read_tensor(reader *r)
{
    heft_json_kind k;
    r->name = r->j.text;
    r->at = r->j.base + (uint64_t)(r->j.token - r->j.start);
    r->sizes.len = r->strides.len = r->fields = 0;
    r->first = r->layout = r->dtype = 0;
    r->is_pickled = r->is_symbolic = false;
    if (heft_json_next(&r->j) != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "tensor %q: its description is not an object", r->name);
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY)
        HEFT_TRY(read_field(r));
    return r->j.st ? r->j.st : add(r);
}

static heft_status read_config(reader *r)
{
    bool has_config = false;
    heft_json_kind k = heft_json_next(&r->j);
    if (k != HEFT_JSON_OBJECT)
        return heft_json_fail(&r->j, "the configuration is not an object");
    while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY) {
        if (!heft_str_is(r->j.text, "config")) {
            HEFT_TRY(heft_json_skip(&r->j, k));
            continue;
        }
        if (has_config || heft_json_next(&r->j) != HEFT_JSON_OBJECT)
            return heft_json_fail(&r->j, "the configuration has not one object \"config\"");
        has_config = true;
        while ((k = heft_json_next(&r->j)) == HEFT_JSON_KEY)
            HEFT_TRY(read_tensor(r));
        HEFT_TRY(r->j.st);
    }
    if (!r->j.st && heft_json_next(&r->j) == HEFT_JSON_END && !has_config)
        return heft_json_fail(&r->j, "the configuration has no object \"config\"");
    return r->j.st;
}

heft_status heft_torch_package_config(heft_torch_package *p, const heft_zip_entry *e)
{
    heft_index *x = p->t.x;
    reader r = { .p = p };
    HEFT_TRY(heft_torch_package_json(&r.j, p, e));
    heft_status st = read_config(&r);
    heft_vec_free(&x->mem, &r.sizes, sizeof(uint64_t));
    heft_vec_free(&x->mem, &r.strides, sizeof(uint64_t));
    return st && st != HEFT_AGAIN ? heft_error_in(x->err, st, e->name) : st;
}
