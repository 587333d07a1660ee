/* zero_join.c - makes a model of the files of the ranks of DeepSpeed ZeRO: the parameters of the
 * optimizer, and tensors that a file has as they are. */
#include "format/torch/zero.h"
#include "model/boxes.h"

/* ---- buffers, and frozen parameters ---- */

/* Add a tensor of the first file; all files with model_states have a copy. */
static heft_status add_copied(heft_zero_model *j, const char *prefix, heft_str name, uint32_t from)
{
    uint32_t first = j->z.states[0], id, other;
    const heft_index *x = j->z.files[first].x;
    heft_zero_shape s = heft_zero_shape_of(x, from, name);
    HEFT_TRY(heft_zero_begin(j, &s, heft_ix_row(x, from)->dtype, false, &id));
    HEFT_TRY(heft_zero_add_whole(j, first, from, &s, false));
    for (uint32_t r = 1; r < j->z.state_count; r++) {
        uint32_t file = j->z.states[r];
        HEFT_TRY(heft_zero_find(&j->z, file, prefix, name, &other));
        const heft_index *y = j->z.files[file].x;
        if (other == HEFT_NONE || !heft_zero_has_shape(y, other, &s) ||
            heft_ix_row(y, other)->dtype != heft_ix_row(x, from)->dtype ||
            !heft_str_eq(heft_ix_stored_dtype(y, other), heft_ix_stored_dtype(x, from)))
            return heft_zero_fail(&j->z, file, HEFT_E_FORMAT,
                                  "the copy of tensor %q is missing, or of another type or shape "
                                  "than that of rank 0",
                                  name);
        HEFT_TRY(heft_zero_add_whole(j, file, other, &s, true));
    }
    return heft_zero_end_whole(j, x, from, id);
}

/* Return true for a tensor that a universal checkpoint has in a file of its own. */
static bool is_converted(const heft_zero_model *j, heft_str name)
{
    return j->z.tensor_count && heft_zero_find_name(j, name) != HEFT_NONE;
}

static const char fragments[] = "frozen_param_fragments";

static heft_status find_fragment(const heft_zero_model *j, uint32_t file, const heft_zero_shape *s,
                                 uint32_t *from)
{
    HEFT_TRY(heft_zero_find(&j->z, file, fragments, s->name, from));
    return *from != HEFT_NONE
               ? HEFT_OK
               : heft_zero_fail(&j->z, file, HEFT_E_FORMAT,
                                "the frozen parameter %q has a shape, and no elements in "
                                "frozen_param_fragments",
                                s->name);
}

/* ZeRO-1 and 2 do not cut frozen parameters. */
static heft_status add_frozen_whole(heft_zero_model *j, const heft_zero_shape *s)
{
    uint32_t file = j->z.states[0], from, id;
    HEFT_TRY(find_fragment(j, file, s, &from));
    const heft_index *x = j->z.files[file].x;
    if (!heft_zero_has_shape(x, from, s))
        return heft_zero_fail(&j->z, file, HEFT_E_FORMAT,
                              "the frozen parameter %q has another shape than "
                              "frozen_param_shapes states",
                              s->name);
    HEFT_TRY(heft_zero_begin(j, s, heft_ix_row(x, from)->dtype, false, &id));
    HEFT_TRY(heft_zero_add_whole(j, file, from, s, false));
    return heft_zero_end_whole(j, x, from, id);
}

static heft_status add_fragment(heft_zero_model *j, const heft_zero_shape *s, uint32_t rank,
                                heft_dtype type, uint32_t from)
{
    uint32_t file = j->z.states[rank];
    const heft_index *x = j->z.files[file].x;
    const heft_ix_tensor_row *t = heft_ix_row(x, from);
    uint64_t each = heft_zero_cut_of(s->elements, j->z.ranks),
             own = heft_zero_own_of(s->elements, each, rank);
    if (t->layout || t->rank != 1 || t->part_count != 1 || t->dtype != type ||
        *heft_ix_dims(x, from) != each)
        return heft_zero_fail(&j->z, file, HEFT_E_FORMAT,
                              "the frozen parameter %q does not have %U elements of the type of "
                              "rank 0 there",
                              s->name, each);
    const heft_ix_part_row *p = heft_ix_part_row_at(x, t->first_part);
    if (!heft_ix_is_plain(p))
        return heft_zero_fail(&j->z, file, HEFT_E_UNSUPPORTED,
                              "the elements of the frozen parameter %q are compressed, strided or "
                              "byte-swapped",
                              s->name);
    j->z.files[file].joined[from] = heft_ix_tensors(j->x) - 1;
    uint64_t offset = heft_global_offset(j->z.files[file].number, p->offset);
    return own ? heft_zero_add_range(j, offset, each * rank, own, type) : HEFT_OK;
}

