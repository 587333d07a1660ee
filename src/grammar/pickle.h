/* pickle.h - Python's pickles, protocols 0 to 5, read into a graph of values.
 *
 * A pickle is a program that builds objects by calling functions which it names.  Nothing is called here:
 * a call becomes a value that says what would be called and with what, and whoever reads the graph decides by
 * that name.  The graph may share values and run in circles; every value, every edge, every place on the
 * stack is paid for by a byte of the pickle at least, and memory is in proportion to those.
 *
 * Strings are lent by the file, but for those with escapes (protocol 0), which are copied into the arena.
 * Like every parser it may end with HEFT_AGAIN and be called again from the start.
 */
#ifndef HEFT_PICKLE_H
#define HEFT_PICKLE_H
#include "base/arena.h"
#include "base/cursor.h"

typedef enum heft_pickle_kind {
    HEFT_PICKLE_NONE,
    HEFT_PICKLE_BOOL,
    HEFT_PICKLE_INT,
    HEFT_PICKLE_BIG,     /* an integer beyond 64 bits: s, two's complement, least byte first */
    HEFT_PICKLE_DECIMAL, /* a number as text that is no integer of 64 bits: s */
    HEFT_PICKLE_FLOAT,
    HEFT_PICKLE_TEXT,  /* UTF-8 */
    HEFT_PICKLE_BYTES, /* and texts of Python 2 that are not UTF-8 */
    HEFT_PICKLE_TUPLE,
    HEFT_PICKLE_LIST,
    HEFT_PICKLE_DICT, /* items: key, value, key, value, … */
    HEFT_PICKLE_SET,
    HEFT_PICKLE_GLOBAL,     /* a function or class by name: TEXT values module and name */
    HEFT_PICKLE_OBJECT,     /* what a call would give */
    HEFT_PICKLE_PERSISTENT, /* something outside of the pickle: args is its id */
    HEFT_PICKLE_PAUSED      /* never read: a place on the stack that MARK holds */
} heft_pickle_kind;

typedef struct heft_pickle_value {
    union {
        bool b;
        int64_t i;
        double f;
        heft_str s;
        struct {
            uint32_t first, last, count; /* runs of edges: see heft_pickle_items() */
        } items;
        struct {
            uint32_t module, name;
        } global;
        struct {
            uint32_t callable, args; /* GLOBAL, TUPLE */
            uint32_t state;          /* handed to __setstate__, or HEFT_NONE */
            uint32_t content;        /* a LIST or DICT of what was appended or set, or HEFT_NONE */
        } object;
        uint32_t id;
    } as;
    uint32_t at;      /* of the opcode that made it, in the pickle: see heft_pickle_offset() */
    uint8_t kind;     /* heft_pickle_kind */
    uint8_t mark;     /* the reader's own */
    bool is_instance; /* OBJECT: made by a class, not by calling what may be any function */
} heft_pickle_value;

typedef struct heft_pickle {
    heft_cur c;
    heft_arena *arena;
    heft_vec values; /* heft_pickle_value */
    heft_vec edges, stack, marks, memo;
    uint64_t at; /* of the opcode that is obeyed */
    uint64_t
        apart; /* the pickle is not in the file as it is: the place of what it comes from; or HEFT_NOWHERE */
    uint32_t memoized, none, truth[2], unit;
    uint32_t root; /* of the graph, once it is read */
    heft_status st;
    bool stopped;
} heft_pickle;

/* Reads the pickle that begins where `where` does and ends within it, of less than 4 GiB; heft_pickle_end() says
 * where.
 * Release with heft_pickle_free(), also after a failure. */
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
/* Where in the file the opcode stands that made the value, or what the pickle comes from. */
static inline uint64_t heft_pickle_offset(const heft_pickle *p, uint32_t v)
{
    return p->apart == HEFT_NOWHERE ? p->c.base + heft_pickle_at(p, v)->at : p->apart;
}
static inline bool heft_pickle_is(const heft_pickle *p, uint32_t v, heft_pickle_kind k)
{
    return v != HEFT_NONE && heft_pickle_at(p, v)->kind == k;
}

/* The items of a TUPLE, LIST, DICT or SET, one after the other. */
typedef struct heft_pickle_items {
    uint32_t at, left; /* in the run of edges */
    uint32_t next;     /* run, or HEFT_NONE */
} heft_pickle_items;
heft_pickle_items heft_pickle_items_of(const heft_pickle *p, uint32_t v);
bool heft_pickle_next(const heft_pickle *p, heft_pickle_items *i, uint32_t *item);
/* Item i of a TUPLE; HEFT_NONE: v is no tuple, or has not so many. */
uint32_t heft_pickle_item(const heft_pickle *p, uint32_t v, uint32_t i);
/* The value of a text key in a DICT, the one that was set last; HEFT_NONE: there is none. */
uint32_t heft_pickle_dict_get(const heft_pickle *p, uint32_t dict, const char *key);
/* A non-negative INT. */
bool heft_pickle_u64(uint64_t *out, const heft_pickle *p, uint32_t v);
/* Whether v is the GLOBAL of that name. */
bool heft_pickle_is_global(const heft_pickle *p, uint32_t v, const char *module, const char *name);
heft_str heft_pickle_module(const heft_pickle *p, uint32_t global);
heft_str heft_pickle_name(const heft_pickle *p, uint32_t global);

#endif
