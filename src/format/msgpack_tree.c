/* msgpack_tree.c - flattens nested maps and lists to tensors and metadata, with joined names. */
#include "format/msgpack_tree.h"

typedef struct frame {    /* an open container */
    uint64_t left, index; /* remaining items; index of the next item of a list */
    uint32_t path_len;    /* length of the container's name */
    bool is_map;
} frame;

typedef struct walk {
    heft_msgpack_tree *t;
    frame *frames;
    uint32_t depth;
} walk;

enum { SETTING_COST = 8, ITEM_COST = sizeof(heft_value) }; /* bytes charged to the budget */

heft_msgpack_tree heft_msgpack_tree_open(heft_window *in, heft_index *x, const char *what,
                                         char separator)
{
    enum { TIMES = 8, BASE = 32 << 10 };
    heft_msgpack_tree t = { .x = x, .separator = separator };
    t.c = heft_cur_open(in, 0, in->size, what);
    t.budget = in->size > (UINT64_MAX - BASE) / TIMES ? UINT64_MAX : in->size * TIMES + BASE;
    return t;
}

void heft_msgpack_tree_close(heft_msgpack_tree *t)
{
    heft_vec_free(&t->x->mem, &t->path, 1);
}

heft_status heft_msgpack_tree_no_memory(const heft_msgpack_tree *t)
{
    return heft_error_no_memory(t->x->err, "for the names of a file in MessagePack");
}

/* ---- names ---- */

static heft_status put(heft_msgpack_tree *t, heft_str s)
{
    if (s.len > UINT32_MAX || !heft_vec_reserve(&t->x->mem, &t->path, (uint64_t)s.len + 1, 1))
        return heft_msgpack_tree_no_memory(t);
    if (s.len)
        memcpy((char *)t->path.ptr + t->path.len, s.ptr, s.len);
    t->path.len += (uint32_t)s.len;
    return HEFT_OK;
}

/* Make the path the container's name and a key. */
static heft_status enter_key(walk *w, heft_str key)
{
    heft_msgpack_tree *t = w->t;
    t->path.len = w->frames[w->depth - 1].path_len;
    t->is_inside = true;
    if (w->depth > 1)
        HEFT_TRY(put(t, (heft_str){ &t->separator, 1 }));
    return put(t, key);
}

/* Subtract `bytes` from the budget, which is proportional to the file size. */
static heft_status charge(heft_msgpack_tree *t, uint64_t bytes, uint64_t at)
{
    if (bytes > t->budget)
        return heft_error_set(t->x->err, HEFT_E_LIMIT, at,
                              "%s: names and metadata take far more memory than the file",
                              t->c.what);
    t->budget -= bytes;
    return HEFT_OK;
}

heft_status heft_msgpack_tree_name(heft_msgpack_tree *t, uint64_t at, const char *fallback,
                                   heft_str *out)
{
    heft_str path = { t->path.ptr, t->path.len };
    if (!t->is_inside)
        path = heft_lit(fallback);
    if (!path.len)
        path = heft_lit("");
    HEFT_TRY(charge(t, path.len, at));
    *out = heft_ix_copy(t->x, path);
    return out->ptr ? HEFT_OK : heft_msgpack_tree_no_memory(t);
}

/* Let the engine drop mapped pages before the cursor: data lie between the keys. */
static void pass_pages(heft_index *x, const heft_cur *c)
{
    if (x->on_parsed_upto)
        x->on_parsed_upto(x->on_parsed_ctx, &x->parsed_from, (const char *)c->p);
}

/* Read a key, a text or an integer, and append the key to the path. */
static heft_status read_key(walk *w)
{
    heft_cur *c = &w->t->c;
    char digits[21];
    heft_msgpack_item key = heft_msgpack_next(c);
    if (c->st)
        return c->st;
    pass_pages(w->t->x, c);
    if (key.kind == HEFT_MSGPACK_TEXT) {
        heft_str name = heft_msgpack_text(c, &key);
        for (size_t i = 0; i < name.len; i++)
            w->t->has_separator = w->t->has_separator || name.ptr[i] == w->t->separator;
        return c->st ? c->st : enter_key(w, name);
    }
    if (key.kind != HEFT_MSGPACK_UINT && key.kind != HEFT_MSGPACK_INT)
        return heft_cur_fail_at(c, key.at, "a key of %s is neither a string nor an integer",
                                c->what);
    bool is_negative = key.kind == HEFT_MSGPACK_INT;
    digits[0] = '-';
    size_t len = heft_u64_text(digits + is_negative, is_negative ? 0 - (uint64_t)key.i : key.u);
    return enter_key(w, (heft_str){ digits, len + is_negative });
}

/* ---- metadata ---- */

