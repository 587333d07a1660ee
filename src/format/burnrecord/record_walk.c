/* record_walk.c - flattens nested modules to a list of tensors and settings, with names joined by
 * dots as in Burn. */
#include "format/burnrecord/burnrecord.h"

typedef struct frame {    /* an open container */
    uint64_t left, index; /* remaining items; index of the next item of a list */
    uint32_t path_len;    /* length of the container's name */
    bool is_map;
} frame;

typedef struct walk {
    heft_record *r;
    frame *frames;
    uint32_t depth;
} walk;

/* ---- names ---- */

/* Read a key, a field's name or an integer, and append the key to the path. */
static heft_status read_key(heft_record *r, const frame *f)
{
    char digits[21];
    heft_msgpack_item key = heft_msgpack_next(&r->c);
    if (r->c.st)
        return r->c.st;
    if (key.kind == HEFT_MSGPACK_TEXT) {
        heft_str name = heft_msgpack_text(&r->c, &key);
        return r->c.st ? r->c.st : heft_record_enter(r, f->path_len, name);
    }
    if (key.kind != HEFT_MSGPACK_UINT && key.kind != HEFT_MSGPACK_INT)
        return heft_cur_fail_at(&r->c, key.at,
                                "a key of the record is neither a string nor an integer");
    bool is_negative = key.kind == HEFT_MSGPACK_INT;
    digits[0] = '-';
    size_t len = heft_u64_text(digits + is_negative, is_negative ? 0 - (uint64_t)key.i : key.u);
    return heft_record_enter(r, f->path_len, (heft_str){ digits, len + is_negative });
}

/* ---- settings ---- */

static bool is_scalar(heft_msgpack_kind k)
{
    return k >= HEFT_MSGPACK_NIL && k <= HEFT_MSGPACK_BYTES;
}

/* Convert a scalar to a metadata value without a key. */
static heft_status read_scalar(heft_record *r, const heft_msgpack_item *it, heft_value *v)
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
        v->as.s = heft_msgpack_text(&r->c, it);
    else if (it->kind == HEFT_MSGPACK_BYTES) {
        const uint8_t *p = heft_cur_take(&r->c, it->u);
        v->as.s = (heft_str){ p ? (const char *)p : "", p ? (size_t)it->u : 0 };
    } else if (it->kind != HEFT_MSGPACK_NIL) {
        v->as.f = it->f;
        v->stored = it->kind == HEFT_MSGPACK_F32 ? HEFT_F32 : HEFT_F64;
    }
    return r->c.st;
}

enum { SETTING_COST = 8, ITEM_COST = sizeof(heft_value) }; /* bytes charged to the budget */

