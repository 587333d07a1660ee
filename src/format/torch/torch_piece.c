/* torch_piece.c - pieces of tensors in the files of ranks: DTensor of FSDP2 and tensor parallelism,
 * and ShardedTensor of FSDP1.
 *
 * A DTensor has a local tensor and a DTensorSpec: the mesh of ranks, the coordinates of this rank,
 * and a placement for each dimension of the mesh.  Shard(d) cuts dimension d as torch.chunk() does;
 * Replicate() cuts nothing.  _StridedShard(d) of FSDP cuts what a later Shard(d) of tensor
 * parallelism has left.  A ShardedTensor states offsets and sizes.
 *
 * Reference: torch/distributed/tensor and torch/distributed/_shard of PyTorch 2. */
#include "format/torch/torch.h"
#include "model/boxes.h"

typedef struct place { /* position of a piece in its tensor */
    heft_str name;
    uint64_t at;
    uint64_t *offsets, *sizes, *whole; /* `rank` numbers each */
    uint32_t rank;
    uint32_t local; /* the call that rebuilds the piece */
} place;

typedef struct cut {      /* a placement that cuts */
    uint64_t dim, factor; /* factor 0: not strided */
    uint64_t ranks, coordinate;
} cut;

static heft_status fail(const heft_torch *t, const place *p, heft_status st, const char *what)
{
    return heft_error_set(t->x->err, st, p->at, "tensor %q: %s", p->name, what);
}

/* Reserve numbers for the rank of the whole tensor, whose shape is `size`. */
static heft_status begin_place(heft_torch *t, place *p, uint32_t size)
{
    if (!heft_torch_sizes(t, &size, &p->rank))
        return t->st ? t->st
                     : fail(t, p, HEFT_E_FORMAT,
                            "the shape of the whole tensor is not a tuple of numbers");
    p->offsets = heft_arena_alloc(&t->x->arena, (3 * (size_t)p->rank + 1) * sizeof *p->offsets, 8);
    if (!p->offsets)
        return heft_error_no_memory(t->x->err, "for a piece of a tensor");
    p->sizes = p->offsets + p->rank;
    p->whole = p->sizes + p->rank;
    for (uint32_t i = 0; i < p->rank; i++) {
        heft_pickle_u64(&p->whole[i], &t->p, heft_pickle_item(&t->p, size, i));
        p->sizes[i] = p->whole[i];
        p->offsets[i] = 0;
    }
    return HEFT_OK;
}

/* ---- DTensor ---- */

enum { MAX_MESH = 8 }; /* dimensions of a mesh */

/* Keep what this rank has of dimension c->dim, as torch.chunk() cuts it. */
static void apply(place *p, const cut *c)
{
    uint64_t size = p->sizes[c->dim];
    uint64_t each = heft_div(size, c->ranks) + (size - heft_div(size, c->ranks) * c->ranks > 0);
    uint64_t from = c->coordinate * each < size ? c->coordinate * each : size;
    p->offsets[c->dim] += from;
    p->sizes[c->dim] = size - from < each ? size - from : each;
}

/* A strided shard cuts what later shards of the same dimension have left.  Uneven ones are laid out
 * in another way. */
static heft_status check_strided(const heft_torch *t, const place *p, const cut *cuts,
                                 uint32_t count, uint32_t i)
{
    uint64_t factor = 1, size = p->whole[cuts[i].dim];
    for (uint32_t k = i + 1; k < count; k++)
        if (cuts[k].dim == cuts[i].dim)
            factor *= cuts[k].factor ? 0 : cuts[k].ranks;
    uint64_t pieces = factor * cuts[i].ranks;
    if (factor != cuts[i].factor || !pieces || heft_div(size, pieces) * pieces != size)
        return fail(t, p, HEFT_E_UNSUPPORTED,
                    "its placement _StridedShard is uneven, or does not fit the other placements");
    return HEFT_OK;
}

static heft_status apply_cuts(const heft_torch *t, place *p, const cut *cuts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!cuts[i].factor)
            apply(p, &cuts[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (!cuts[i].factor)
            continue;
        HEFT_TRY(check_strided(t, p, cuts, count, i));
        apply(p, &cuts[i]);
    }
    return HEFT_OK;
}

/* Ranks in another order than ascending are unusual: PyTorch's own functions disagree about them.
 * The coordinates count, as in a distributed checkpoint. */
