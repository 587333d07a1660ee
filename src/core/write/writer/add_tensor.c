/* add_tensor.c - heft_writer_add_tensor(): check the declaration of a tensor, then add the
 * tensor to the model. */
#include "core/write/plan/plan.h"
#include "core/write/writer/writer.h"

#include "base/blake3.h"
#include "model/names.h"
#include "model/open_containers.h"

typedef struct tensor_addition {
    heft_writer *w;
    heft_planner *planner; /* planner that gets the tensor */
    heft_tensor_spec spec;
    heft_sparse_spec sparse; /* first_part is set once the tensor is added */
    bool is_sparse;
    heft_component data; /* component of a dense tensor that is declared without components */
    heft_error *err;
} tensor_addition;

static heft_status tensor_error(const tensor_addition *a, const char *what)
{
    return heft_error_plain(a->err, HEFT_E_ARGUMENT, "tensor %q: %s", a->spec.name, what);
}

/* ---- components ---- */

static bool component_bytes(uint64_t *out, const heft_component *c)
{
    *out = c->count;
    return !c->dtype || heft_dtype_bytes(out, c->dtype, c->count);
}

static heft_str role_of(const void *ctx, uint32_t i)
{
    return ((const heft_component *)ctx)[i].role;
}

static heft_status check_roles(const tensor_addition *a)
{
    const heft_tensor_spec *s = &a->spec;
    heft_names_of of = { role_of, s->components };
    heft_names seen = { NULL, 0, 0 };
    heft_index *x = &a->w->p.x;
    heft_status st = HEFT_OK;
    if (s->component_count < 2)
        return HEFT_OK;
    if (!heft_names_reserve(&x->mem, &seen, s->component_count))
        return heft_error_no_memory(a->err, "to compare components");
    for (uint32_t i = 0; i < s->component_count && !st; i++) {
        heft_str role = s->components[i].role;
        if (heft_names_add(&seen, of, heft_names_hash(&x->key, role), role, i) != HEFT_NONE)
            st = heft_error_plain(a->err, HEFT_E_ARGUMENT,
                                  "tensor %q: component %q is declared twice", s->name, role);
    }
    heft_names_free(&x->mem, &seen);
    return st;
}

static heft_status check_storage(const tensor_addition *a, const heft_component *c)
{
    const heft_storage *storage = c->storage ? c->storage : a->spec.storage;
    heft_error why;
    heft_status st = storage ? heft_planner_check_storage(&a->w->p, storage, &why) : HEFT_OK;
    if (!st && storage && storage->digest && !heft_host_digest(a->w->p.host, storage->digest))
        st = heft_error_plain(&why, HEFT_E_UNSUPPORTED, "this build cannot compute %s digests",
                              storage->digest);
    return st ? heft_error_plain(a->err, st, "tensor %q: component %q: %s", a->spec.name, c->role,
                                 why.message)
              : HEFT_OK;
}

static heft_status check_component(const tensor_addition *a, const heft_component *c)
{
    uint64_t bytes;
    if (!c->role.len || !heft_str_is_utf8(c->role))
        return tensor_error(a, "the name of a component is empty or not UTF-8");
    if (c->dtype && !heft_dtype_get(c->dtype))
        return heft_error_plain(a->err, HEFT_E_ARGUMENT,
                                "tensor %q: component %q: there is no such element type",
                                a->spec.name, c->role);
    if (!component_bytes(&bytes, c))
        return heft_error_plain(a->err, HEFT_E_ARGUMENT,
                                "tensor %q: component %q: its size in bytes overflows 64 bits",
                                a->spec.name, c->role);
    return check_storage(a, c);
}

