/* piece_join.c - joins the pieces of tensors that several files of a model have, each as a tensor
 * with the same name, to assembled tensors. */
#include "core/shards/shard_join.h"

#include "base/bisect.h"
#include "base/sort.h"
#include "model/boxes.h"
#include "model/names.h"

typedef struct piece { /* a tensor of a file with pieces */
    heft_str name, stored_dtype;
    const uint64_t *sizes;           /* shape of the piece */
    const uint64_t *offsets, *whole; /* offsets in the tensor of the model, and its shape */
    heft_ix_tensor_row tensor;
    heft_ix_part_row part;
    uint32_t file; /* number of the file, for heft_global_offset() */
    uint32_t next; /* the next piece of the tensor, or HEFT_NONE */
    uint32_t last; /* the last piece of the tensor, if this is the first */
    uint32_t id;   /* the tensor in the joined index */
    bool may_repeat, is_replica;
} piece;

typedef struct piece_join {
    heft_file *f;
    piece *all;
    uint32_t count;
    uint64_t *dims;    /* shape of the tensor that is joined */
    uint32_t capacity; /* dimensions for which there is memory */
    uint32_t *order;   /* pieces of the tensor by their boxes, and scratch of the same size */
    bool is_unstated;  /* some pieces do not state the shape of the tensor */
    heft_error *err;
} piece_join;

static const char purpose[] = "to join pieces of tensors";

static heft_str name_of(const void *ctx, uint32_t i)
{
    return ((const piece *)ctx)[i].name;
}

static uint32_t pieces_of(const heft_index *x)
{
    return x->has_pieces ? x->pieces.len : 0;
}

/* ---- collecting ---- */

static bool add_file(piece_join *j, const heft_joined_file *from)
{
    const heft_index *x = &from->file->x;
    heft_arena *arena = &j->f->x.arena;
    const heft_str end = { "", 0 };
    for (uint32_t i = 0; i < pieces_of(x); i++) {
        const heft_ix_piece *row = (const heft_ix_piece *)x->pieces.ptr + i;
        piece *p = &j->all[j->count];
        heft_str name = heft_ix_name(x, row->tensor);
        if (from->prefix.len)
            name = heft_arena_join(arena, from->prefix, name, end);
        if (!name.ptr)
            return false;
        *p = (piece){ .name = name,
                      .stored_dtype = heft_ix_stored_dtype(x, row->tensor),
                      .sizes = heft_ix_dims(x, row->tensor),
                      .tensor = *heft_ix_row(x, row->tensor),
                      .file = from->first_shard,
                      .next = HEFT_NONE,
                      .last = j->count++,
                      .may_repeat = row->may_repeat };
        if (p->tensor.rank) {
            p->offsets = (const uint64_t *)x->box_numbers.ptr + row->numbers;
            p->whole = p->offsets + p->tensor.rank;
        }
        if (p->tensor.part_count)
            p->part = *heft_ix_part_row_at(x, p->tensor.first_part);
    }
    return true;
}

/* Link the pieces of each tensor; the first piece stands for the tensor. */
static bool link_pieces(piece_join *j, uint8_t *is_first)
{
    heft_names seen = { NULL, 0, 0 };
    heft_names_of of = { name_of, j->all };
    if (!heft_names_reserve(&j->f->x.mem, &seen, j->count))
        return false;
    for (uint32_t i = 0; i < j->count; i++) {
        heft_str name = name_of(j->all, i);
        uint32_t hash = heft_names_hash(&j->f->x.key, name);
        uint32_t first = heft_names_add(&seen, of, hash, name, i);
        is_first[i] = first == HEFT_NONE;
        if (first == HEFT_NONE)
            continue;
        j->all[j->all[first].last].next = i;
        j->all[first].last = i;
    }
    heft_names_free(&j->f->x.mem, &seen);
    return true;
}

/* ---- one tensor ---- */

static heft_status fail(const piece_join *j, const piece *p, heft_status st, const char *what)
{
    return heft_error_plain(j->err, st, "tensor %q: its piece in %q %s", p->name,
                            heft_shard_name(j->f, p->file), what);
}