static heft_status add_frozen_cut(heft_zero_model *j, const heft_zero_shape *s)
{
    uint32_t from, id;
    if (j->z.state_count != j->z.ranks)
        return heft_zero_fail(&j->z, j->z.states[0], HEFT_E_IO,
                              "there are %U files with model_states of %U ranks, each of which has "
                              "a part of the frozen parameter %q",
                              (uint64_t)j->z.state_count, (uint64_t)j->z.ranks, s->name);
    HEFT_TRY(find_fragment(j, j->z.states[0], s, &from));
    heft_dtype type = heft_ix_row(j->z.files[j->z.states[0]].x, from)->dtype;
    HEFT_TRY(heft_zero_begin(j, s, type, true, &id));
    for (uint32_t r = 0; r < j->z.ranks; r++) {
        HEFT_TRY(find_fragment(j, j->z.states[r], s, &from));
        HEFT_TRY(add_fragment(j, s, r, type, from));
    }
    return heft_ix_assembled_end(j->x, HEFT_NOWHERE);
}

static heft_status add_frozen(heft_zero_model *j)
{
    const heft_zero_facts *f = j->z.facts;
    for (uint32_t i = 0; i < f->frozen_count; i++)
        if (!is_converted(j, f->frozen[i].name))
            HEFT_TRY(j->z.stage == 3 ? add_frozen_cut(j, &f->frozen[i])
                                     : add_frozen_whole(j, &f->frozen[i]));
    return HEFT_OK;
}

/* ---- other names of a tensor ---- */

/* Add a tensor with the boxes of another. */
static heft_status add_tie(heft_zero_model *j, const heft_zero_tie *tie)
{
    uint32_t of = heft_zero_find_name(j, tie->of), id;
    if (of == HEFT_NONE) {
        heft_ix_left_out(j->x, HEFT_LEFT_OUT, "torch/rank-tensor", (heft_range){ HEFT_NOWHERE, 0 },
                         "tensor %q is left out: shared_params says that it is %q, which the files "
                         "do not have",
                         tie->name, tie->of);
        return HEFT_OK;
    }
    uint32_t row = heft_ix_assembled_find(j->x, j->ids[of]);
    const heft_ix_assembled a = ((const heft_ix_assembled *)j->x->assembled.ptr)[row];
    heft_zero_shape s = heft_zero_shape_of(j->x, a.tensor, tie->name);
    uint64_t dims[64], at[64], n[64];
    if (s.rank > sizeof dims / sizeof *dims)
        return heft_error_plain(j->x->err, HEFT_E_LIMIT, "tensor %q has %U dimensions", tie->name,
                                (uint64_t)s.rank);
    memcpy(dims, s.dims ? s.dims : at, s.rank * sizeof *dims); /* the columns will move */
    s.dims = dims;
    HEFT_TRY(heft_zero_begin(j, &s, heft_ix_row(j->x, a.tensor)->dtype, a.is_flat, &id));
    for (uint32_t k = 0; k < a.box_count; k++) {
        heft_boxes b = heft_ix_boxes(j->x, row);
        for (uint32_t i = 0; i < b.rank; i++) {
            at[i] = heft_box_offsets(&b, k)[i];
            n[i] = heft_box_sizes(&b, k)[i];
        }
        if (j->x->boxes.len >= HEFT_ZERO_BOXES)
            return heft_error_plain(j->x->err, HEFT_E_LIMIT, "the tensors have more than %U pieces",
                                    (uint64_t)HEFT_ZERO_BOXES);
        HEFT_TRY(heft_ix_box_add(j->x, HEFT_NOWHERE, b.rows[k], at, n));
    }
    return heft_ix_assembled_end(j->x, HEFT_NOWHERE);
}