/* Require one component, as large as the shape says. */
static heft_status check_dense(tensor_addition *a)
{
    heft_tensor_spec *s = &a->spec;
    uint64_t elements = 0;
    bool fits = heft_product(&elements, s->dims, s->rank);
    a->data = (heft_component){ .role = heft_ix_data };
    if (s->component_count == 1)
        a->data = s->components[0];
    bool is_data = s->component_count < 2 && heft_str_eq(a->data.role, heft_ix_data) &&
                   (!a->data.dtype || a->data.dtype == s->dtype) &&
                   (!a->data.count || a->data.count == elements);
    if (fits && !is_data)
        return tensor_error(
            a, "a dense tensor has a single component \"data\" of its element type and "
               "shape; for other components declare another layout");
    a->data.dtype = s->dtype;
    a->data.count = elements;
    s->components = &a->data;
    s->component_count = 1;
    if (!fits || !component_bytes(&elements, &a->data))
        return tensor_error(a, "the shape overflows 64 bits");
    return check_storage(a, &a->data);
}

/* ---- attributes ---- */

/* Count the children of containers, so that no container stays open at the end. */
static heft_status check_attributes(const tensor_addition *a)
{
    const heft_tensor_spec *s = &a->spec;
    heft_open_containers open;
    uint32_t max_depth = a->w->p.x.limits.depth;
    open.depth = 0;
    for (uint32_t i = 0; i < s->attribute_count; i++) {
        const heft_value *v = &s->attributes[i];
        if (!heft_is_metadata_value(v))
            return tensor_error(
                a, "an attribute has an unknown kind or complex numbers, or its key or text is not "
                   "UTF-8");
        if (heft_value_nests(v) && open.depth == max_depth)
            return heft_error_plain(a->err, HEFT_E_LIMIT,
                                    "tensor %q: attributes nested deeper than %U", s->name,
                                    (uint64_t)max_depth);
        heft_open_value(&open, v);
        while (heft_open_leave(&open))
            continue;
    }
    return open.depth ? tensor_error(
                            a, "a list or map in its attributes declares more children than follow")
                      : HEFT_OK;
}

static heft_status add_attributes(const tensor_addition *a, uint32_t id)
{
    const heft_tensor_spec *s = &a->spec;
    heft_index *x = &a->planner->x;
    heft_open_containers open;
    heft_status st = HEFT_OK;
    open.depth = 0;
    for (uint32_t i = 0; i < s->attribute_count && !st; i++) {
        heft_value v = s->attributes[i];
        st = heft_writer_copy_value(a->planner, &v, a->err);
        if (!st)
            st = heft_ix_attr(x, id, v);
        heft_open_value(&open, &v);
        while (!st && heft_open_leave(&open))
            heft_ix_attr_end(x);
    }
    heft_value stored = { .kind = HEFT_KIND_STR, .key = heft_lit("stored_dtype") };
    stored.as.s = s->stored_type;
    if (!st && s->stored_type.len)
        st = heft_writer_copy_value(a->planner, &stored, a->err);
    return st || !s->stored_type.len ? st : heft_ix_attr(x, id, stored);
}

/* ---- identity ---- */

/* gpt-rs accepts only the id derived from the tensor's name, or no id. */
static heft_status check_identity(const tensor_addition *a)
{
    static const uint8_t none[sizeof(heft_id128)];
    const heft_tensor_spec *s = &a->spec;
    uint8_t id[sizeof(heft_id128)];
    HEFT_TRY(heft_identity_check(&s->identity, s->name, a->err));
    if (!(s->identity.has & HEFT_HAS_BASE_ID) ||
        !memcmp(s->identity.base_id.bytes, none, sizeof none))
        return HEFT_OK;
    heft_blake3_id(id, s->name.ptr, s->name.len);
    return memcmp(s->identity.base_id.bytes, id, sizeof id)
               ? tensor_error(a,
                              "its base id does not match its name (all zero bytes: store no id)")
               : HEFT_OK;
}

/* ---- the whole tensor ---- */