/* Enlarge the shape by a piece; the sizes that pieces state must be the same. */
static heft_status add_to_shape(piece_join *j, const piece *first, const piece *p)
{
    const heft_ix_tensor_row *t = &p->tensor;
    const uint64_t *stated = p->whole;
    uint64_t end;
    if (t->rank != first->tensor.rank || t->dtype != first->tensor.dtype ||
        !heft_str_eq(p->stored_dtype, first->stored_dtype))
        return fail(j, p, HEFT_E_FORMAT,
                    "has another element type or number of dimensions than "
                    "the piece in another file");
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!heft_add(&end, p->offsets[i], p->sizes[i]))
            return fail(j, p, HEFT_E_FORMAT, "passes 2^64 elements");
        bool contradicts = stated[i] != HEFT_NOWHERE &&
                           (p == first ? end > stated[i] : j->dims[i] != stated[i]);
        if (contradicts)
            return fail(j, p, HEFT_E_FORMAT,
                        "states another shape of the whole tensor than the "
                        "piece in another file, or leaves that shape");
        j->is_unstated = j->is_unstated || stated[i] == HEFT_NOWHERE;
        uint64_t dim = stated[i] == HEFT_NOWHERE ? end : stated[i];
        j->dims[i] = p == first || dim > j->dims[i] ? dim : j->dims[i];
    }
    return HEFT_OK;
}

static heft_status reserve(piece_join *j, uint32_t rank)
{
    if (rank <= j->capacity)
        return HEFT_OK;
    j->dims = heft_arena_alloc(&j->f->x.arena, (size_t)rank * sizeof *j->dims, 8);
    j->capacity = rank;
    return j->dims ? HEFT_OK : heft_error_no_memory(j->err, purpose);
}

/* Order by offsets, then by sizes. */
static int order_boxes(const piece *p, const piece *q)
{
    for (uint32_t i = 0; i < p->tensor.rank; i++)
        if (p->offsets[i] != q->offsets[i])
            return p->offsets[i] < q->offsets[i] ? -1 : 1;
    for (uint32_t i = 0; i < p->tensor.rank; i++)
        if (p->sizes[i] != q->sizes[i])
            return p->sizes[i] < q->sizes[i] ? -1 : 1;
    return 0;
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const piece *all = ctx;
    return order_boxes(&all[a], &all[b]) < 0;
}

/* Find the pieces that have the same box as one before. */
static void mark_replicas(piece_join *j, uint32_t first)
{
    uint32_t n = 0;
    for (uint32_t i = first; i != HEFT_NONE; i = j->all[i].next)
        if (j->all[i].may_repeat)
            j->order[n++] = i;
    heft_sort(j->order, j->order + j->count, n, is_before, j->all);
    for (uint32_t i = 1; i < n; i++) /* the sort is stable: the first in its order is kept */
        j->all[j->order[i]].is_replica = !order_boxes(&j->all[j->order[i - 1]],
                                                      &j->all[j->order[i]]);
}

static heft_status add_box(piece_join *j, const piece *p)
{
    const heft_ix_tensor_row *t = &p->tensor;
    if (t->layout || t->part_count != 1)
        return fail(j, p, HEFT_E_UNSUPPORTED, "is sparse or has several parts");
    heft_ix_box box = { .offset = heft_global_offset(p->file, p->part.offset),
                        .length = p->part.stored };
    if (!heft_ix_is_plain(&p->part)) { /* strided, such as a slice of columns */
        box.holds = HEFT_BOX_PART;
        box.length = t->first_part;
    }
    if (p->is_replica)
        box.holds |= HEFT_BOX_REPLICA;
    return heft_ix_box_add(&j->f->x, HEFT_NOWHERE, box, p->offsets, p->sizes);
}

static heft_status add_tensor(const piece_join *j, const piece *first, uint32_t *id)
{
    heft_index *x = &j->f->x;
    uint64_t *dims;
    heft_str name = heft_ix_copy(x, first->name);
    HEFT_TRY(name.ptr ? heft_ix_tensor(x, name, first->tensor.dtype, first->tensor.rank, &dims, id)
                      : HEFT_E_NOMEM);
    if (first->tensor.rank)
        memcpy(dims, j->dims, first->tensor.rank * sizeof *dims);
    return heft_ix_assembled_begin(x, *id, false);
}

/* A gap follows from a shard that is missing, if there is one. */
static heft_status end_tensor(const piece_join *j)
{
    heft_status st = heft_ix_assembled_end(&j->f->x, HEFT_NOWHERE);
    if (st != HEFT_E_FORMAT || !j->f->missing)
        return st;
    *j->err = *j->f->missing;
    return j->f->missing->status;
}

