/* zero_universal.c - makes a model of a universal checkpoint of DeepSpeed, in which a file has the
 * elements of each parameter.
 *
 *   zero/NAME/fp32.pt   {"param": the tensor, ...}; of ZeRO-3 the tensor alone, which is flat
 *   *_model_states.pt   as they were before the conversion: shapes, buffers, frozen parameters
 *
 * Reference: deepspeed/checkpoint/ds_to_universal.py of DeepSpeed 0.18. */
#include "base/rank_name.h"
#include "format/torch/zero.h"
#include "model/boxes.h"

/* A file has one tensor, under the key "param" or without a key; the latter is flat. */
static heft_status check_file(const heft_zero_model *j, uint32_t file, bool *has_shape)
{
    const heft_index *x = j->z.files[file].x;
    if (heft_ix_tensors(x) != 1 || x->left_out)
        return heft_zero_fail(&j->z, file, HEFT_E_FORMAT,
                              "the file has %U tensors instead of one, the parameter",
                              (uint64_t)heft_ix_tensors(x) + x->left_out);
    *has_shape = heft_str_is(heft_ix_name(x, 0), "param");
    if (!*has_shape && !heft_str_is(heft_ix_name(x, 0), "tensor"))
        return heft_zero_fail(&j->z, file, HEFT_E_FORMAT,
                              "the tensor of the file is %q, and not 'param'", heft_ix_name(x, 0));
    return HEFT_OK;
}

/* Add a flat parameter with its shape. */
static heft_status add_flat(heft_zero_model *j, uint32_t file, const heft_zero_shape *s)
{
    const heft_index *x = j->z.files[file].x;
    const heft_ix_tensor_row *t = heft_ix_row(x, 0);
    uint32_t id;
    if (t->layout || t->rank != 1 || t->part_count != 1 || *heft_ix_dims(x, 0) != s->elements)
        return heft_zero_fail(&j->z, file, HEFT_E_FORMAT,
                              "the tensor does not have the %U elements of parameter %q in "
                              "param_shapes",
                              s->elements, s->name);
    const heft_ix_part_row *p = heft_ix_part_row_at(x, t->first_part);
    if (!heft_ix_is_plain(p))
        return heft_zero_fail(&j->z, file, HEFT_E_UNSUPPORTED,
                              "the tensor is compressed, strided or byte-swapped");
    HEFT_TRY(heft_zero_begin(j, s, t->dtype, true, &id));
    j->z.files[file].joined[0] = id;
    uint64_t offset = heft_global_offset(j->z.files[file].number, p->offset);
    if (s->elements)
        HEFT_TRY(heft_zero_add_range(j, offset, 0, s->elements, t->dtype));
    return heft_ix_assembled_end(j->x, HEFT_NOWHERE);
}

typedef struct stated { /* the parameters that the file with model_states states, by name */
    const heft_zero_facts *f;
    heft_names table;
    bool *has_file;
} stated;

static heft_str name_at(const void *ctx, uint32_t i)
{
    return ((const heft_zero_shape *)ctx)[i].name;
}

static heft_status begin_stated(const heft_zero_model *j, stated *s)
{
    heft_names_of of = { name_at, j->z.facts->params };
    *s = (stated){ .f = j->z.facts };
    s->has_file = heft_arena_alloc(&j->x->arena, (size_t)s->f->param_count + 1, 1);
    if (!s->has_file || !heft_names_reserve(&j->x->mem, &s->table, s->f->param_count))
        return heft_error_no_memory(j->x->err, "to join the files of tensors");
    for (uint32_t i = 0; i < s->f->param_count; i++) {
        heft_str name = s->f->params[i].name;
        heft_names_add(&s->table, of, heft_names_hash(&j->x->key, name), name, i);
        s->has_file[i] = false;
    }
    return HEFT_OK;
}

static const heft_zero_shape *find_stated(const heft_zero_model *j, stated *s, heft_str name)
{
    heft_names_of of = { name_at, s->f->params };
    uint32_t i = heft_names_find(&s->table, of, heft_names_hash(&j->x->key, name), name);
    if (i == HEFT_NONE)
        return NULL;
    s->has_file[i] = true;
    return &s->f->params[i];
}

/* A flat tensor gets its shape from the file with model_states. */
static heft_status add_parameter(heft_zero_model *j, stated *all, uint32_t file)
{
    const heft_index *x = j->z.files[file].x;
    heft_str name = { "", 0 };
    (void)heft_rank_name_read_tensor(&name, j->z.files[file].name);
    const heft_zero_shape *found = find_stated(j, all, name);
    bool has_shape;
    uint32_t id;
    HEFT_TRY(check_file(j, file, &has_shape));
    heft_zero_shape own = heft_zero_shape_of(x, 0, name);
    if (!has_shape && found)
        return add_flat(j, file, found);
    if (!has_shape)
        return heft_zero_fail(&j->z, file, HEFT_E_UNSUPPORTED,
                              "the tensor is flat, and param_shapes of the file with model_states "
                              "does not have the shape of %q",
                              name);
    HEFT_TRY(heft_zero_begin(j, &own, heft_ix_row(x, 0)->dtype, false, &id));
    HEFT_TRY(heft_zero_add_whole(j, file, 0, &own, false));
    return heft_zero_end_whole(j, x, 0, id);
}

static heft_status add_all(heft_zero_model *j, stated *all)
{
    for (uint32_t i = 0; i < j->z.tensor_count; i++)
        HEFT_TRY(add_parameter(j, all, j->z.tensors[i]));
    for (uint32_t i = 0; i < all->f->param_count; i++)
        if (!all->has_file[i])
            return heft_error_plain(j->x->err, HEFT_E_IO,
                                    "the checkpoint is incomplete: there is no file "
                                    "zero/NAME/fp32.pt of parameter %q",
                                    all->f->params[i].name);
    return HEFT_OK;
}

heft_status heft_zero_add_universal(heft_zero_model *j)
{
    stated all;
    heft_status st = begin_stated(j, &all);
    if (!st)
        st = add_all(j, &all);
    heft_names_free(&j->x->mem, &all.table);
    return st;
}