/* ---- what else the module has ---- */

static const char module_name[] = "module";

/* Return the name of a tensor in the module; false: it is elsewhere. */
static bool in_module(heft_str *name)
{
    size_t prefix = sizeof module_name; /* the dot included */
    if (name->len <= prefix || memcmp(name->ptr, module_name, prefix - 1) != 0 ||
        name->ptr[prefix - 1] != '.')
        return false;
    *name = (heft_str){ name->ptr + prefix, name->len - prefix };
    return true;
}

static heft_status add_buffers(heft_zero_model *j)
{
    const heft_zero_facts *f = j->z.facts;
    uint32_t from;
    for (uint32_t i = 0; i < f->buffer_count; i++) {
        HEFT_TRY(heft_zero_find(&j->z, j->z.states[0], module_name, f->buffers[i], &from));
        if (from != HEFT_NONE &&
            !is_converted(j, f->buffers[i])) /* state_dict() leaves some buffers out */
            HEFT_TRY(add_copied(j, module_name, f->buffers[i], from));
    }
    return HEFT_OK;
}

static bool is_under(heft_str name, const char *key)
{
    size_t len = heft_lit(key).len;
    return heft_str_begins(name, key) && (name.len == len || name.ptr[len] == '.');
}

/* A program may save more beside the module, such as averages of the parameters. */
static void report_outside(const heft_zero_model *j)
{
    static const char *const known[] = { module_name, fragments, "optimizer", "lr_scheduler" };
    const heft_index *x = j->z.files[j->z.states[0]].x;
    uint64_t count = 0;
    heft_str first = { NULL, 0 };
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++) {
        heft_str name = heft_ix_name(x, i);
        bool is_known = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            is_known = is_known || is_under(name, known[k]);
        if (!is_known)
            first = count++ ? first : name;
    }
    if (count)
        heft_ix_left_out(j->x, HEFT_LEFT_OUT_READABLE, "torch/rank-tensor",
                         (heft_range){ HEFT_NOWHERE, 0 },
                         "%U tensors beside the module are left out, such as %q; open %q to read "
                         "them",
                         count, first, j->z.files[j->z.states[0]].name);
}

/* Tensors of the module that are listed nowhere are not joined: whether they are whole, and whether
 * they are parameters under another name, is not known.  Copies of parameters are not needed. */
static void report_others(const heft_zero_model *j)
{
    const heft_index *x = j->z.files[j->z.states[0]].x;
    uint64_t count = 0;
    heft_str first = { NULL, 0 };
    report_outside(j);
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++) {
        heft_str name = heft_ix_name(x, i);
        if (!in_module(&name) || heft_zero_find_name(j, name) != HEFT_NONE)
            continue;
        first = count++ ? first : name;
    }
    if (count)
        heft_ix_left_out(
            j->x, HEFT_LEFT_OUT_READABLE, "torch/rank-tensor", (heft_range){ HEFT_NOWHERE, 0 },
            "%U tensors of the module are left out, such as %q: %s; open %q to read "
            "them",
            count, first,
            j->z.facts->parallel > 1 ? "they may be parts of one rank of tensor parallelism"
                                     : "they are neither in param_shapes nor in buffer_names",
            j->z.files[j->z.states[0]].name);
}

/* Pass on what the first file lacks. */
static void copy_losses(const heft_zero_model *j)
{
    uint32_t file = j->z.states[0];
    const heft_index *x = j->z.files[file].x;
    const heft_note *notes = x->notes.ptr;
    for (uint32_t i = 0; i < x->notes.len; i++)
        if (notes[i].left_out == HEFT_LEFT_OUT)
            heft_ix_left_out(j->x, HEFT_LEFT_OUT, notes[i].rule, (heft_range){ HEFT_NOWHERE, 0 },
                             "%s", notes[i].text);
}

/* ---- all of it ---- */

/* Let the checksums of flat tensors be those of the first parameter. */
static heft_status name_flats(const heft_zero_model *j)
{
    char digits[20] = "";
    for (uint32_t r = 0; r < j->z.ranks && heft_ix_tensors(j->x); r++)
        for (uint32_t g = 0; g < j->z.groups; g++) {
            heft_str number = { digits, heft_u64_text(digits, g) };
            const heft_zero_facts *own = j->z.files[j->z.optims[r]].x->rank_facts;
            uint32_t id;
            HEFT_TRY(heft_zero_find(&j->z, j->z.optims[r], own->flats, number, &id));
            j->z.files[j->z.optims[r]].joined[id] = 0;
        }
    return HEFT_OK;
}

