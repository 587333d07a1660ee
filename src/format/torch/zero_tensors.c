/* zero_tensors.c - adds tensors to the model of a checkpoint of DeepSpeed, each name once. */
#include "format/torch/zero.h"
#include "model/boxes.h"

static const char purpose[] = "to join the files of ranks";

/* ---- names ---- */

static heft_str name_at(const void *ctx, uint32_t i)
{
    return ((const heft_str *)ctx)[i];
}

uint32_t heft_zero_find_name(const heft_zero_model *j, heft_str name)
{
    heft_names_of of = { name_at, j->names };
    return heft_names_find(&j->known, of, heft_names_hash(&j->x->key, name), name);
}

static heft_status add_name(heft_zero_model *j, heft_str name, uint32_t id)
{
    heft_names_of of = { name_at, j->names };
    uint32_t i = j->name_count;
    j->names[i] = name;
    if (heft_names_add(&j->known, of, heft_names_hash(&j->x->key, name), name, i) != HEFT_NONE)
        return heft_error_plain(j->x->err, HEFT_E_FORMAT,
                                "%q is listed twice among the parameters and buffers of a rank",
                                name);
    j->ids[j->name_count++] = id;
    return HEFT_OK;
}

heft_status heft_zero_begin_names(heft_zero_model *j)
{
    static const heft_zero_facts none;
    const heft_zero_facts *f = j->z.facts ? j->z.facts : &none;
    uint64_t listed = (uint64_t)f->param_count + f->frozen_count + f->tie_count + f->buffer_count;
    uint64_t stored = heft_ix_tensors(j->z.files[j->z.states[0]].x);
    uint64_t all = (listed > stored ? listed : stored) + j->z.tensor_count + 1;
    bool fits = all < UINT32_MAX / 4 && all < SIZE_MAX / 32;
    j->names = fits ? heft_arena_alloc(&j->x->arena, (size_t)all * sizeof *j->names, 8) : NULL;
    j->ids = fits ? heft_arena_alloc(&j->x->arena, (size_t)all * sizeof *j->ids, 4) : NULL;
    return j->names && j->ids && heft_names_reserve(&j->x->mem, &j->known, (uint32_t)all)
               ? HEFT_OK
               : heft_error_no_memory(j->x->err, purpose);
}

/* ---- tensors ---- */

heft_status heft_zero_begin(heft_zero_model *j, const heft_zero_shape *s, heft_dtype type,
                            bool is_flat, uint32_t *id)
{
    uint64_t *dims;
    heft_str name = heft_ix_copy(j->x, s->name);
    HEFT_TRY(name.ptr ? heft_ix_tensor(j->x, name, type, s->rank, &dims, id) : HEFT_E_NOMEM);
    if (s->rank)
        memcpy(dims, s->dims, s->rank * sizeof *dims);
    HEFT_TRY(add_name(j, name, *id));
    return heft_ix_assembled_begin(j->x, *id, is_flat);
}

heft_status heft_zero_add_range(heft_zero_model *j, uint64_t offset, uint64_t at, uint64_t n,
                                heft_dtype type)
{
    heft_ix_box box = { .offset = offset };
    (void)heft_dtype_bytes(&box.length, type, n); /* the file has at least as many */
    if (j->x->boxes.len >= HEFT_ZERO_BOXES)
        return heft_error_plain(j->x->err, HEFT_E_LIMIT, "the tensors have more than %U pieces",
                                (uint64_t)HEFT_ZERO_BOXES);
    return heft_ix_box_add(j->x, HEFT_NOWHERE, box, &at, &n);
}

/* ---- tensors that a file has as they are ---- */

heft_zero_shape heft_zero_shape_of(const heft_index *x, uint32_t id, heft_str name)
{
    heft_zero_shape s = { .name = name, .rank = heft_ix_row(x, id)->rank };
    s.dims = s.rank ? heft_ix_dims(x, id) : NULL;
    (void)heft_product(&s.elements, s.dims, s.rank); /* the parser has checked */
    return s;
}

bool heft_zero_has_shape(const heft_index *x, uint32_t id, const heft_zero_shape *s)
{
    bool same = heft_ix_row(x, id)->rank == s->rank;
    for (uint32_t i = 0; i < s->rank && same; i++)
        same = heft_ix_dims(x, id)[i] == s->dims[i];
    return same;
}

heft_status heft_zero_add_whole(heft_zero_model *j, uint32_t file, uint32_t from,
                                const heft_zero_shape *s, bool is_replica)
{
    static const uint64_t zeros[64];
    const heft_index *x = j->z.files[file].x;
    const heft_ix_tensor_row *t = heft_ix_row(x, from);
    if (t->layout || t->part_count != 1 || s->rank > sizeof zeros / sizeof *zeros)
        return heft_zero_fail(&j->z, file, HEFT_E_UNSUPPORTED,
                              "tensor %q is sparse or has several parts", s->name);
    const heft_ix_part_row *p = heft_ix_part_row_at(x, t->first_part);
    heft_ix_box box = { .offset = heft_global_offset(j->z.files[file].number, p->offset),
                        .length = p->stored };
    if (!heft_ix_is_plain(p)) {
        box.holds = HEFT_BOX_PART;
        box.length = t->first_part;
    }
    box.holds |= is_replica ? HEFT_BOX_REPLICA : 0;
    j->z.files[file].joined[from] = heft_ix_tensors(j->x) - 1;
    return heft_ix_box_add(j->x, HEFT_NOWHERE, box, zeros, s->dims);
}

heft_status heft_zero_end_whole(heft_zero_model *j, const heft_index *x, uint32_t from, uint32_t id)
{
    heft_str type = heft_ix_stored_dtype(x, from);
    HEFT_TRY(heft_ix_assembled_end(j->x, HEFT_NOWHERE));
    return type.ptr ? heft_ix_attr_text(j->x, id, heft_lit("stored_dtype"), type) : HEFT_OK;
}