static heft_status check_spec(tensor_addition *a)
{
    heft_tensor_spec *s = &a->spec;
    bool is_own = s->layout.len && !heft_str_is(s->layout, "dense") &&
                  !heft_str_is(s->layout, "sparse_csr") && !heft_str_is(s->layout, "sparse_coo");
    if (!heft_str_is_utf8(s->name))
        return heft_writer_argument_error(a->err, "a tensor's name is not UTF-8");
    if (!(is_own && !s->dtype) && !heft_dtype_get(s->dtype))
        return tensor_error(a, "unknown element type");
    if (!heft_str_is_utf8(s->layout) || !heft_str_is_utf8(s->stored_type))
        return tensor_error(a, "its layout or its stored type is not UTF-8");
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < s->component_count && !st; i++)
        st = check_component(a, &s->components[i]);
    if (!st)
        st = check_roles(a);
    if (!st && (!s->layout.len || heft_str_is(s->layout, "dense")))
        st = check_dense(a);
    if (!st && !s->component_count)
        return tensor_error(a, "no components are declared");
    a->is_sparse = heft_str_is(s->layout, "sparse_csr") || heft_str_is(s->layout, "sparse_coo");
    if (!st && a->is_sparse)
        st = heft_sparse_declare(&a->sparse, s, a->err);
    if (!st && s->attribute_count && !a->w->begun && a->w->p.x.open.len)
        return tensor_error(a, "a list or map of metadata is still open");
    if (!st)
        st = check_identity(a);
    return st ? st : check_attributes(a);
}

static heft_status add_component(const tensor_addition *a, uint32_t id, const heft_component *c)
{
    heft_str role = c->role;
    uint64_t bytes = 0;
    component_bytes(&bytes, c);
    HEFT_TRY(heft_str_eq(role, heft_ix_data) ? HEFT_OK
                                             : heft_writer_copy(a->planner, &role, a->err));
    heft_range where = { 0, bytes };
    uint32_t part = a->planner->x.parts.len;
    HEFT_TRY(heft_ix_part(&a->planner->x, id, role, c->dtype, where, bytes, HEFT_RAW));
    const heft_storage *storage = c->storage ? c->storage : a->spec.storage;
    return storage ? heft_planner_set_storage(a->planner, part, storage, a->err) : HEFT_OK;
}

static heft_status add_sparse(const tensor_addition *a, heft_str name)
{
    heft_writer *w = a->w;
    const heft_sparse_spec *own = &a->sparse;
    size_t bytes = own->rank * sizeof *own->dims;
    heft_sparse_spec *s = heft_arena_alloc(&w->p.x.arena, sizeof *s + bytes, 16);
    heft_sparse_spec **planner = s ? heft_vec_push(&w->p.x.mem, &w->sparse, sizeof *planner) : NULL;
    if (!planner)
        return heft_error_no_memory(a->err, "for a sparse tensor");
    memcpy(s + 1, own->dims, bytes);
    *s = *own;
    s->name = name;
    s->dims = (const uint64_t *)(s + 1);
    s->first_part = w->p.x.parts.len;
    *planner = s;
    return HEFT_OK;
}

static heft_status add_spec(const tensor_addition *a)
{
    const heft_tensor_spec *s = &a->spec;
    heft_index *x = &a->planner->x;
    heft_str name = s->name, layout = s->layout;
    uint64_t *dims;
    uint32_t id = 0;
    HEFT_TRY(heft_writer_copy(a->planner, &name, a->err));
    HEFT_TRY(heft_ix_tensor(x, name, s->dtype, s->rank, &dims, &id));
    if (s->rank)
        memcpy(dims, s->dims, s->rank * sizeof *dims);
    if (layout.len)
        HEFT_TRY(heft_writer_copy(a->planner, &layout, a->err));
    if (layout.len)
        HEFT_TRY(heft_ix_set_layout(x, id, layout));
    if (a->is_sparse && a->planner == &a->w->p)
        HEFT_TRY(add_sparse(a, name));
    for (uint32_t i = 0; i < s->component_count; i++)
        HEFT_TRY(add_component(a, id, &s->components[i]));
    HEFT_TRY(heft_ix_identify(x, id, &s->identity));
    return add_attributes(a, id);
}

