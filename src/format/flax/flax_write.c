/* flax_write.c - plans and writes trees of Flax; flax.c shows the layout.
 *
 * The keys of a name are what "/" separates.  Tensors and metadata are sorted by their keys, so
 * that the entries of a map follow one another; the heads and keys of maps stand before the first
 * entry, in the record header of the array that follows.
 */
#include "base/sort.h"
#include "format/flax/flax.h"
#include "format/losses.h"
#include "format/shard_index.h"
#include "grammar/msgpack.h"

typedef struct entry { /* a leaf of the tree: a tensor or a metadata value */
    heft_str name;
    uint32_t shared; /* bytes of the name that it shares with the entry before: whole keys */
    uint32_t maps;   /* index in tree.counts of the first map that the entry opens */
    uint32_t number; /* number of the tensor or of the value */
    bool is_tensor;
} entry;

typedef struct tree { /* heft_plan.priv */
    entry *entries;
    uint32_t count;
    uint32_t *order;      /* entries by their keys */
    uint32_t *place;      /* by tensor: position in `order` */
    uint32_t *counts;     /* entries of each map, the root first, in the order of their heads */
    uint8_t *is_left_out; /* by metadata value */
    uint64_t piece_bytes; /* most bytes of an array in one piece */
} tree;

/* ---- what can be stored ---- */

static uint64_t data_bytes(const heft_index *x, uint32_t t)
{
    return heft_ix_part_row_at(x, heft_ix_row(x, t)->first_part)->length;
}

static uint32_t depth_of(heft_str name)
{
    uint32_t depth = 1;
    for (size_t i = 0; i < name.len; i++)
        depth += name.ptr[i] == HEFT_FLAX_SEPARATOR;
    return depth;
}

/* Return why a tensor cannot be stored, or NULL. */
static const char *unsupported_reason(const heft_plan *p, uint32_t t)
{
    heft_str name = heft_ix_name(p->x, t);
    if (!heft_loss_is_plain(p->x, t))
        return "only dense tensors can be stored in Flax's MessagePack";
    if (!heft_str_is_utf8(name))
        return "a name that is not UTF-8 cannot be stored in MessagePack";
    if (depth_of(name) > p->x->limits.depth)
        return "a name has too many keys, separated by \"/\"";
    return NULL;
}

/* An edit copies arrays as they are stored, and writes none in pieces. */
static bool is_large_addition(const heft_plan *p, uint32_t t)
{
    const heft_ix_part_row *part = heft_ix_part_row_at(p->x, heft_ix_row(p->x, t)->first_part);
    return p->existing && part->length > heft_flax_piece_bytes &&
           heft_global_offset_file(p->existing, part->offset);
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const char *reason = unsupported_reason(p, t);
    if (reason)
        return heft_loss_tensor(p, "flax/tensor", t, reason);
    if (!heft_flax_type_name(heft_ix_row(p->x, t)->dtype))
        return heft_loss_type(p, "flax/dtype", t, "Flax");
    if (is_large_addition(p, t))
        return heft_loss_tensor(p, "flax/size", t,
                                "an array of more than 1 GiB cannot be appended: use heft merge");
    return HEFT_OK;
}

static bool is_number_type(heft_dtype t)
{
    return t == HEFT_BOOL || t == HEFT_F32 || t == HEFT_F64 || heft_dtype_is_int(t);
}

static bool is_scalar(const heft_value *v)
{
    return v->kind <= HEFT_KIND_BYTES;
}

static bool are_scalars(const heft_index *x, uint32_t list)
{
    for (uint32_t i = list + 1; i < heft_ix_value_next(x, list); i++)
        if (!is_scalar(heft_ix_value(x, i)))
            return false;
    return true;
}

/* Return true if Flax restores the value as what it is, in a tree that has an array.  Texts and
 * lists do not belong to a tree of arrays: they stay in a file that has them, but other formats'
 * are not added. */