/* Add a list of numbers of the same kind as an array of type t. */
static heft_status put_array(heft_record *r, const heft_msgpack_item *list, heft_dtype t)
{
    uint32_t size = heft_dtype_size(t);
    heft_value v = { .kind = HEFT_KIND_ARRAY };
    uint64_t bytes = list->u * size; /* cannot overflow: list->u < 2^32 */
    heft_status st = heft_record_name(r, list->at, "value", &v.key);
    uint8_t *to = !st && bytes <= SIZE_MAX ? heft_arena_alloc(&r->x->arena, (size_t)bytes, 8)
                                           : NULL;
    if (!st && !to)
        st = heft_record_no_memory(r);
    for (uint64_t i = 0; !st && i < list->u; i++) {
        heft_msgpack_item it = heft_msgpack_next(&r->c);
        uint64_t bits = it.kind == HEFT_MSGPACK_INT ? (uint64_t)it.i : it.u;
        if (it.kind == HEFT_MSGPACK_F32 || it.kind == HEFT_MSGPACK_F64)
            memcpy(&bits, &it.f, sizeof bits);
        for (uint32_t k = 0; k < size; k++)
            to[i * size + k] = (uint8_t)(bits >> 8 * k);
        st = r->c.st;
    }
    v.as.array.ptr = to;
    v.as.array.count = (uint32_t)list->u;
    v.as.array.dtype = t;
    return st ? st : heft_ix_meta(r->x, v);
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

static heft_status put_values(heft_record *r, const heft_msgpack_item *list)
{
    heft_value v = { .kind = HEFT_KIND_LIST };
    HEFT_TRY(heft_record_name(r, list->at, "value", &v.key));
    HEFT_TRY(heft_ix_meta(r->x, v));
    for (uint64_t i = 0; i < list->u; i++) {
        heft_msgpack_item it = heft_msgpack_next(&r->c);
        HEFT_TRY(r->c.st ? r->c.st : read_scalar(r, &it, &v));
        HEFT_TRY(heft_record_charge(r, ITEM_COST, it.at));
        HEFT_TRY(heft_ix_meta(r->x, v));
    }
    heft_ix_meta_end(r->x);
    return HEFT_OK;
}

/* Return true if the list has no containers.  The cursor only moves on failure. */
static bool is_flat(heft_record *r, const heft_msgpack_item *list)
{
    heft_cur begin = r->c;
    bool is_flat = true;
    for (uint64_t i = 0; is_flat && i < list->u && !r->c.st; i++) {
        heft_msgpack_item it = heft_msgpack_next(&r->c);
        is_flat = is_scalar(it.kind);
        if (is_flat)
            heft_msgpack_skip(&r->c, &it);
    }
    r->c = r->c.st ? r->c : begin;
    return is_flat;
}

/* ---- containers ---- */

static heft_status enter(walk *w, const heft_msgpack_item *it)
{
    heft_record *r = w->r;
    if (w->depth == r->x->limits.depth)
        return heft_error_rule(r->x->err,
                               heft_error_set(r->x->err, HEFT_E_LIMIT, it->at,
                                              "the record is nested deeper than %U levels",
                                              (uint64_t)r->x->limits.depth),
                               "heft/limit-depth");
    w->frames[w->depth++] =
        (frame){ .left = it->u, .path_len = r->path.len, .is_map = it->kind == HEFT_MSGPACK_MAP };
    return HEFT_OK;
}

/* Recognise {"id": text, "param": ...} and set *id and *value; otherwise *is_param is false and the
 * cursor does not move. */
static heft_status recognise_param(heft_record *r, const heft_msgpack_item *map, heft_str *id,
                                   heft_msgpack_item *value, bool *is_param)
{
    heft_cur begin = r->c;
    *is_param = false;
    if (map->u != 2)
        return HEFT_OK;
    heft_msgpack_item it = heft_msgpack_next(&r->c);
    bool matches = it.kind == HEFT_MSGPACK_TEXT && heft_str_is(heft_msgpack_text(&r->c, &it), "id");
    if (matches)
        it = heft_msgpack_next(&r->c);
    matches = matches && it.kind == HEFT_MSGPACK_TEXT;
    if (matches) {
        *id = heft_msgpack_text(&r->c, &it);
        it = heft_msgpack_next(&r->c);
    }
    matches = matches && it.kind == HEFT_MSGPACK_TEXT;
    heft_str key = matches ? heft_msgpack_text(&r->c, &it) : heft_lit("");
    *is_param = matches && (heft_str_is(key, "param") || heft_str_is(key, "value"));
    if (*is_param)
        *value = heft_msgpack_next(&r->c);
    if (r->c.st)
        return r->c.st;
    r->c = *is_param ? r->c : begin;
    return HEFT_OK;
}

/* Add a scalar as metadata; skip nil and extensions. */
static heft_status visit_leaf(heft_record *r, const heft_msgpack_item *it)
{
    if (is_scalar(it->kind) && it->kind != HEFT_MSGPACK_NIL) {
        heft_value v;
        HEFT_TRY(read_scalar(r, it, &v));
        HEFT_TRY(heft_record_charge(r, SETTING_COST, it->at));
        HEFT_TRY(heft_record_name(r, it->at, "value", &v.key));
        return heft_ix_meta(r->x, v);
    }
    heft_msgpack_skip(&r->c, it);
    if (it->kind == HEFT_MSGPACK_EXT && !r->c.st)
        heft_ix_note(r->x, HEFT_NOTE, "burn-record/extension", it->at, HEFT_NONE,
                     "a MessagePack extension is left out");
    return r->c.st;
}

/* A list of numbers of the same kind becomes an array, a list of scalars becomes a list; other
 * lists are traversed. */
static heft_status visit_array(walk *w, const heft_msgpack_item *list)
{
    heft_record *r = w->r;
    bool is_list = is_flat(r, list);
    if (r->c.st)
        return r->c.st;
    if (!is_list)
        return enter(w, list);
    heft_msgpack_facts facts;
    heft_cur begin = r->c;
    bool are_numbers = heft_msgpack_scan(&facts, &r->c, list->u);
    if (r->c.st)
        return r->c.st;
    heft_dtype t = are_numbers ? type_of(&facts) : HEFT_UNTYPED;
    r->c = begin;
    return t == HEFT_UNTYPED ? put_values(r, list) : put_array(r, list, t);
}

static heft_status visit_map(walk *w, const heft_msgpack_item *map)
{
    heft_record *r = w->r;
    heft_msgpack_item value = *map;
    heft_str id = { NULL, 0 };
    bool is_param, is_tensor = false;
    heft_status st = recognise_param(r, map, &id, &value, &is_param);
    r->id = is_param ? id : (heft_str){ NULL, 0 };
    if (!st && value.kind == HEFT_MSGPACK_MAP)
        st = heft_record_tensor(r, &value, &is_tensor);
    if (st || is_tensor)
        return st;
    return value.kind == HEFT_MSGPACK_MAP     ? enter(w, &value)
           : value.kind == HEFT_MSGPACK_ARRAY ? visit_array(w, &value)
                                              : visit_leaf(r, &value);
}

static heft_status visit(walk *w, const heft_msgpack_item *it)
{
    return it->kind == HEFT_MSGPACK_MAP     ? visit_map(w, it)
           : it->kind == HEFT_MSGPACK_ARRAY ? visit_array(w, it)
                                            : visit_leaf(w->r, it);
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
    heft_status st =
        f->is_map ? read_key(w->r, f)
                  : heft_record_enter(w->r, f->path_len,
                                      (heft_str){ digits, heft_u64_text(digits, f->index++) });
    heft_msgpack_item it = heft_msgpack_next(&w->r->c);
    if (st || w->r->c.st)
        return st ? st : w->r->c.st;
    return visit(w, &it);
}

heft_status heft_record_walk(heft_record *r, const heft_msgpack_item *item)
{
    walk w = { .r = r };
    w.frames = heft_arena_alloc(&r->x->arena, r->x->limits.depth * sizeof *w.frames, 8);
    if (!w.frames)
        return heft_record_no_memory(r);
    heft_status st = visit(&w, item);
    while (!st && w.depth)
        st = advance(&w);
    r->path.len = 0;
    return st;
}
