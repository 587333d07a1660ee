/* zero_files.c - finds the files of the ranks of a checkpoint of DeepSpeed ZeRO, and in them the
 * flat tensors with the elements.
 *
 * The files do not state their ranks, which are in their names.  They do state how many ranks there
 * are. */
#include "base/rank_name.h"
#include "format/torch/zero.h"

static const char purpose[] = "to join the files of ranks";

heft_status heft_zero_fail(const heft_zero_files *z, uint32_t file, heft_status st, const char *fmt,
                           ...)
{
    va_list ap;
    va_start(ap, fmt);
    heft_error_set_list(z->x->err, st, HEFT_NOWHERE, fmt, &ap);
    va_end(ap);
    return file == HEFT_NONE ? st : heft_error_in(z->x->err, st, z->files[file].name);
}

static const heft_zero_facts *facts_of(const heft_zero_files *z, uint32_t file)
{
    return z->files[file].x ? z->files[file].x->rank_facts : NULL;
}

/* ---- files by rank ---- */

static heft_status add_file(heft_zero_files *z, uint32_t file, uint32_t count)
{
    heft_rank_name n;
    const heft_zero_facts *facts = facts_of(z, file);
    heft_str tensor;
    if (heft_rank_name_read_tensor(&tensor, z->files[file].name)) {
        z->tensors[z->tensor_count++] = file;
        return HEFT_OK;
    }
    if (!heft_rank_name_read(&n, z->files[file].name))
        return heft_zero_fail(z, file, HEFT_E_UNSUPPORTED,
                              "the name of a file does not say which rank of DeepSpeed it is of");
    if (n.parallel)
        return heft_zero_fail(z, file, HEFT_E_UNSUPPORTED,
                              "the checkpoint has ranks of tensor or pipeline parallelism, and its "
                              "files do not say how their tensors join");
    uint32_t *to = n.is_states ? z->states : z->optims;
    if (n.rank < count && to[n.rank] != HEFT_NONE)
        return heft_zero_fail(z, file, HEFT_E_IO, "the folder has two files of one rank");
    if (n.rank < count) /* else a rank before it is missing, which is found later */
        to[n.rank] = file;
    if (facts && facts->is_states != n.is_states)
        return heft_zero_fail(z, file, HEFT_E_FORMAT,
                              "the content is of the other kind of file than its name says");
    z->state_count += n.is_states;
    z->ranks += !n.is_states;
    return HEFT_OK;
}

static heft_status check_optim(const heft_zero_files *z, uint32_t rank)
{
    uint32_t file = z->optims[rank];
    if (file == HEFT_NONE)
        return heft_zero_fail(z, z->states[0], HEFT_E_IO,
                              "there is no file of rank %U with optim_states", (uint64_t)rank);
    const heft_zero_facts *own = facts_of(z, file), *first = facts_of(z, z->optims[0]);
    if (!own)
        return heft_zero_fail(z, file, HEFT_E_UNSUPPORTED,
                              "the flat tensors of a rank are missing: neither fp32_flat_groups "
                              "nor single_partition_of_fp32_groups is in optimizer_state_dict");
    if (own->fault)
        return heft_zero_fail(z, file, HEFT_E_UNSUPPORTED, "%s", own->fault);
    if (own->ranks != z->ranks)
        return heft_zero_fail(z, file, HEFT_E_IO,
                              "partition_count states %U ranks, and the folder has %U files with "
                              "optim_states",
                              own->ranks, (uint64_t)z->ranks);
    if (own->stage != first->stage || own->groups != first->groups || own->flats != first->flats)
        return heft_zero_fail(z, file, HEFT_E_FORMAT,
                              "the file has another stage of ZeRO, or another number of groups, "
                              "than the file of rank 0");
    return HEFT_OK;
}

static heft_status check_optims(const heft_zero_files *z)
{
    for (uint32_t r = 0; r < z->ranks; r++)
        HEFT_TRY(check_optim(z, r));
    return z->ranks
               ? HEFT_OK
               : heft_zero_fail(z, z->states[0], HEFT_E_IO, "there are no files with optim_states");
}

static bool are_same(const heft_zero_shape *a, const heft_zero_shape *b, uint32_t count)
{
    bool same = true;
    for (uint32_t i = 0; i < count && same; i++) {
        same = heft_str_eq(a[i].name, b[i].name) && a[i].rank == b[i].rank &&
               a[i].group == b[i].group;
        for (uint32_t k = 0; k < a[i].rank && same; k++)
            same = a[i].dims[k] == b[i].dims[k];
    }
    return same;
}