static bool is_leaf(const heft_plan *p, uint32_t i)
{
    const heft_value *v = heft_ix_value(p->x, i);
    if (!heft_ix_tensors(p->x) || !heft_str_is_utf8(v->key) ||
        depth_of(v->key) > p->x->limits.depth)
        return false;
    if (v->kind <= HEFT_KIND_FLOAT)
        return true;
    if (v->kind == HEFT_KIND_MAP)
        return !v->as.container.count;
    if (!p->existing || v->kind == HEFT_KIND_ID128)
        return false;
    return v->kind == HEFT_KIND_ARRAY  ? is_number_type(v->as.array.dtype)
           : v->kind == HEFT_KIND_LIST ? are_scalars(p->x, i)
                                       : heft_msgpack_can_count(v->as.s.len);
}

static heft_status plan_values(heft_plan *p, tree *w)
{
    for (uint32_t i = 0; i < p->x->values.len; i = heft_ix_value_next(p->x, i)) {
        w->is_left_out[i] = !is_leaf(p, i);
        if (w->is_left_out[i])
            HEFT_TRY(heft_loss_report(p, HEFT_WARNING, "flax/metadata", HEFT_NONE,
                                      "metadata %q is left out: a tree of Flax has numbers only",
                                      heft_ix_value(p->x, i)->key));
    }
    return HEFT_OK;
}

/* ---- the tree ---- */

/* Order by keys: a separator is less than any other byte.  A value precedes a tensor of its
 * name. */
static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    const entry *ea = (const entry *)ctx + a, *eb = (const entry *)ctx + b;
    heft_str x = ea->name, y = eb->name;
    size_t i = 0, len = x.len < y.len ? x.len : y.len;
    while (i < len && x.ptr[i] == y.ptr[i])
        i++;
    if (i == len)
        return x.len != y.len ? x.len < y.len : !ea->is_tensor && eb->is_tensor;
    return x.ptr[i] == HEFT_FLAX_SEPARATOR ||
           (y.ptr[i] != HEFT_FLAX_SEPARATOR && (uint8_t)x.ptr[i] < (uint8_t)y.ptr[i]);
}

static void list_entries(const heft_plan *p, tree *w)
{
    w->count = 0;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        if (!(heft_ix_row(p->x, t)->flags & HEFT_T_DROPPED))
            w->entries[w->count++] =
                (entry){ .name = heft_ix_name(p->x, t), .number = t, .is_tensor = true };
    for (uint32_t i = 0; i < p->x->values.len; i = heft_ix_value_next(p->x, i))
        if (!w->is_left_out[i])
            w->entries[w->count++] = (entry){ .name = heft_ix_value(p->x, i)->key, .number = i };
    heft_sort_numbers(w->order, w->count, is_before, w->entries);
}

/* Return true if a name is that of another entry, or of a map that holds it. */
static bool is_taken(heft_str name, heft_str by)
{
    return by.len >= name.len && heft_str_eq((heft_str){ by.ptr, name.len }, name) &&
           (by.len == name.len || by.ptr[name.len] == HEFT_FLAX_SEPARATOR);
}

/* Leave out each entry with the name of a map. */
static heft_status refuse_conflicts(heft_plan *p, tree *w)
{
    for (uint32_t i = 0; i + 1 < w->count; i++) {
        const entry *e = &w->entries[w->order[i]];
        heft_str next = w->entries[w->order[i + 1]].name;
        if (!is_taken(e->name, next))
            continue;
        if (e->is_tensor) {
            heft_plan_drop(p, e->number);
            HEFT_TRY(heft_loss_report(p, HEFT_FAULT, "flax/name", e->number,
                                      "%q needs a map with the name of this tensor (--rename)",
                                      next));
        } else {
            w->is_left_out[e->number] = 1;
            HEFT_TRY(heft_loss_report(
                p, HEFT_WARNING, "flax/metadata", HEFT_NONE,
                "metadata %q is left out: %q has this name, or begins with it", e->name, next));
        }
    }
    return HEFT_OK;
}

