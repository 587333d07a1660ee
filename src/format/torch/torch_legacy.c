/* torch_legacy.c - reads streams of torch.save() before version 1.6.
 *
 *   pickle of the number 0x1950A86A20F9469CFC6C
 *   pickle of 1001, the protocol's version
 *   pickle of a dictionary about the machine
 *   the pickle
 *   pickle of the list of keys of the storages
 *   for each storage: u64 elements, then the elements, little-endian
 */
#include "format/torch/torch.h"

enum { LEGACY_VERSION = 1001 };

/* ---- the pickles before the main pickle ---- */

/* 0x1950A86A20F9469CFC6C, as in protocol 2, and in decimal. */
static const char magic_bytes[] = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
static const char magic_text[] = "119547037146038801333356";

/* Read a pickle that consists of a single value. */
static heft_status read_preamble_pickle(const heft_torch *t, uint64_t *at, const char *what,
                                        heft_pickle_value *value)
{
    heft_pickle p;
    heft_range where = { *at, t->in->size - *at };
    heft_status st = heft_pickle_read(&p, t->in, where, &t->x->arena, what);
    if (!st)
        *value = *heft_pickle_at(&p, p.root);
    *at = heft_pickle_end(&p);
    heft_pickle_free(&p);
    return st;
}

static heft_status read_preamble(const heft_torch *t, uint64_t *at)
{
    heft_pickle_value v;
    heft_status st = read_preamble_pickle(t, at, "the magic number", &v);
    if (st)
        return st;
    bool is_magic = (v.kind == HEFT_PICKLE_BIG && v.as.s.len == sizeof magic_bytes - 1 &&
                     !memcmp(v.as.s.ptr, magic_bytes, v.as.s.len)) ||
                    (v.kind == HEFT_PICKLE_DECIMAL && heft_str_is(v.as.s, magic_text));
    if (!is_magic)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, 0,
                              "the magic number of PyTorch is missing");
    uint64_t begins_at = *at;
    st = read_preamble_pickle(t, at, "the protocol version", &v);
    if (st)
        return st;
    if (v.kind != HEFT_PICKLE_INT || v.as.i != LEGACY_VERSION)
        return heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, begins_at,
                              "the protocol version is not 1001");
    return read_preamble_pickle(t, at, "the properties of the machine", &v);
}

/* ---- storages ---- */

/* Locate a storage and check the number of elements before the data.  On HEFT_AGAIN the caller
 * continues with the next storage, so that all sizes are requested at once: the offsets follow from
 * the pickle. */
static heft_status locate_next_storage(const heft_torch *t, heft_torch_storage *s, uint64_t *at)
{
    enum { SIZE = 8 };
    heft_cur c = heft_cur_whole(t->in, *at, SIZE, "the size of a storage");
    uint64_t elements = heft_cur_u64(&c), first = *at;
    s->offset = *at + SIZE;
    s->is_located = true;
    if (c.st && c.st != HEFT_AGAIN)
        return c.st;
    if (!c.st && elements != s->elements)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, first,
                              "storage %q should have %U elements, the stream has %U", s->key,
                              s->elements, elements);
    if (!heft_range_in((heft_range){ s->offset, s->bytes }, t->in->size))
        return heft_error_set(t->x->err, HEFT_E_FORMAT, s->offset,
                              "storage %q: %U bytes are needed, only %U are left", s->key, s->bytes,
                              t->in->size - s->offset);
    *at = s->offset + s->bytes;
    return c.st;
}

static heft_status take_key(const heft_torch *t, const heft_pickle *keys, uint32_t item,
                            heft_torch_storage **s)
{
    uint64_t at = heft_pickle_offset(keys, item);
    *s = NULL;
    if (heft_pickle_is(keys, item, HEFT_PICKLE_TEXT))
        *s = heft_torch_storage_find(t, heft_pickle_at(keys, item)->as.s);
    if (!*s || (*s)->is_located)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, at,
                              "the list of storages has a key that is unknown, or repeated");
    if (!(*s)->type->type)
        return heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, at,
                              "storage %q: element type %s is not supported", (*s)->key,
                              (*s)->type->dtype);
    return HEFT_OK;
}

static heft_status locate_in_stream(const heft_torch *t, const heft_pickle *keys)
{
    uint64_t at = heft_pickle_end(keys);
    uint32_t item;
    bool again = false;
    if (!heft_pickle_is(keys, keys->root, HEFT_PICKLE_LIST))
        return heft_error_set(t->x->err, HEFT_E_FORMAT, at,
                              "the keys of the storages are not a list");
    heft_pickle_items i = heft_pickle_items_of(keys, keys->root);
    while (heft_pickle_next(keys, &i, &item)) {
        heft_torch_storage *s;
        heft_status st = take_key(t, keys, item, &s);
        if (!st)
            st = locate_next_storage(t, s, &at);
        if (st && st != HEFT_AGAIN)
            return st;
        again = again || st == HEFT_AGAIN;
    }
    if (at < t->in->size)
        heft_ix_note(t->x, HEFT_WARNING, "torch/trailing", at, HEFT_NONE,
                     "unexpected bytes after the last storage");
    return again ? HEFT_AGAIN : HEFT_OK;
}

heft_status heft_torch_parse_legacy(heft_torch *t)
{
    uint64_t at = 0, size = t->in->size;
    heft_pickle keys = { .arena = NULL };
    heft_status st = read_preamble(t, &at);
    if (!st)
        st = heft_torch_read_main(t, t->in, (heft_range){ at, size - at }, HEFT_NOWHERE,
                                  "the pickle");
    if (st)
        return st;
    at = heft_pickle_end(&t->p);
    st = heft_pickle_read(&keys, t->in, (heft_range){ at, size - at }, &t->x->arena,
                          "the keys of the storages");
    if (!st)
        st = locate_in_stream(t, &keys);
    heft_pickle_free(&keys);
    t->x->version = heft_lit("legacy");
    return st ? st : heft_torch_walk(t);
}

bool heft_torch_is_legacy(const uint8_t *head, size_t len)
{
    enum { FRAME = 9, SIZE = sizeof magic_bytes - 1 };
    heft_str text = heft_lit(magic_text);
    if (len > text.len + 1 && head[0] == 'L' && !memcmp(head + 1, text.ptr, text.len))
        return true;
    if (len < 2 || head[0] != 0x80 || head[1] > 5)
        return false;
    size_t at = len > 2 && head[2] == 0x95 ? 2 + FRAME : 2;
    return len >= at + 2 + SIZE && head[at] == 0x8A && head[at + 1] == SIZE &&
           !memcmp(head + at + 2, magic_bytes, SIZE);
}