/* Add what is not a parameter of the optimizer. */
static heft_status add_rest(heft_zero_model *j)
{
    const heft_zero_facts *f = j->z.facts;
    HEFT_TRY(add_frozen(j));
    for (uint32_t i = 0; i < f->tie_count; i++)
        if (!is_converted(j, f->ties[i].name))
            HEFT_TRY(add_tie(j, &f->ties[i]));
    HEFT_TRY(add_buffers(j));
    report_others(j);
    copy_losses(j);
    return HEFT_OK;
}

/* Tensor parallelism cuts buffers and frozen parameters, too, in a way that nothing states. */
static heft_status add_universal(heft_zero_model *j)
{
    HEFT_TRY(heft_zero_add_universal(j));
    heft_ix_note_format(j->x, HEFT_NOTE, "torch/optimizer", (heft_range){ HEFT_NOWHERE, 0 },
                        HEFT_NONE,
                        "exp_avg.pt and other files of the state of the optimizer, beside fp32.pt "
                        "of %U tensors, are left out",
                        (uint64_t)j->z.tensor_count);
    if (j->z.facts->parallel <= 1)
        return add_rest(j);
    report_others(j);
    copy_losses(j);
    return HEFT_OK;
}

static heft_status add_joined(heft_zero_model *j)
{
    HEFT_TRY(j->z.stage == 3 ? heft_zero_add_cuts(j) : heft_zero_add_groups(j));
    HEFT_TRY(add_rest(j));
    HEFT_TRY(name_flats(j));
    if (j->z.stage != 3)
        heft_ix_note_format(j->x, HEFT_NOTE, "torch/rank-copies", (heft_range){ HEFT_NOWHERE, 0 },
                            HEFT_NONE,
                            "the parameters are those of the optimizer, from the files of %U "
                            "ranks; open %q to read the copies of the model, which may have fewer "
                            "bits",
                            (uint64_t)j->z.ranks, j->z.files[j->z.states[0]].name);
    heft_ix_note_format(j->x, HEFT_NOTE, "torch/optimizer", (heft_range){ HEFT_NOWHERE, 0 },
                        HEFT_NONE,
                        "the state of the optimizer in the files of %U ranks is left out (--key "
                        "opens that of one file)",
                        (uint64_t)j->z.ranks);
    return HEFT_OK;
}

/* Add the copies of the model that the file with model_states has whole. */
static heft_status add_copies(heft_zero_model *j)
{
    uint32_t file = j->z.states[0], id;
    const heft_index *x = j->z.files[file].x;
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++) {
        heft_str name = heft_ix_name(x, i);
        if (!in_module(&name))
            continue;
        heft_zero_shape s = heft_zero_shape_of(x, i, name);
        HEFT_TRY(heft_zero_begin(j, &s, heft_ix_row(x, i)->dtype, false, &id));
        HEFT_TRY(heft_zero_add_whole(j, file, i, &s, false));
        HEFT_TRY(heft_zero_end_whole(j, x, i, id));
    }
    report_outside(j);
    copy_losses(j);
    heft_ix_note_format(j->x, HEFT_WARNING, "torch/rank-copies", (heft_range){ HEFT_NOWHERE, 0 },
                        HEFT_NONE,
                        "the parameters are the copies of the model, not those of the optimizer, "
                        "which cannot be joined: %s",
                        j->z.missing.ptr);
    return HEFT_OK;
}

heft_status heft_zero_join(heft_index *x, heft_rank_file *files, uint32_t count)
{
    heft_zero_model j = { .x = x };
    HEFT_TRY(heft_zero_find_files(&j.z, x, files, count));
    HEFT_TRY(heft_zero_begin_names(&j));
    heft_status st = j.z.tensor_count  ? add_universal(&j)
                     : j.z.missing.ptr ? add_copies(&j)
                                       : add_joined(&j);
    heft_names_free(&x->mem, &j.known);
    return st;
}
