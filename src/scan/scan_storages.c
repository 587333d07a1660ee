/* scan_storages.c - the storages after the pickles of a legacy PyTorch file, and what follows them.
 *
 * A program that calls torch.load() twice on an open file reads a second file after the storages of
 * the first.  The persistent ids of one pickle give each key an element type; the next pickle is
 * the list of keys, and for each key follow the number of elements (u64) and the elements. */
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/name_hash.h"
#include "base/sort.h"
#include "base/text.h"
#include "scan/scan.h"

typedef struct row {
    uint64_t hash; /* of the key; keys of the same hash must have elements of the same length */
    uint32_t element_bytes;
} row;

static uint64_t hash_of(heft_str key)
{
    static const uint64_t secret[2] = { 0 };
    return heft_siphash13(secret, key.ptr, key.len);
}

/* Opcodes differ in the encoding of other letters: the same key may have different bytes. */
static bool is_ascii(heft_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.ptr[i] & 0x80)
            return false;
    return true;
}

bool heft_scan_storage(heft_scan *s, heft_scan_storages *to, heft_str key, uint32_t element_bytes)
{
    row r = { hash_of(key), element_bytes };
    to->is_odd |= !element_bytes || !is_ascii(key);
    return heft_vec_add(&s->mem, &to->rows, &r, sizeof r);
}

void heft_scan_storages_free(heft_scan *s, heft_scan_storages *storages)
{
    heft_vec_free(&s->mem, &storages->rows, sizeof(row));
    *storages = (heft_scan_storages){ 0 };
}

/* ---- the list of keys ---- */

typedef struct keys { /* a pickle that is a list of texts */
    heft_cur c;
    bool has_list, is_in_batch, has_text; /* a text is to be appended */
    bool has_ended, is_odd;
} keys;

/* Skip an opcode that changes nothing but the memo; return false for any other. */
static bool skip_opcode(heft_cur *c, uint8_t opcode)
{
    static const char opcodes[] = "q\x01r\x04\x80\x01\x94\0\x95\x08";
    for (size_t i = 0; i < sizeof opcodes - 1; i += 2)
        if (opcode == (uint8_t)opcodes[i]) {
            heft_cur_skip(c, (uint64_t)opcodes[i + 1]);
            return true;
        }
    if (opcode != 'p')
        return false;
    while (!c->st && heft_cur_u8(c) != '\n')
        ;
    return true;
}

/* Read the text that an opcode pushes; return false for any other opcode. */
static bool read_text(heft_str *out, heft_cur *c, uint8_t opcode)
{
    const uint8_t *start = c->p;
    uint64_t len = 0;
    if (opcode == 'V') {
        while (!c->st && heft_cur_u8(c) != '\n')
            len++;
    } else if (opcode == 'X') {
        len = heft_cur_u32(c);
        start = heft_cur_take(c, len);
    } else if (opcode == 'U' || opcode == 0x8C) {
        len = heft_cur_u8(c);
        start = heft_cur_take(c, len);
    } else {
        return false;
    }
    *out = (heft_str){ (const char *)start, c->st ? 0 : (size_t)len };
    return opcode != 'V' || !heft_str_seek(start, start + out->len, "\\", 1);
}

/* Read an opcode of the structure of the list, as picklers write them. */
static bool read_structure(keys *k, uint8_t opcode)
{
    bool is_between = k->has_list && !k->is_in_batch && !k->has_text, was_in_batch = k->is_in_batch,
         had_text = k->has_text;
    switch (opcode) {
    case ']':
        return !k->has_list && (k->has_list = true);
    case '(':
        k->is_in_batch = is_between;
        return is_between || (!k->has_list && (k->has_list = heft_cur_u8(&k->c) == 'l'));
    case 'a':
        k->has_text = false;
        return had_text && !was_in_batch;
    case 'e':
        k->is_in_batch = false;
        return was_in_batch;
    default:
        k->has_ended = true;
        return opcode == '.' && is_between;
    }
}

/* Return false after the last key; k->is_odd if the pickle is not a plain list of texts. */
static bool next_key(heft_str *out, keys *k)
{
    while (!k->is_odd && !k->has_ended) {
        uint8_t opcode = heft_cur_u8(&k->c);
        if (skip_opcode(&k->c, opcode))
            continue;
        if (read_text(out, &k->c, opcode)) {
            k->is_odd = k->c.st || !k->has_list || (k->has_text && !k->is_in_batch);
            k->has_text = !k->is_in_batch;
            return !k->is_odd;
        }
        k->is_odd = !read_structure(k, opcode) || k->c.st;
    }
    return false;
}

/* ---- following ---- */

typedef struct table {
    const row *rows;
    uint32_t *ids; /* numbers of rows, in the order of the hashes */
    uint32_t len;
} table;

static bool is_less(const void *context, uint32_t a, uint32_t b)
{
    const row *rows = context;
    return rows[a].hash < rows[b].hash;
}

static bool is_ambiguous(const table *t)
{
    for (uint32_t i = 1; i < t->len; i++) {
        const row *a = t->rows + t->ids[i - 1], *b = t->rows + t->ids[i];
        if (a->hash == b->hash && a->element_bytes != b->element_bytes)
            return true;
    }
    return false;
}

/* Return the length of an element, or 0 for a key that no persistent id has. */
static uint64_t element_bytes(const table *t, heft_str key)
{
    uint64_t hash = hash_of(key);
    heft_bisect b = { .end = t->len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, t->rows[t->ids[b.mid]].hash < hash);
    const row *r = b.first < t->len ? t->rows + t->ids[b.first] : NULL;
    return r && r->hash == hash ? r->element_bytes : 0;
}

/* Return the offset after a storage, or the size of the piece if PyTorch fails at it. */
static uint64_t after_storage(const heft_scan_piece *p, uint64_t at, uint64_t element)
{
    enum { LENGTH = 8 };
    uint64_t bytes;
    if (!element || p->size - at < LENGTH || !heft_mul(&bytes, heft_le64(p->bytes + at), element) ||
        bytes > p->size - at - LENGTH)
        return p->size;
    return at + LENGTH + bytes;
}

heft_status heft_scan_follow_storages(uint64_t *end, heft_scan *s, const heft_scan_piece *p,
                                      heft_range list, const heft_scan_storages *storages)
{
    heft_error ignored = { 0 };
    uint32_t n = storages->rows.len;
    uint32_t *ids = heft_mem_alloc(&s->mem, sizeof *ids * 2 * n);
    heft_window_bytes w = heft_window_of(p->bytes, p->size, &ignored);
    keys k = { .c = heft_cur_open(&w.in, list.offset, list.length, "the list of keys") };
    table t = { storages->rows.ptr, ids, n };
    heft_str key;
    bool is_odd = storages->is_odd;
    if (!ids)
        return heft_error_no_memory(s->err, "to follow the storages of a file");
    heft_sort_numbers(ids, n, is_less, storages->rows.ptr);
    *end = list.offset + list.length;
    while (next_key(&key, &k)) { /* to the last: the list may turn out to be none */
        uint64_t element = element_bytes(&t, key);
        is_odd |= !element;
        *end = after_storage(p, *end, element);
    }
    if (is_odd || k.is_odd || is_ambiguous(&t))
        heft_scan_unreadable(s, p,
                             "has storages whose lengths cannot be followed: what follows "
                             "them was not searched");
    heft_mem_free(&s->mem, ids, sizeof *ids * 2 * n);
    return HEFT_OK;
}
