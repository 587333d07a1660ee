/* pickle.h - reads Python pickles, protocols 0 to 5, into a graph of values.
 *
 * A pickle is a program that builds objects by calling named functions.  Heft never calls anything:
 * a call is recorded as a value with the name of the function and the arguments, and the caller
 * interprets that name. Values may be shared, and the graph may contain cycles.  Every value, edge
 * and stack entry takes at least a byte of the pickle, so memory stays proportional to the file.
 *
 * Strings are borrowed from the file; strings with escapes (protocol 0) are copied into the arena.
 * As in every parser, reading may end with HEFT_AGAIN and be repeated from the start.
 */
#ifndef HEFT_PICKLE_H
#define HEFT_PICKLE_H
#include "base/arena.h"
#include "base/cursor.h"

typedef enum heft_pickle_kind {
    HEFT_PICKLE_NONE,
    HEFT_PICKLE_BOOL,
    HEFT_PICKLE_INT,
    HEFT_PICKLE_BIG,     /* integer beyond 64 bits: s, two's complement, little-endian */
    HEFT_PICKLE_DECIMAL, /* decimal text of a number that is not a 64-bit integer: s */
    HEFT_PICKLE_FLOAT,
    HEFT_PICKLE_TEXT,  /* UTF-8 */
    HEFT_PICKLE_BYTES, /* also Python 2 strings that are not UTF-8 */
    HEFT_PICKLE_TUPLE,
    HEFT_PICKLE_LIST,
    HEFT_PICKLE_DICT, /* items: key, value, key, value, … */
    HEFT_PICKLE_SET,
    HEFT_PICKLE_GLOBAL,    /* function or class: TEXT values module and name */
    HEFT_PICKLE_OBJECT,    /* the result of a call that was not made */
    HEFT_PICKLE_PERSISTENT /* reference to an object outside of the pickle: id */
} heft_pickle_kind;

typedef struct heft_pickle_value {
    union {
        bool b;
        int64_t i;
        double f;
        heft_str s;
        struct {
            uint32_t first, last, count; /* runs of edges, see heft_pickle_items_of() */
        } items;
        struct {
            uint32_t module, name;
        } global;
        struct {
            uint32_t callable, args; /* GLOBAL, TUPLE */
            uint32_t state;          /* argument of __setstate__, or HEFT_NONE */
            uint32_t content;        /* LIST or DICT of appended items, or HEFT_NONE */
        } object;
        uint32_t id;
    } as;
    uint32_t at;      /* offset of the opcode in the pickle: see heft_pickle_offset() */
    uint8_t kind;     /* heft_pickle_kind */
    uint8_t mark;     /* free for use by the caller */
    bool is_instance; /* OBJECT: instance of a class, not the result of a function */
} heft_pickle_value;

typedef struct heft_pickle {
    heft_cur c;
    heft_arena *arena;
    heft_vec values; /* heft_pickle_value */
    heft_vec edges, stack, marks, memo;
    uint64_t at; /* offset of the current opcode */
    /* File offset for messages if the pickle was decoded from a compressed range; or
     * HEFT_NOWHERE. */
    uint64_t decoded_from;
    uint32_t memoized;                    /* used entries of the memo */
    uint32_t none, truth[2], empty_tuple; /* shared values, HEFT_NONE before the first use */
    uint32_t root;                        /* result of the pickle */
    heft_status st;
    bool stopped;
} heft_pickle;

/* Read the pickle, smaller than 4 GiB, at the start of `where`; heft_pickle_end() returns the end.
 * `what` names the pickle in messages.  Release with heft_pickle_free(), also after a failure. */
heft_status heft_pickle_read(heft_pickle *out, heft_window *in, heft_range where, heft_arena *arena,
                             const char *what);
void heft_pickle_free(heft_pickle *p);
static inline uint64_t heft_pickle_end(const heft_pickle *p)
{
    return heft_cur_pos(&p->c);
}

static inline heft_pickle_value *heft_pickle_at(const heft_pickle *p, uint32_t v)
{
    return (heft_pickle_value *)p->values.ptr + v;
}
/* Return the file offset of the opcode that created the value, or the offset of the compressed
 * range. */
static inline uint64_t heft_pickle_offset(const heft_pickle *p, uint32_t v)
{
    return p->decoded_from == HEFT_NOWHERE ? p->c.base + heft_pickle_at(p, v)->at : p->decoded_from;
}
static inline bool heft_pickle_is(const heft_pickle *p, uint32_t v, heft_pickle_kind k)
{
    return v != HEFT_NONE && heft_pickle_at(p, v)->kind == k;
}
/* Return true for a TUPLE or a LIST. */
static inline bool heft_pickle_is_sequence(const heft_pickle *p, uint32_t v)
{
    return heft_pickle_is(p, v, HEFT_PICKLE_TUPLE) || heft_pickle_is(p, v, HEFT_PICKLE_LIST);
}

/* Iterator over the items of a TUPLE, LIST, DICT or SET. */
typedef struct heft_pickle_items {
    uint32_t at, left; /* next edge and remaining edges of the current run */
    uint32_t next;     /* next run, or HEFT_NONE */
} heft_pickle_items;
heft_pickle_items heft_pickle_items_of(const heft_pickle *p, uint32_t v);
bool heft_pickle_next(const heft_pickle *p, heft_pickle_items *i, uint32_t *item);
/* Return item i of a TUPLE; HEFT_NONE if v is not a tuple or has fewer items. */
uint32_t heft_pickle_item(const heft_pickle *p, uint32_t v, uint32_t i);
/* Return the value of a text key in a DICT, the last if the key is repeated; HEFT_NONE if
 * absent. */
uint32_t heft_pickle_dict_get(const heft_pickle *p, uint32_t dict, const char *key);
/* Get a non-negative INT; return false for any other value. */
bool heft_pickle_u64(uint64_t *out, const heft_pickle *p, uint32_t v);
/* Return true if v is the given GLOBAL. */
bool heft_pickle_is_global(const heft_pickle *p, uint32_t v, const char *module, const char *name);
heft_str heft_pickle_module(const heft_pickle *p, uint32_t global);
heft_str heft_pickle_name(const heft_pickle *p, uint32_t global);

#endif