/* Return the number of keys that two names share, and set *bytes to their length. */
static uint32_t shared_keys(heft_str x, heft_str y, uint32_t *bytes)
{
    uint32_t keys = 0;
    *bytes = 0;
    for (size_t i = 0; i < x.len && i < y.len && x.ptr[i] == y.ptr[i]; i++)
        if (x.ptr[i] == HEFT_FLAX_SEPARATOR) {
            keys++;
            *bytes = (uint32_t)i + 1;
        }
    return keys;
}

/* Count the entries of every map.  `open` has the numbers of the maps around the entry. */
static void count_entries(tree *w, uint32_t *open)
{
    uint32_t maps = 1;
    heft_str last = heft_lit("");
    open[0] = w->counts[0] = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        entry *e = &w->entries[w->order[i]];
        uint32_t depth = shared_keys(last, e->name, &e->shared);
        e->maps = maps;
        w->counts[open[depth]]++;
        for (size_t k = e->shared; k < e->name.len; k++)
            if (e->name.ptr[k] == HEFT_FLAX_SEPARATOR) {
                w->counts[maps] = 1;
                open[++depth] = maps++;
            }
        last = e->name;
    }
}

static heft_status plan_counts(heft_plan *p, tree *w)
{
    uint64_t maps = 1;
    for (uint32_t i = 0; i < w->count; i++)
        maps += depth_of(w->entries[i].name) - 1;
    uint32_t *open = heft_plan_alloc(p, (p->x->limits.depth + 1u) * sizeof *open);
    w->counts = maps <= SIZE_MAX / sizeof *w->counts
                    ? heft_plan_alloc(p, (size_t)maps * sizeof *w->counts)
                    : NULL;
    if (!open || !w->counts)
        return heft_error_no_memory(p->err, "to plan the file");
    count_entries(w, open);
    for (uint32_t i = 0; i < w->count; i++) {
        const entry *e = &w->entries[w->order[i]];
        if (!e->is_tensor)
            continue;
        w->place[e->number] = i;
        p->order[p->order_count++] = heft_ix_row(p->x, e->number)->first_part;
    }
    return HEFT_OK;
}

/* ---- arrays ---- */

typedef struct array { /* an array that is stored, or a piece of one */
    heft_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    uint64_t bytes;
} array;

static void put_payload_head(heft_out *o, const array *a)
{
    heft_msgpack_put_head(o, HEFT_MSGPACK_ARRAY, 3);
    heft_msgpack_put_head(o, HEFT_MSGPACK_ARRAY, a->rank);
    for (uint32_t i = 0; i < a->rank; i++)
        heft_msgpack_put_u64(o, a->dims[i]);
    heft_msgpack_put_text(o, heft_lit(heft_flax_type_name(a->dtype)));
    heft_msgpack_put_head(o, HEFT_MSGPACK_BYTES, (uint32_t)a->bytes);
}

/* Emit an array up to its bytes. */
static void put_array_head(heft_out *o, const array *a)
{
    heft_out count = heft_out_counting();
    put_payload_head(&count, a);
    heft_msgpack_put_ext(o, HEFT_FLAX_ARRAY, (uint32_t)(count.total + a->bytes));
    put_payload_head(o, a);
}

static void put_number_key(heft_out *o, uint64_t n)
{
    char digits[20];
    heft_msgpack_put_text(o, (heft_str){ digits, heft_u64_text(digits, n) });
}

/* ---- arrays in pieces ---- */

static bool is_in_pieces(const heft_plan *p, uint32_t t)
{
    return data_bytes(p->x, t) > ((const tree *)p->priv)->piece_bytes;
}

static uint64_t pieces_of(const heft_plan *p, uint32_t t)
{
    uint64_t most = ((const tree *)p->priv)->piece_bytes;
    return heft_div_up(data_bytes(p->x, t), most);
}