static heft_status note_order(heft_torch *t, const place *p, uint32_t mesh)
{
    heft_torch_contiguous c;
    heft_status st = heft_torch_contiguous_of(t, p->name, mesh, &c);
    if (st) /* strided: a slice of a mesh of more dimensions */
        return st == HEFT_E_UNSUPPORTED ? HEFT_OK : st;
    if (c.storage->is_mesh)
        return HEFT_OK;
    uint32_t size = heft_dtype_size(c.type->type);
    bool is_known = (c.type->type == HEFT_I32 || c.type->type == HEFT_I64) &&
                    c.encoding == HEFT_RAW;
    heft_cur bytes = heft_cur_whole(t->in, c.where.offset, is_known ? c.length : 0, "a mesh");
    uint64_t before = 0;
    bool ascends = is_known;
    for (uint64_t i = 0; is_known && i < c.elements && !bytes.st; i++) {
        const uint8_t *at = heft_cur_take(&bytes, size);
        uint64_t rank = !at ? 0 : size == 4 ? heft_le32(at) : heft_le64(at);
        ascends = ascends && (!i || rank > before);
        before = rank;
    }
    if (bytes.st)
        return bytes.st;
    c.storage->is_mesh = true;
    if (!ascends && !t->is_big_endian)
        heft_ix_note(t->x, HEFT_NOTE, "torch/mesh-order", p->at, HEFT_NONE,
                     "the ranks of a mesh are not in ascending order: pieces are placed by the "
                     "coordinates of the ranks");
    return HEFT_OK;
}

/* Read the number of ranks along each dimension of the mesh, and the coordinates of this rank. */
static heft_status read_mesh(heft_torch *t, const place *p, uint32_t mesh, cut cuts[MAX_MESH],
                             uint32_t *dims)
{
    enum { SIZE = 2 };
    const heft_pickle *k = &t->p;
    uint32_t tensor = heft_torch_field(k, mesh, "mesh"),
             list = heft_torch_field(k, mesh, "_coordinate_on_dim"), item;
    heft_torch_interpretation m = { .kind = HEFT_TORCH_VALUE };
    if (tensor != HEFT_NONE)
        m = heft_torch_interpret(t, tensor);
    uint32_t size = m.kind == HEFT_TORCH_TENSOR ? heft_pickle_item(k, m.args, SIZE) : HEFT_NONE;
    if (!heft_torch_sizes(t, &size, dims) || *dims > MAX_MESH || !heft_pickle_is_sequence(k, list))
        return t->st ? t->st
                     : fail(t, p, HEFT_E_UNSUPPORTED,
                            "its mesh does not state the ranks and the coordinates of this rank");
    heft_pickle_items i = heft_pickle_items_of(k, list);
    uint32_t n = 0;
    for (; n < *dims && heft_pickle_next(k, &i, &item); n++)
        if (!heft_pickle_u64(&cuts[n].ranks, k, heft_pickle_item(k, size, n)) ||
            !heft_pickle_u64(&cuts[n].coordinate, k, item) || cuts[n].coordinate >= cuts[n].ranks)
            break;
    if (n < *dims || heft_pickle_at(k, list)->as.items.count != n)
        return fail(t, p, HEFT_E_FORMAT, "the coordinates of this rank are not in the mesh");
    return note_order(t, p, tensor);
}

/* Read a placement; *cuts_any: it cuts a dimension. */
static heft_status read_placement(const heft_torch *t, const place *p, uint32_t v, cut *c,
                                  bool *cuts_any)
{
    const heft_pickle *k = &t->p;
    bool is_strided = heft_torch_is(k, v, "_StridedShard");
    *cuts_any = is_strided || heft_torch_is(k, v, "Shard");
    c->factor = 0;
    if (!*cuts_any)
        return heft_torch_is(k, v, "Replicate")
                   ? HEFT_OK
                   : fail(t, p, HEFT_E_UNSUPPORTED,
                          "a placement is neither Shard nor Replicate: its numbers are parts of "
                          "sums, or unknown");
    if (!heft_pickle_u64(&c->dim, k, heft_torch_field(k, v, "dim")) || c->dim >= p->rank ||
        (is_strided &&
         (!heft_pickle_u64(&c->factor, k, heft_torch_field(k, v, "split_factor")) || !c->factor)))
        return fail(t, p, HEFT_E_FORMAT, "a placement has no dimension of the tensor");
    return HEFT_OK;
}