static bool is_scalar(heft_msgpack_kind k)
{
    return k >= HEFT_MSGPACK_NIL && k <= HEFT_MSGPACK_BYTES;
}

/* Convert a scalar to a metadata value without a key. */
static heft_status read_scalar(heft_msgpack_tree *t, const heft_msgpack_item *it, heft_value *v)
{
    static const heft_kind kinds[] = {
        [HEFT_MSGPACK_NIL] = HEFT_KIND_NULL,  [HEFT_MSGPACK_BOOL] = HEFT_KIND_BOOL,
        [HEFT_MSGPACK_UINT] = HEFT_KIND_UINT, [HEFT_MSGPACK_INT] = HEFT_KIND_INT,
        [HEFT_MSGPACK_F32] = HEFT_KIND_FLOAT, [HEFT_MSGPACK_F64] = HEFT_KIND_FLOAT,
        [HEFT_MSGPACK_TEXT] = HEFT_KIND_STR,  [HEFT_MSGPACK_BYTES] = HEFT_KIND_BYTES
    };
    *v = (heft_value){ .kind = kinds[it->kind] };
    if (it->kind == HEFT_MSGPACK_BOOL)
        v->as.b = it->u;
    else if (it->kind == HEFT_MSGPACK_INT)
        v->as.i = it->i;
    else if (it->kind == HEFT_MSGPACK_UINT)
        v->as.u = it->u;
    else if (it->kind == HEFT_MSGPACK_TEXT)
        v->as.s = heft_msgpack_text(&t->c, it);
    else if (it->kind == HEFT_MSGPACK_BYTES) {
        const uint8_t *p = heft_cur_take(&t->c, it->u);
        v->as.s = (heft_str){ p ? (const char *)p : "", p ? (size_t)it->u : 0 };
    } else if (it->kind != HEFT_MSGPACK_NIL) {
        v->as.f = it->f;
        v->stored = it->kind == HEFT_MSGPACK_F32 ? HEFT_F32 : HEFT_F64;
    }
    return t->c.st;
}

/* Add a list of numbers of the same kind as an array of type d. */
static heft_status put_array(heft_msgpack_tree *t, const heft_msgpack_item *list, heft_dtype d)
{
    uint32_t size = heft_dtype_size(d);
    heft_value v = { .kind = HEFT_KIND_ARRAY };
    uint64_t bytes = list->u * size; /* cannot overflow: list->u < 2^32 */
    HEFT_TRY(heft_msgpack_tree_name(t, list->at, "value", &v.key));
    uint8_t *to = bytes <= SIZE_MAX ? heft_arena_alloc(&t->x->arena, (size_t)bytes, 8) : NULL;
    if (!to)
        return heft_msgpack_tree_no_memory(t);
    for (uint64_t i = 0; i < list->u; i++) {
        heft_msgpack_item it = heft_msgpack_next(&t->c);
        uint64_t bits = it.kind == HEFT_MSGPACK_INT ? (uint64_t)it.i : it.u;
        if (it.kind == HEFT_MSGPACK_F32 || it.kind == HEFT_MSGPACK_F64)
            memcpy(&bits, &it.f, sizeof bits);
        for (uint32_t k = 0; k < size; k++)
            to[i * size + k] = (uint8_t)(bits >> 8 * k);
        HEFT_TRY(t->c.st);
    }
    v.as.array.ptr = to;
    v.as.array.count = (uint32_t)list->u;
    v.as.array.dtype = d;
    return heft_ix_meta(t->x, v);
}

/* Return the array type for a list, or HEFT_UNTYPED if the numbers have different kinds. */
static heft_dtype type_of(const heft_msgpack_facts *n)
{
    if (n->bools + n->ints + n->f32 + n->f64 != 1)
        return HEFT_UNTYPED;
    return n->bools              ? HEFT_BOOL
           : !n->ints            ? HEFT_F64
           : n->max <= INT64_MAX ? HEFT_I64
           : n->min              ? HEFT_UNTYPED
                                 : HEFT_U64;
}

static heft_status put_values(heft_msgpack_tree *t, const heft_msgpack_item *list)
{
    heft_value v = { .kind = HEFT_KIND_LIST };
    HEFT_TRY(heft_msgpack_tree_name(t, list->at, "value", &v.key));
    HEFT_TRY(heft_ix_meta(t->x, v));
    for (uint64_t i = 0; i < list->u; i++) {
        heft_msgpack_item it = heft_msgpack_next(&t->c);
        HEFT_TRY(t->c.st ? t->c.st : read_scalar(t, &it, &v));
        HEFT_TRY(charge(t, ITEM_COST, it.at));
        HEFT_TRY(heft_ix_meta(t->x, v));
    }
    heft_ix_meta_end(t->x);
    return HEFT_OK;
}

