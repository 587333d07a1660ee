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
    HEFT_TRY(read_preamble_pickle(t, at, "the magic number", &v));
    bool is_magic = (v.kind == HEFT_PICKLE_BIG && v.as.s.len == sizeof magic_bytes - 1 &&
                     !memcmp(v.as.s.ptr, magic_bytes, v.as.s.len)) ||
                    (v.kind == HEFT_PICKLE_DECIMAL && heft_str_is(v.as.s, magic_text));
    if (!is_magic)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, 0,
                              "the magic number of PyTorch is missing");
    uint64_t begins_at = *at;
    HEFT_TRY(read_preamble_pickle(t, at, "the protocol version", &v));
    if (v.kind != HEFT_PICKLE_INT || v.as.i != LEGACY_VERSION)
        return heft_error_set(t->x->err, HEFT_E_UNSUPPORTED, begins_at,
                              "the protocol version is not 1001");
    return read_preamble_pickle(t, at, "the properties of the machine", &v);
}

/* ---- storages ---- */

enum { COUNT = 8 }; /* bytes of the number of elements before a storage */

typedef struct stream {
    const heft_torch *t;
    uint64_t at;
    heft_torch_storage *unsized; /* the storage before `at`, if its size is not known; or NULL */
    bool again;                  /* bytes have been requested */
    bool hides;                  /* the offsets of further storages are not known */
} stream;

/* Locate a storage and check the number of elements before the data.  On HEFT_AGAIN the caller
 * continues with the next storage, so that all sizes are requested at once: the offsets follow from
 * the pickle. */
static heft_status locate_next_storage(const heft_torch *t, heft_torch_storage *s, uint64_t *at)
{
    heft_cur c = heft_cur_whole(t->in, *at, COUNT, "the size of a storage");
    uint64_t elements = heft_cur_u64(&c), first = *at;
    s->offset = *at + COUNT;
    s->is_located = true;
    bool is_lost = heft_ix_forgives(t->x) &&
                   !heft_range_in((heft_range){ first, COUNT }, t->x->present);
    if (c.st && c.st != HEFT_AGAIN)
        return heft_error_expect(t->x->err, c.st, s->offset, s->bytes);
    if (!c.st && elements != s->elements && !is_lost)
        return heft_error_set(t->x->err, HEFT_E_FORMAT, first,
                              "storage %q should have %U elements, the stream has %U", s->key,
                              s->elements, elements);
    if (!s->type->type) {
        *at = s->offset;
        return c.st;
    }
    if (!heft_range_in((heft_range){ s->offset, s->bytes }, t->in->size))
        return heft_error_expect(t->x->err,
                                 heft_error_set(t->x->err, HEFT_E_FORMAT, s->offset,
                                                "storage %q: %U bytes are needed, only %U are left",
                                                s->key, s->bytes, t->in->size - s->offset),
                                 s->offset, s->bytes);
    *at = s->offset + s->bytes;
    return c.st;
}

static heft_status take_key(const heft_torch *t, const heft_pickle *keys, uint32_t item,
                            heft_torch_storage **s)
{
    *s = NULL;
    if (heft_pickle_is(keys, item, HEFT_PICKLE_TEXT))
        *s = heft_torch_storage_find(t, heft_pickle_at(keys, item)->as.s);
    return *s && !(*s)->is_located && !(*s)->is_hidden
               ? HEFT_OK
               : heft_error_set(t->x->err, HEFT_E_FORMAT, heft_pickle_offset(keys, item),
                                "the list of storages has a key that is unknown, or repeated");
}

/* Return true if the storage may end at `end`: the number of elements of the next storage follows
 * or, if there is none, the end of the file. */
static bool may_end(stream *r, uint64_t end, const heft_torch_storage *next)
{
    const heft_torch *t = r->t;
    if (!next || !heft_range_in((heft_range){ end, COUNT }, t->in->size))
        return !next && end == t->in->size;
    heft_cur c = heft_cur_whole(t->in, end, COUNT, "the size of a storage");
    uint64_t elements = heft_cur_u64(&c);
    r->again = r->again || c.st == HEFT_AGAIN;
    return !c.st && elements == next->elements;
}

/* Find the end of the storage before r->at, whose elements have an unknown size: the size for
 * which the stream goes on.  Several sizes may do so by chance: all later storages are hidden. */
static heft_status find_end(stream *r, const heft_torch_storage *next)
{
    static const struct {
        uint8_t bytes, per; /* bytes for a number of elements */
    } sizes[] = { { 1, 4 }, { 1, 2 }, { 1, 1 }, { 2, 1 }, { 4, 1 }, { 8, 1 }, { 16, 1 } };
    heft_torch_storage *s = r->unsized;
    uint64_t found = 0, bytes, end;
    r->unsized = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t count = heft_div_up(s->elements, sizes[i].per);
        if (!heft_mul(&bytes, count, sizes[i].bytes) || !heft_add(&end, r->at, bytes) ||
            end == found || !may_end(r, end, next))
            continue;
        r->hides = r->hides || found;
        found = end;
    }
    if (r->again)
        return HEFT_AGAIN;
    if (!found)
        return heft_error_set(r->t->x->err, HEFT_E_FORMAT, r->at,
                              "storage %q of class %q: the stream does not go on after any size "
                              "of an element",
                              s->key, s->class);
    r->at = found;
    return HEFT_OK;
}

static heft_status locate_item(stream *r, const heft_pickle *keys, uint32_t item)
{
    heft_torch_storage *s;
    HEFT_TRY(take_key(r->t, keys, item, &s));
    if (r->unsized)
        HEFT_TRY(find_end(r, s));
    s->is_hidden = r->hides;
    if (r->hides)
        return HEFT_OK;
    heft_status st = locate_next_storage(r->t, s, &r->at);
    r->unsized = st || s->type->type ? NULL : s;
    r->again = r->again || st == HEFT_AGAIN;
    return st == HEFT_AGAIN && s->type->type ? HEFT_OK : st;
}

static heft_status locate_in_stream(const heft_torch *t, const heft_pickle *keys)
{
    stream r = { .t = t, .at = heft_pickle_end(keys) };
    uint32_t item;
    heft_status st = HEFT_OK;
    if (!heft_pickle_is(keys, keys->root, HEFT_PICKLE_LIST))
        return heft_error_set(t->x->err, HEFT_E_FORMAT, r.at,
                              "the keys of the storages are not a list");
    heft_pickle_items i = heft_pickle_items_of(keys, keys->root);
    while (!st && heft_pickle_next(keys, &i, &item))
        st = locate_item(&r, keys, item);
    if (!st && r.unsized)
        st = find_end(&r, NULL);
    if (!st && r.at < t->in->size && !r.hides)
        heft_ix_note(t->x, HEFT_WARNING, "torch/trailing", r.at, HEFT_NONE,
                     "unexpected bytes after the last storage");
    return !st && r.again ? HEFT_AGAIN : st;
}

heft_status heft_torch_parse_legacy(heft_torch *t)
{
    uint64_t at = 0, size = t->in->size;
    heft_pickle keys = { .arena = NULL };
    HEFT_TRY(read_preamble(t, &at));
    HEFT_TRY(
        heft_torch_read_main(t, t->in, (heft_range){ at, size - at }, HEFT_NOWHERE, "the pickle"));
    at = heft_pickle_end(&t->p);
    heft_status st = heft_pickle_read(&keys, t->in, (heft_range){ at, size - at }, &t->x->arena,
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
