/* burnrecord.c - reads records of Burn's NamedMpkFileRecorder up to version 0.21: MessagePack, with
 * structures as maps from field names to values.
 *
 *   {"metadata": {"float": text, "int": text, "format": text, "version": text, "settings": text},
 *    "item": content of the record,
 *    "_b": nil}
 *
 *   parameter   {"id": text, "param": tensor}; older: "value" instead of "param"
 *   tensor      {"bytes": bytes or a list of bytes, "shape": [...], "dtype": type}
 *               before 0.14 {"value": list of numbers, "shape": [...]}: the metadata has the types
 *   module      {field: value, ...}, a list of values, or {variant: value} of an enum
 *   nil         absent parts of a module, and constants
 *
 * Reference: burn-core/src/record and burn-tensor/src/tensor/data.rs of Burn 0.8 to 0.21.
 */
#include "format/burnrecord/burnrecord.h"

#include "model/unique_keys.h"
#include "model/values.h"

static const char what[] = "the record";

/* ---- metadata ---- */

static heft_status read_text(heft_record *r, const char *field, heft_str *out)
{
    heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
    if (!r->tree.c.st && it.kind != HEFT_MSGPACK_TEXT)
        return heft_cur_fail_at(&r->tree.c, it.at, "%s: %s is not a string", what, field);
    *out = heft_msgpack_text(&r->tree.c, &it);
    return r->tree.c.st;
}

static heft_status read_metadata(heft_record *r)
{
    static const char prefix[] = "burn.";
    enum { PREFIX = sizeof prefix - 1 };
    heft_msgpack_item map = heft_msgpack_next(&r->tree.c);
    heft_status st = r->tree.c.st;
    if (!st && map.kind != HEFT_MSGPACK_MAP)
        return heft_cur_fail_at(&r->tree.c, map.at, "%s: the metadata is not a map", what);
    for (uint64_t i = 0; !st && i < map.u; i++) {
        heft_str key, value;
        st = read_text(r, "a key of the metadata", &key);
        if (!st)
            st = read_text(r, "a value of the metadata", &value);
        char *name = st ? NULL : heft_arena_alloc(&r->tree.x->arena, PREFIX + key.len, 1);
        if (!name)
            return st ? st : heft_msgpack_tree_no_memory(&r->tree);
        memcpy(name, prefix, PREFIX);
        memcpy(name + PREFIX, key.ptr, key.len);
        if (heft_str_is(key, "version"))
            r->tree.x->version = value;
        if (heft_str_is(key, "float"))
            r->floats = heft_record_rust_type(value);
        if (heft_str_is(key, "int"))
            r->ints = heft_record_rust_type(value);
        st = heft_ix_meta_text(r->tree.x, (heft_str){ name, PREFIX + key.len }, value);
    }
    return st;
}

/* ---- tensors and parameters ---- */

/* Recognise {"id": text, "param": ...}, set *id, and make the value *item; otherwise *is_param is
 * false and the cursor does not move. */
static heft_status recognise_param(heft_record *r, heft_msgpack_item *item, heft_str *id,
                                   bool *is_param)
{
    heft_cur begin = r->tree.c;
    *is_param = false;
    if (item->u != 2)
        return HEFT_OK;
    heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
    bool matches = it.kind == HEFT_MSGPACK_TEXT &&
                   heft_str_is(heft_msgpack_text(&r->tree.c, &it), "id");
    if (matches)
        it = heft_msgpack_next(&r->tree.c);
    matches = matches && it.kind == HEFT_MSGPACK_TEXT;
    if (matches) {
        *id = heft_msgpack_text(&r->tree.c, &it);
        it = heft_msgpack_next(&r->tree.c);
    }
    matches = matches && it.kind == HEFT_MSGPACK_TEXT;
    heft_str key = matches ? heft_msgpack_text(&r->tree.c, &it) : heft_lit("");
    *is_param = matches && (heft_str_is(key, "param") || heft_str_is(key, "value"));
    if (*is_param)
        *item = heft_msgpack_next(&r->tree.c);
    if (r->tree.c.st)
        return r->tree.c.st;
    r->tree.c = *is_param ? r->tree.c : begin;
    return HEFT_OK;
}

static heft_status pass_over(heft_msgpack_tree *t, const heft_msgpack_item *extension)
{
    heft_msgpack_skip(&t->c, extension);
    if (!t->c.st)
        heft_ix_note(t->x, HEFT_NOTE, "burn-record/extension", extension->at, HEFT_NONE,
                     "a MessagePack extension is left out");
    return t->c.st;
}