/* ---- late tensors ---- */

static heft_status in_order(void *ctx, uint32_t tensor, bool *strictly)
{
    tensor_addition *a = ctx;
    (void)tensor;
    a->sparse.is_strict = *strictly = true;
    return HEFT_OK;
}

static heft_status check_values(void *ctx, uint32_t tensor, heft_value_rule *broken)
{
    return heft_writer_check_values(((tensor_addition *)ctx)->w, tensor, broken);
}

static heft_status take_over(tensor_addition *a, const heft_planner *q)
{
    heft_writer *w = a->w;
    uint32_t first = w->p.x.parts.len;
    a->planner = &w->p;
    w->p.x.err = a->err;
    heft_status st = add_spec(a);
    if (!st)
        st = heft_planner_adopt_layout(&w->p, first, q, a->err);
    /* The tensor is left out, but the caller will still pass the data. */
    if (!st && !heft_ix_tensors(&q->x)) {
        heft_plan_drop(&w->p.plan, w->p.x.tensors.len - 1);
        heft_plan_compact(&w->p.plan);
        for (uint32_t i = first; i < w->p.x.parts.len; i++)
            heft_ix_part_row_at(&w->p.x, i)->flags |= HEFT_P_UNUSED;
    } else if (!st)
        st = heft_writer_late_name(w, a->err);
    if (!st)
        st = heft_writer_advance(w, a->err);
    return heft_writer_record_failure(w, st, a->err);
}

/* Add a tensor after heft_writer_begin().  A tensor that the format cannot represent is refused;
 * the writer stays usable. */
static heft_status add_late(tensor_addition *a)
{
    heft_planner q; /* plans this tensor alone */
    HEFT_TRY(heft_writer_open_late(a->w, a->err));
    if (heft_text_set_has(&a->w->names, &a->w->p.x.key, a->spec.name))
        return heft_error_plain(a->err, HEFT_E_ARGUMENT, "tensor %q is in the file already",
                                a->spec.name);
    heft_status st = heft_planner_trial(&q, &a->w->p, a->err);
    q.plan.source =
        (heft_plan_source){ .ctx = a, .is_sorted = in_order, .check_values = check_values };
    a->planner = &q;
    q.x.err = a->err;
    if (!st)
        st = add_spec(a);
    if (!st)
        st = heft_planner_run(&q, a->err);
    if (!st)
        st = take_over(a, &q);
    heft_planner_free(&q);
    return st;
}

heft_status heft_writer_add_tensor(uint32_t *first_part, heft_writer *w,
                                   const heft_tensor_spec *spec, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    tensor_addition a = { .w = w, .planner = &w->p, .spec = HEFT_TENSOR_SPEC_INIT, .err = err };
    if (w->begun && !heft_writer_grows(w))
        return heft_writer_too_late(w, "tensors come", err);
    w->p.x.err = err;
    heft_status st = heft_writer_failure(w, err);
    if (!st)
        st = heft_sized_copy(&a.spec, offsetof(heft_tensor_spec, reserved), spec, err);
    if (!st)
        st = spec ? check_spec(&a) : heft_writer_argument_error(err, "no tensor is given");
    if (st)
        return heft_error_end(err, st);
    *first_part = w->p.x.parts.len;
    return w->begun ? heft_error_end(err, add_late(&a))
                    : heft_writer_record_failure(w, add_spec(&a), err);
}

heft_status heft_writer_add_dense(uint32_t *part, heft_writer *w, heft_str name, heft_dtype t,
                                  const uint64_t *dims, uint32_t rank, heft_error *err)
{
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    spec.name = name;
    spec.dtype = t;
    spec.rank = rank;
    spec.dims = dims;
    return heft_writer_add_tensor(part, w, &spec, err);
}