static heft_status place_dtensor(heft_torch *t, place *p, uint32_t spec, uint32_t size)
{
    const heft_pickle *k = &t->p;
    cut cuts[MAX_MESH] = { { 0 } };
    uint32_t dims, placements = heft_torch_field(k, spec, "placements"), count = 0;
    HEFT_TRY(begin_place(t, p, size));
    HEFT_TRY(read_mesh(t, p, heft_torch_field(k, spec, "mesh"), cuts, &dims));
    if (!heft_pickle_is(k, placements, HEFT_PICKLE_TUPLE) ||
        heft_pickle_at(k, placements)->as.items.count != dims)
        return fail(t, p, HEFT_E_FORMAT,
                    "it does not have a placement for each dimension of its "
                    "mesh");
    for (uint32_t i = 0; i < dims; i++) {
        bool cuts_any;
        cut c = cuts[i];
        HEFT_TRY(read_placement(t, p, heft_pickle_item(k, placements, i), &c, &cuts_any));
        if (cuts_any)
            cuts[count++] = c;
    }
    return apply_cuts(t, p, cuts, count);
}

/* ---- ShardedTensor ---- */

static heft_status read_numbers(const heft_torch *t, const place *p, uint32_t list, uint64_t *out)
{
    const heft_pickle *k = &t->p;
    uint32_t item, n = 0;
    bool fits = heft_pickle_is_sequence(k, list) &&
                heft_pickle_at(k, list)->as.items.count == p->rank;
    heft_pickle_items i = { .next = HEFT_NONE };
    if (fits)
        i = heft_pickle_items_of(k, list);
    while (fits && heft_pickle_next(k, &i, &item) && heft_pickle_u64(&out[n], k, item))
        n++;
    return fits && n == p->rank
               ? HEFT_OK
               : fail(t, p, HEFT_E_FORMAT, "a shard does not state its offsets and sizes");
}

/* Find the only shard of this rank; p->local is HEFT_NONE if the rank has none. */
static heft_status place_sharded(heft_torch *t, place *p, uint32_t shards, uint32_t metadata)
{
    const heft_pickle *k = &t->p;
    uint32_t shard, more;
    heft_pickle_items i = heft_pickle_items_of(k, shards);
    if (!HEFT_IS_LEAN)
        HEFT_TRY(begin_place(t, p, heft_torch_field(k, metadata, "size")));
    p->local = HEFT_NONE;
    if (!heft_pickle_next(k, &i, &shard))
        return HEFT_OK;
    if (heft_pickle_next(k, &i, &more))
        return fail(t, p, HEFT_E_UNSUPPORTED, "a rank has several shards of it");
    uint32_t where = heft_torch_field(k, shard, "metadata");
    p->local = heft_torch_field(k, shard, "tensor");
    if (p->local == HEFT_NONE)
        return fail(t, p, HEFT_E_FORMAT, "the shard of this rank has no tensor");
    if (HEFT_IS_LEAN)
        return HEFT_OK;
    HEFT_TRY(read_numbers(t, p, heft_torch_field(k, where, "shard_offsets"), p->offsets));
    return read_numbers(t, p, heft_torch_field(k, where, "shard_sizes"), p->sizes);
}

/* ---- the piece ---- */

static heft_status find_place(heft_torch *t, place *p, const heft_torch_interpretation *m)
{
    enum { SIZE = 2, SHARDS = 0, METADATA = 1, SHARDED_STATE = 5 };
    const heft_pickle *k = &t->p;
    uint32_t slots = heft_pickle_item(k, m->state, 1), shards = heft_pickle_item(k, m->state, 0);
    if (heft_pickle_is(k, slots, HEFT_PICKLE_DICT)) {
        HEFT_TRY(heft_torch_charge(t, heft_pickle_at(k, slots)->as.items.count, p->at));
        p->local = heft_pickle_dict_get(k, slots, "_local_tensor");
        if (p->local == HEFT_NONE)
            return fail(t, p, HEFT_E_FORMAT, "the DTensor of this rank has no _local_tensor");
        return HEFT_IS_LEAN ? HEFT_OK
                            : place_dtensor(t, p, heft_pickle_dict_get(k, slots, "_spec"),
                                            heft_pickle_item(k, m->args, SIZE));
    }
    if (heft_pickle_item(k, m->state, SHARDED_STATE - 1) != HEFT_NONE &&
        heft_pickle_is(k, shards, HEFT_PICKLE_LIST))
        return place_sharded(t, p, shards, slots);
    return fail(t, p, HEFT_E_UNSUPPORTED,
                "it is rebuilt by '_rebuild_wrapper_subclass', and neither a DTensor nor a "
                "ShardedTensor");
}

static heft_status check_shape(const heft_torch *t, const place *p, uint32_t id)
{
    bool is_same = heft_ix_row(t->x, id)->rank == p->rank;
    for (uint32_t i = 0; is_same && i < p->rank; i++)
        is_same = heft_ix_dims(t->x, id)[i] == p->sizes[i];
    return is_same ? HEFT_OK
                   : fail(t, p, HEFT_E_FORMAT,
                          "the piece of this rank has another shape than its placement says");
}