/* Emit piece i of an array up to its bytes. */
static void put_piece_head(const heft_plan *p, uint32_t t, uint64_t i, heft_out *o)
{
    uint64_t most = ((const tree *)p->priv)->piece_bytes, left = data_bytes(p->x, t) - i * most;
    heft_dtype dtype = heft_ix_row(p->x, t)->dtype;
    uint64_t bytes = left < most ? left : most;
    uint64_t count = heft_div(bytes, heft_dtype_size(dtype));
    put_number_key(o, i);
    put_array_head(o, &(array){ dtype, 1, &count, bytes });
}

/* Emit the map that stands for an array in pieces, up to the bytes of the first one. */
static void put_pieces_head(const heft_plan *p, uint32_t t, heft_out *o)
{
    enum { MEMBERS = 3 };
    uint32_t rank = heft_ix_row(p->x, t)->rank;
    heft_msgpack_put_head(o, HEFT_MSGPACK_MAP, MEMBERS);
    heft_msgpack_put_text(o, heft_lit(heft_flax_chunked));
    heft_msgpack_put_bool(o, true);
    heft_msgpack_put_text(o, heft_lit("shape"));
    heft_msgpack_put_head(o, HEFT_MSGPACK_MAP, rank);
    for (uint32_t i = 0; i < rank; i++) {
        put_number_key(o, i);
        heft_msgpack_put_u64(o, heft_ix_dims(p->x, t)[i]);
    }
    heft_msgpack_put_text(o, heft_lit("chunks"));
    heft_msgpack_put_head(o, HEFT_MSGPACK_MAP, (uint32_t)pieces_of(p, t));
    put_piece_head(p, t, 0, o);
}

/* Let the engine insert the heads of the pieces after the first one. */
static heft_status insert_pieces(heft_plan *p, uint32_t t, heft_insertion *all)
{
    enum { HEAD = 64 };
    uint64_t most = ((const tree *)p->priv)->piece_bytes;
    uint64_t from = heft_ix_part_row_at(p->x, heft_ix_row(p->x, t)->first_part)->offset;
    for (uint64_t i = 1; i < pieces_of(p, t); i++) {
        uint8_t *buf = heft_plan_alloc(p, HEAD);
        if (!buf)
            return HEFT_E_NOMEM;
        heft_out o = { .buf = buf, .cap = HEAD };
        put_piece_head(p, t, i, &o);
        HEFT_TRY(o.st);
        uint32_t n = p->insertion_count++;
        uint64_t before = n ? all[n - 1].before + all[n - 1].bytes.len : 0;
        all[n] = (heft_insertion){ from + i * most, before, { (const char *)buf, o.len } };
    }
    return HEFT_OK;
}

/* After the parts have their offsets. */
static heft_status plan_pieces(heft_plan *p)
{
    const tree *w = p->priv;
    uint64_t count = 0;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        count += is_in_pieces(p, t) ? pieces_of(p, t) - 1 : 0;
    if (count > UINT32_MAX / sizeof(heft_insertion))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "arrays have too many pieces");
    heft_insertion *all = count ? heft_plan_alloc(p, (size_t)count * sizeof *all) : NULL;
    if (count && !all)
        return HEFT_E_NOMEM;
    p->insertions = all;
    for (uint32_t i = 0; i < w->count && count; i++) {
        const entry *e = &w->entries[w->order[i]];
        if (e->is_tensor && is_in_pieces(p, e->number))
            HEFT_TRY(insert_pieces(p, e->number, all));
    }
    return HEFT_OK;
}

/* ---- writing ---- */