static heft_status join_tensor(piece_join *j, uint32_t number)
{
    heft_index *x = &j->f->x;
    const piece *first = &j->all[number];
    uint32_t id;
    HEFT_TRY(reserve(j, first->tensor.rank));
    for (uint32_t i = number; i != HEFT_NONE; i = j->all[i].next)
        HEFT_TRY(add_to_shape(j, first, &j->all[i]));
    mark_replicas(j, number);
    HEFT_TRY(add_tensor(j, first, &id));
    for (uint32_t i = number; i != HEFT_NONE; i = j->all[i].next) {
        j->all[i].id = id;
        HEFT_TRY(add_box(j, &j->all[i]));
    }
    HEFT_TRY(end_tensor(j));
    return first->stored_dtype.ptr
               ? heft_ix_attr_text(x, id, heft_lit("stored_dtype"), first->stored_dtype)
               : HEFT_OK;
}

/* ---- all tensors ---- */

static uint32_t piece_of(const heft_index *x, uint32_t tensor)
{
    const heft_ix_piece *rows = x->pieces.ptr;
    heft_bisect b = { .end = x->pieces.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, rows[b.mid].tensor < tensor);
    return b.first < x->pieces.len && rows[b.first].tensor == tensor ? b.first : HEFT_NONE;
}

/* Let the checksums of a file's pieces be those of the joined tensors.  pieces: of the file. */
static void join_checksums(piece_join *j, const heft_joined_file *from, const piece *pieces)
{
    const heft_stored_checksum *own = from->file->x.checksums.ptr;
    heft_stored_checksum *joined = j->f->x.checksums.ptr;
    for (uint32_t i = 0; i < from->file->x.checksums.len; i++) {
        uint32_t row = own[i].tensor == HEFT_NONE ? HEFT_NONE
                                                  : piece_of(&from->file->x, own[i].tensor);
        if (row == HEFT_NONE)
            continue;
        joined[from->first_checksum + i].tensor = pieces[row].id;
        joined[from->first_checksum + i].covers_piece = !own[i].covers_metadata_only;
    }
}

heft_status heft_join_pieces(heft_file *f, heft_error *err)
{
    piece_join j = { .f = f, .err = err };
    heft_memory *mem = &f->x.mem;
    uint64_t total = 0;
    for (uint32_t m = 0; m < f->joined_count; m++)
        total += pieces_of(&f->joined_files[m].file->x);
    if (!total)
        return HEFT_OK;
    size_t bytes = (size_t)total * (sizeof *j.all + 2 * sizeof *j.order + 1);
    j.all = total <= UINT32_MAX / 2 ? heft_mem_alloc(mem, bytes) : NULL;
    if (!j.all)
        return heft_error_no_memory(err, purpose);
    j.order = (uint32_t *)(void *)(j.all + total);
    uint8_t *is_first = (uint8_t *)(j.order + 2 * total);
    bool has_memory = true;
    for (uint32_t m = 0; m < f->joined_count && has_memory; m++)
        has_memory = add_file(&j, &f->joined_files[m]);
    has_memory = has_memory && link_pieces(&j, is_first);
    heft_status st = has_memory ? HEFT_OK : heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < j.count && !st; i++)
        if (is_first[i])
            st = join_tensor(&j, i);
    const piece *pieces = j.all;
    for (uint32_t m = 0; m < f->joined_count && !st; m++) {
        join_checksums(&j, &f->joined_files[m], pieces);
        pieces += pieces_of(&f->joined_files[m].file->x);
    }
    if (!st && j.is_unstated)
        st = heft_join_left_out(f, "heft/pieces-end",
                                "the files state neither the shapes of whole tensors nor the "
                                "number of ranks: a missing last rank would go unnoticed, and "
                                "tensors be too short; compare the number of files with that of "
                                "ranks");
    heft_mem_free(mem, j.all, bytes);
    return st;
}

heft_status heft_note_pieces(heft_file *f, heft_error *err)
{
    if (!f->x.has_pieces)
        return HEFT_OK;
    return heft_join_left_out(f, "heft/pieces",
                              "the file has pieces of tensors of a distributed checkpoint, "
                              "which are not joined: open the folder to join them")
               ? heft_error_no_memory(err, purpose)
               : HEFT_OK;
}