static heft_status check_states(heft_zero_files *z)
{
    z->facts = facts_of(z, z->states[0]);
    if (!z->facts)
        return heft_zero_fail(z, z->states[0], HEFT_E_UNSUPPORTED,
                              "param_shapes is missing, which has the names and shapes of the "
                              "parameters");
    if (z->facts->fault)
        return heft_zero_fail(z, z->states[0], HEFT_E_FORMAT, "%s", z->facts->fault);
    for (uint32_t r = 1; r < z->state_count; r++) {
        if (z->states[r] == HEFT_NONE)
            return heft_zero_fail(z, z->states[0], HEFT_E_IO,
                                  "the files with model_states are not of ranks without a gap");
        const heft_zero_facts *own = facts_of(z, z->states[r]);
        bool same = own && !own->fault && own->param_count == z->facts->param_count &&
                    own->frozen_count == z->facts->frozen_count &&
                    are_same(own->params, z->facts->params, own->param_count) &&
                    are_same(own->frozen, z->facts->frozen, own->frozen_count);
        if (!same)
            return heft_zero_fail(z, z->states[r], HEFT_E_FORMAT,
                                  "the file states other parameters than that of rank 0");
    }
    return HEFT_OK;
}

/* ---- flat tensors ---- */

heft_status heft_zero_find(const heft_zero_files *z, uint32_t file, const char *prefix,
                           heft_str name, uint32_t *id)
{
    heft_str full = heft_arena_join(&z->x->arena, heft_lit(prefix), heft_lit("."), name);
    if (!full.ptr)
        return heft_error_no_memory(z->x->err, purpose);
    *id = heft_ix_find(z->files[file].x, full);
    return HEFT_OK;
}

static heft_status add_flat(heft_zero_files *z, uint32_t rank, uint32_t group)
{
    char digits[20];
    uint32_t file = z->optims[rank], id;
    const heft_index *x = z->files[file].x;
    heft_str number = { digits, heft_u64_text(digits, group) };
    HEFT_TRY(heft_zero_find(z, file, facts_of(z, file)->flats, number, &id));
    const heft_ix_tensor_row *t = id == HEFT_NONE ? NULL : heft_ix_row(x, id);
    if (!t || t->layout || t->rank != 1 || t->part_count != 1)
        return heft_zero_fail(z, file, HEFT_E_FORMAT,
                              "a flat tensor of the rank is missing, or has several dimensions");
    const heft_ix_part_row *p = heft_ix_part_row_at(x, t->first_part);
    if (!heft_ix_is_plain(p) || !heft_dtype_size(t->dtype))
        return heft_zero_fail(z, file, HEFT_E_UNSUPPORTED,
                              "a flat tensor of the rank is compressed, strided or byte-swapped");
    z->type = rank || group ? z->type : t->dtype;
    if (t->dtype != z->type)
        return heft_zero_fail(z, file, HEFT_E_FORMAT,
                              "the flat tensors of the ranks differ in their element types");
    z->flats[(size_t)rank * z->groups + group] = (heft_zero_flat){
        .offset = heft_global_offset(z->files[file].number, p->offset),
        .elements = *heft_ix_dims(x, id),
    };
    return HEFT_OK;
}

static heft_status add_flats(heft_zero_files *z)
{
    uint64_t all = (uint64_t)z->ranks * z->groups;
    z->flats = all < SIZE_MAX / sizeof *z->flats - 1
                   ? heft_arena_alloc(&z->x->arena, ((size_t)all + 1) * sizeof *z->flats, 8)
                   : NULL;
    if (!z->flats)
        return heft_error_no_memory(z->x->err, purpose);
    for (uint32_t r = 0; r < z->ranks; r++)
        for (uint32_t g = 0; g < z->groups; g++)
            HEFT_TRY(add_flat(z, r, g));
    return HEFT_OK;
}

heft_status heft_zero_find_files(heft_zero_files *z, heft_index *x, heft_rank_file *files,
                                 uint32_t count)
{
    *z = (heft_zero_files){ .x = x, .files = files };
    z->states = heft_arena_alloc(&x->arena, 3 * (size_t)count * sizeof *z->states, 4);
    if (!z->states)
        return heft_error_no_memory(x->err, purpose);
    z->optims = z->states + count;
    z->tensors = z->optims + count;
    for (uint32_t i = 0; i < 2 * count; i++)
        z->states[i] = HEFT_NONE;
    for (uint32_t i = 0; i < count; i++)
        HEFT_TRY(add_file(z, i, count));
    if (z->states[0] == HEFT_NONE)
        return heft_zero_fail(z, 0, HEFT_E_IO, "there is no file of rank 0 with model_states");

    heft_rank_name name;
    bool has_copies = heft_rank_name_read(&name, files[z->states[0]].name) && !name.is_cut;
    heft_status st = check_states(z);
    if (z->tensor_count) {
        z->stage = has_copies ? 1 : 3;
        z->ranks = z->state_count;
        return st;
    }
    if (!st)
        st = check_optims(z);
    if (st && st != HEFT_E_NOMEM && has_copies) {
        heft_str why = heft_lit(x->err->message);
        z->missing = heft_ix_copy(x, (heft_str){ why.ptr, why.len + 1 });
        return z->missing.ptr ? HEFT_OK : HEFT_E_NOMEM;
    }
    HEFT_TRY(st);
    const heft_zero_facts *first = facts_of(z, z->optims[0]);
    z->stage = first->stage;
    z->groups = first->groups;
    if ((z->stage == 3) == has_copies)
        return heft_zero_fail(z, z->optims[0], HEFT_E_FORMAT,
                              "the stage of ZeRO, %U, contradicts the name of the file with "
                              "model_states",
                              z->stage);
    return add_flats(z);
}