static void put_scalar(heft_out *o, const heft_value *v)
{
    uint64_t bits;
    uint32_t narrow;
    if (v->kind == HEFT_KIND_BOOL) {
        heft_msgpack_put_bool(o, v->as.b);
    } else if (v->kind == HEFT_KIND_INT) {
        heft_msgpack_put_i64(o, v->as.i);
    } else if (v->kind == HEFT_KIND_UINT) {
        heft_msgpack_put_u64(o, v->as.u);
    } else if (v->kind == HEFT_KIND_FLOAT && v->stored == HEFT_F32) {
        float single = (float)v->as.f;
        memcpy(&narrow, &single, sizeof narrow);
        heft_msgpack_put_f32(o, narrow);
    } else if (v->kind == HEFT_KIND_FLOAT) {
        memcpy(&bits, &v->as.f, sizeof bits);
        heft_msgpack_put_f64(o, bits);
    } else if (v->kind == HEFT_KIND_STR) {
        heft_msgpack_put_text(o, v->as.s);
    } else if (v->kind == HEFT_KIND_BYTES) {
        heft_msgpack_put_bytes(o, v->as.s);
    } else {
        heft_msgpack_put_nil(o);
    }
}

static void put_number(heft_out *o, heft_dtype t, const uint8_t *p)
{
    uint32_t size = heft_dtype_size(t);
    uint64_t bits = 0;
    for (uint32_t k = 0; k < size; k++)
        bits |= (uint64_t)p[k] << 8 * k;
    uint64_t top = UINT64_C(1) << (8 * size - 1);
    if (t == HEFT_BOOL)
        heft_msgpack_put_bool(o, bits);
    else if (t == HEFT_F32)
        heft_msgpack_put_f32(o, (uint32_t)bits);
    else if (t == HEFT_F64)
        heft_msgpack_put_f64(o, bits);
    else if (heft_dtype_is_signed_int(t))
        heft_msgpack_put_i64(o, (int64_t)((bits ^ top) - top));
    else
        heft_msgpack_put_u64(o, bits);
}

static void put_value(heft_out *o, const heft_index *x, uint32_t i)
{
    const heft_value *v = heft_ix_value(x, i);
    if (v->kind == HEFT_KIND_MAP) {
        heft_msgpack_put_head(o, HEFT_MSGPACK_MAP, 0);
    } else if (v->kind == HEFT_KIND_LIST) {
        heft_msgpack_put_head(o, HEFT_MSGPACK_ARRAY, v->as.container.count);
        for (uint32_t k = i + 1; k < v->as.container.end; k++)
            put_scalar(o, heft_ix_value(x, k));
    } else if (v->kind == HEFT_KIND_ARRAY) {
        heft_msgpack_put_head(o, HEFT_MSGPACK_ARRAY, v->as.array.count);
        for (uint32_t k = 0; k < v->as.array.count; k++)
            put_number(o, v->as.array.dtype,
                       (const uint8_t *)v->as.array.ptr +
                           (size_t)k * heft_dtype_size(v->as.array.dtype));
    } else {
        put_scalar(o, v);
    }
}

/* Emit the keys and heads that lead to an entry, and the entry itself without an array's data. */
static void put_entry(const heft_plan *p, const entry *e, heft_out *o)
{
    const tree *w = p->priv;
    uint32_t map = e->maps;
    size_t from = e->shared;
    for (size_t i = from; i < e->name.len; i++) {
        if (e->name.ptr[i] != HEFT_FLAX_SEPARATOR)
            continue;
        heft_msgpack_put_text(o, (heft_str){ e->name.ptr + from, i - from });
        heft_msgpack_put_head(o, HEFT_MSGPACK_MAP, w->counts[map++]);
        from = i + 1;
    }
    heft_msgpack_put_text(o, (heft_str){ e->name.ptr + from, e->name.len - from });
    if (!e->is_tensor) {
        put_value(o, p->x, e->number);
        return;
    }
    const heft_ix_tensor_row *row = heft_ix_row(p->x, e->number);
    if (is_in_pieces(p, e->number))
        put_pieces_head(p, e->number, o);
    else
        put_array_head(o, &(array){ row->dtype, row->rank, heft_ix_dims(p->x, e->number),
                                    data_bytes(p->x, e->number) });
}