heft_status heft_torch_piece(heft_torch *t, heft_str name, const heft_torch_interpretation *m)
{
    place p = { .name = name, .at = heft_pickle_offset(&t->p, m->value), .local = HEFT_NONE };
    uint32_t id = heft_ix_tensors(t->x);
    heft_status st = find_place(t, &p, m);
    if (st)
        return heft_torch_leave_unsupported(t, st, p.at);
    t->x->has_pieces = true;
    if (p.local == HEFT_NONE)
        return HEFT_OK;
    heft_torch_interpretation local = heft_torch_interpret(t, p.local);
    if (local.kind != HEFT_TORCH_TENSOR)
        return fail(t, &p, HEFT_E_FORMAT, "the piece of this rank is not a tensor");
    HEFT_TRY(heft_torch_tensor(t, name, &local));
    if (heft_ix_tensors(t->x) == id) /* it was left out */
        return HEFT_OK;
    if (HEFT_IS_LEAN)
        return HEFT_OK;
    HEFT_TRY(check_shape(t, &p, id));
    return heft_ix_piece_add(t->x, id, p.offsets, p.whole, true);
}

/* ---- after all tensors ---- */

/* Warn about a file of Megatron, mp_rank_00/model_optim_rng.pt: its arguments say how many files
 * have parts of the model. */
static void warn_of_megatron(heft_index *x)
{
    static const char *const counts[] = { "args.tensor_model_parallel_size",
                                          "args.pipeline_model_parallel_size",
                                          "args.expert_model_parallel_size" };
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            if (v->kind == HEFT_KIND_INT && v->as.i > 1 && heft_str_is(v->key, counts[k])) {
                heft_ix_left_out(x, HEFT_LEFT_OUT, "torch/rank-alone",
                                 (heft_range){ HEFT_NOWHERE, 0 },
                                 "%q is %U: this is the file of one rank of Megatron, and its "
                                 "tensors are parts of those of the model, or some of them",
                                 v->key, (uint64_t)v->as.i);
                return;
            }
    }
}

/* Warn about a file of DeepSpeed whose tensors are those of one rank.  ZeRO-3 leaves empty tensors,
 * whose elements are in other files. */
static void warn_of_rank(heft_torch *t)
{
    const heft_pickle *p = &t->p;
    heft_index *x = t->x;
    uint32_t root = heft_torch_interpret(t, p->root).value, empty = 0;
    uint64_t ranks, copies, at = heft_pickle_offset(p, root);
    if (!heft_pickle_u64(&ranks, p, heft_pickle_dict_get(p, root, "mp_world_size")) ||
        !heft_pickle_u64(&copies, p, heft_pickle_dict_get(p, root, "dp_world_size")))
        return;
    if (ranks > 1)
        heft_ix_note(x, HEFT_WARNING, "torch/rank-alone", at, HEFT_NONE,
                     "this is the file of one rank of tensor parallelism: its tensors are parts of "
                     "those of the model");
    if (heft_pickle_is(p, heft_pickle_dict_get(p, root, "param_shapes"), HEFT_PICKLE_LIST))
        for (uint32_t i = 0; i < heft_ix_tensors(x); i++)
            empty += heft_ix_row(x, i)->rank == 1 && !*heft_ix_dims(x, i);
    if (empty)
        heft_ix_note_format(
            x, HEFT_WARNING, "torch/rank-alone", (heft_range){ at, 0 }, HEFT_NONE,
            "%U of the tensors are empty: DeepSpeed ZeRO-3 has their elements in the "
            "files of all ranks; open the folder to join them",
            (uint64_t)empty);
}

heft_status heft_torch_end_pieces(heft_torch *t)
{
    heft_index *x = t->x;
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++) {
        heft_str name = heft_ix_name(x, i);
        const heft_torch_type *type = heft_torch_type_named(heft_ix_stored_dtype(x, i));
        if (x->has_pieces && type && type->is_quantized)
            return heft_error_plain(x->err, HEFT_E_UNSUPPORTED,
                                    "tensor %q of a rank is quantized: pieces with scales of their "
                                    "own are not joined",
                                    name);
        if (heft_str_ends(name, "_flat_param"))
            return heft_error_plain(x->err, HEFT_E_UNSUPPORTED,
                                    "tensor %q is a flat parameter of FSDP, several tensors in one "
                                    "whose layout only the model knows: save the checkpoint with "
                                    "SHARDED_STATE_DICT or FULL_STATE_DICT",
                                    name);
    }
    if (HEFT_IS_LEAN)
        return HEFT_OK;
    warn_of_rank(t);
    warn_of_megatron(x);
    return x->has_pieces ? heft_ix_pieces_fill(x) : HEFT_OK;
}