/* Return true if the list has no containers.  The cursor only moves on failure. */
static bool is_flat(heft_msgpack_tree *t, const heft_msgpack_item *list)
{
    heft_cur begin = t->c;
    bool is_flat = true;
    for (uint64_t i = 0; is_flat && i < list->u && !t->c.st; i++) {
        heft_msgpack_item it = heft_msgpack_next(&t->c);
        is_flat = is_scalar(it.kind);
        if (is_flat)
            heft_msgpack_skip(&t->c, &it);
    }
    t->c = t->c.st ? t->c : begin;
    return is_flat;
}

/* ---- containers ---- */

static heft_status put_empty_map(heft_msgpack_tree *t, const heft_msgpack_item *map)
{
    heft_value v = { .kind = HEFT_KIND_MAP };
    HEFT_TRY(charge(t, SETTING_COST, map->at));
    HEFT_TRY(heft_msgpack_tree_name(t, map->at, "value", &v.key));
    HEFT_TRY(heft_ix_meta(t->x, v));
    heft_ix_meta_end(t->x);
    return HEFT_OK;
}

static heft_status enter(walk *w, const heft_msgpack_item *it)
{
    heft_msgpack_tree *t = w->t;
    bool is_map = it->kind == HEFT_MSGPACK_MAP;
    if (is_map && !it->u && t->keeps_empty && w->depth)
        return put_empty_map(t, it);
    if (w->depth == t->x->limits.depth)
        return heft_error_rule(t->x->err,
                               heft_error_set(t->x->err, HEFT_E_LIMIT, it->at,
                                              "%s is nested deeper than %U levels", t->c.what,
                                              (uint64_t)t->x->limits.depth),
                               "heft/limit-depth");
    w->frames[w->depth++] = (frame){ .left = it->u, .path_len = t->path.len, .is_map = is_map };
    return HEFT_OK;
}

/* Add a scalar as metadata. */
static heft_status visit_leaf(heft_msgpack_tree *t, const heft_msgpack_item *it)
{
    heft_value v;
    if (it->kind == HEFT_MSGPACK_NIL && !t->keeps_empty)
        return HEFT_OK;
    HEFT_TRY(read_scalar(t, it, &v));
    HEFT_TRY(charge(t, SETTING_COST, it->at));
    HEFT_TRY(heft_msgpack_tree_name(t, it->at, "value", &v.key));
    return heft_ix_meta(t->x, v);
}

/* A list of numbers of the same kind becomes an array, a list of scalars becomes a list; other
 * lists are traversed. */
static heft_status visit_array(walk *w, const heft_msgpack_item *list)
{
    heft_msgpack_tree *t = w->t;
    bool is_list = is_flat(t, list);
    if (t->c.st)
        return t->c.st;
    if (!is_list)
        return enter(w, list);
    heft_msgpack_facts facts;
    heft_cur begin = t->c;
    bool are_numbers = heft_msgpack_scan(&facts, &t->c, list->u);
    if (t->c.st)
        return t->c.st;
    heft_dtype d = are_numbers ? type_of(&facts) : HEFT_UNTYPED;
    t->c = begin;
    return d == HEFT_UNTYPED ? put_values(t, list) : put_array(t, list, d);
}

static heft_status visit(walk *w, const heft_msgpack_item *item)
{
    heft_msgpack_item it = *item;
    bool is_taken = false;
    if (it.kind == HEFT_MSGPACK_MAP || it.kind == HEFT_MSGPACK_EXT)
        HEFT_TRY(w->t->take(w->t, &it, &is_taken));
    return is_taken                        ? HEFT_OK
           : it.kind == HEFT_MSGPACK_MAP   ? enter(w, &it)
           : it.kind == HEFT_MSGPACK_ARRAY ? visit_array(w, &it)
                                           : visit_leaf(w->t, &it);
}

static heft_status advance(walk *w)
{
    frame *f = &w->frames[w->depth - 1];
    if (!f->left) {
        w->depth--;
        return HEFT_OK;
    }
    f->left--;
    char digits[20];
    HEFT_TRY(f->is_map ? read_key(w)
                       : enter_key(w, (heft_str){ digits, heft_u64_text(digits, f->index++) }));
    heft_msgpack_item it = heft_msgpack_next(&w->t->c);
    return w->t->c.st ? w->t->c.st : visit(w, &it);
}

heft_status heft_msgpack_tree_walk(heft_msgpack_tree *t, const heft_msgpack_item *item)
{
    walk w = { .t = t };
    w.frames = heft_arena_alloc(&t->x->arena, t->x->limits.depth * sizeof *w.frames, 8);
    if (!w.frames)
        return heft_msgpack_tree_no_memory(t);
    heft_status st = visit(&w, item);
    while (!st && w.depth)
        st = advance(&w);
    t->path.len = 0;
    return st;
}