/* Emit the values before position i, back to the tensor before them. */
static void put_values_before(const heft_plan *p, uint32_t i, heft_out *o)
{
    const tree *w = p->priv;
    uint32_t from = i;
    while (from && !w->entries[w->order[from - 1]].is_tensor)
        from--;
    for (; from < i; from++)
        put_entry(p, &w->entries[w->order[from]], o);
}

heft_status heft_flax_write_record_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    const tree *w = p->priv;
    uint32_t at = w->place[heft_ix_owner(p->x, part)];
    put_values_before(p, at, o);
    put_entry(p, &w->entries[w->order[at]], o);
    return o->st;
}

/* An empty tree has a head of three bytes, because a single one could be the first of a pickle. */
heft_status heft_flax_write_header(const heft_plan *p, heft_out *o)
{
    const tree *w = p->priv;
    if (w->counts[0])
        heft_msgpack_put_head(o, HEFT_MSGPACK_MAP, w->counts[0]);
    else
        heft_out_bytes(o, heft_flax_empty, sizeof heft_flax_empty);
    return o->st;
}

heft_status heft_flax_write_trailer(const heft_plan *p, heft_out *o)
{
    put_values_before(p, ((const tree *)p->priv)->count, o);
    return o->st;
}

/* ---- the plan ---- */

static heft_status plan_losses(heft_plan *p, tree *w)
{
    HEFT_TRY(heft_loss_parts(p, "flax/parts", NULL, "a file of Flax"));
    HEFT_TRY(heft_loss_attributes(p, "flax/attributes", 0));
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        HEFT_TRY(plan_tensor(p, t));
    heft_plan_compact(p);
    HEFT_TRY(plan_values(p, w));
    list_entries(p, w);
    HEFT_TRY(refuse_conflicts(p, w));
    heft_plan_compact(p);
    list_entries(p, w);
    if (p->requested_align > 1)
        return heft_plan_warn(p, "flax/align", "arrays in MessagePack are not aligned");
    return HEFT_OK;
}

heft_status heft_flax_plan(heft_plan *p)
{
    size_t tensors = heft_ix_tensors(p->x), most = tensors + p->x->values.len;
    tree *w = heft_plan_alloc(p, sizeof *w);
    if (!w)
        return HEFT_E_NOMEM;
    w->entries = heft_plan_alloc(p, most * sizeof *w->entries);
    w->order = heft_plan_alloc(p, 2 * most * sizeof *w->order);
    w->place = heft_plan_alloc(p, tensors * sizeof *w->place);
    w->is_left_out = heft_plan_alloc(p, p->x->values.len);
    p->order = heft_plan_alloc(p, tensors * sizeof *p->order);
    if (!w->entries || !w->order || !w->place || !w->is_left_out || !p->order)
        return HEFT_E_NOMEM;
    w->piece_bytes = p->existing ? UINT64_MAX : heft_flax_piece_bytes;
    p->priv = w;
    p->align = 1;
    HEFT_TRY(plan_losses(p, w));
    HEFT_TRY(plan_counts(p, w));
    heft_out count = heft_out_counting();
    HEFT_TRY(heft_flax_write_header(p, &count));
    p->header_bytes = count.total;
    HEFT_TRY(heft_plan_place(p, p->header_bytes, 1));
    count = heft_out_counting();
    HEFT_TRY(heft_flax_write_trailer(p, &count));
    HEFT_TRY(plan_pieces(p));
    return heft_add(&p->file_bytes, p->data_end, count.total)
               ? HEFT_OK
               : heft_error_plain(p->err, HEFT_E_LOSSY, "the file would exceed 2^64 bytes");
}

/* ---- models in several files, in the layout of the transformers library ---- */

static void put_shard_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count)
{
    heft_shard_index_put_name(o, stem, i, count, ".msgpack");
}

static void put_shard_index(heft_out *o, const heft_shard_set *s)
{
    heft_shard_index_put(o, s, put_shard_name);
}

const heft_sharding heft_flax_sharding = { .name = put_shard_name, .index = put_shard_index };