/* Take a tensor, and pass over an extension.  A parameter stands for the value that it has. */
static heft_status take(heft_msgpack_tree *t, heft_msgpack_item *item, bool *is_taken)
{
    heft_record *r = t->ctx;
    heft_str id = { NULL, 0 };
    bool is_param = false;
    if (item->kind == HEFT_MSGPACK_MAP)
        HEFT_TRY(recognise_param(r, item, &id, &is_param));
    r->id = is_param ? id : (heft_str){ NULL, 0 };
    *is_taken = item->kind == HEFT_MSGPACK_EXT;
    return *is_taken                        ? pass_over(t, item)
           : item->kind == HEFT_MSGPACK_MAP ? heft_record_tensor(r, item, is_taken)
                                            : HEFT_OK;
}

/* ---- the record ---- */

static heft_status read_record(heft_record *r)
{
    bool has_item = false;
    heft_msgpack_item map = heft_msgpack_next(&r->tree.c);
    if (!r->tree.c.st && map.kind != HEFT_MSGPACK_MAP)
        return heft_cur_fail_at(&r->tree.c, map.at, "%s does not begin with a map", what);
    heft_status st = r->tree.c.st;
    for (uint64_t i = 0; !st && i < map.u; i++) {
        heft_str key;
        st = read_text(r, "a key", &key);
        if (st)
            return st;
        if (heft_str_is(key, "metadata")) {
            st = read_metadata(r);
            continue;
        }
        bool is_item = heft_str_is(key, "item");
        if (is_item && has_item)
            return heft_cur_fail(&r->tree.c, "%s has two items", what);
        has_item = has_item || is_item;
        heft_msgpack_item it = heft_msgpack_next(&r->tree.c);
        if (!is_item)
            heft_msgpack_skip(&r->tree.c, &it);
        st = r->tree.c.st;
        if (!st && is_item)
            st = heft_msgpack_tree_walk(&r->tree, &it);
    }
    if (!st && !has_item)
        return heft_cur_fail_at(&r->tree.c, map.at, "%s has no item", what);
    if (!st && heft_cur_left(&r->tree.c))
        heft_ix_note(r->tree.x, HEFT_WARNING, "burn-record/trailing", heft_cur_pos(&r->tree.c),
                     HEFT_NONE, "unexpected bytes after the record");
    if (!st && r->may_be_halves)
        heft_ix_note(
            r->tree.x, HEFT_NOTE, "burn-record/half", 0, HEFT_NONE,
            "half-precision records store floats and integers alike: lists of integers are "
            "interpreted as floats");
    return st;
}

static heft_status parse(heft_window *in, heft_index *x)
{
    heft_record r = { .floats = HEFT_UNTYPED, .ints = HEFT_UNTYPED };
    r.tree = heft_msgpack_tree_open(in, x, what, '.');
    r.tree.take = take;
    r.tree.ctx = &r;
    heft_status st = read_record(&r);
    if (st == HEFT_AGAIN)
        heft_window_ask_ahead(in, heft_cur_pos(&r.tree.c), heft_ix_tensors(x));
    heft_msgpack_tree_close(&r.tree);
    return st ? st : heft_meta_unique(x, "the item of the record");
}

/* Recognise a map that begins with the key "metadata", and there a map that begins with the key
 * "float". */
static int probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                 uint64_t size)
{
    static const char first[] = "\xa8metadata", second[] = "\xa5"
                                                           "float";
    enum { SURE = 100, FIRST = sizeof first - 1, SECOND = sizeof second - 1 };
    (void)tail;
    (void)tail_len;
    (void)size;
    bool matches = head_len > 2 + FIRST + SECOND && head[0] > 0x80 && head[0] < 0x90 &&
                   !memcmp(head + 1, first, FIRST) && head[1 + FIRST] > 0x80 &&
                   head[1 + FIRST] < 0x90 && !memcmp(head + 2 + FIRST, second, SECOND);
    return matches ? SURE : 0;
}

static const heft_name_rules name_rules = { "burn-record/name", NULL, NULL, "burn-record/rank" };

const heft_format heft_format_burn_record = {
    .name = "burn-record",
    .title = "Burn record",
    .structure_rule = "burn-record/structure",
    .name_rules = &name_rules,
    .suffixes = ".mpk .mpk.gz",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_META,
    .align = 64,
    .may_be_gzipped = true,
    .probe = probe,
    .parse = parse,
};

const heft_format_writer heft_format_writer_burn_record = { .plan = NULL }; /* read only */
