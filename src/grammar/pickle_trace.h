/* pickle_trace.h - what a scan knows of the values on the stack of a pickle, without objects.
 *
 * Texts are known exactly, since the names of imports are texts.  Of numbers, tuples, dictionaries
 * and NumPy's element types, as much is known as the checks of arguments need.  Everything else is
 * a kind of value only.
 */
#ifndef HEFT_PICKLE_TRACE_H
#define HEFT_PICKLE_TRACE_H
#include <heft/heft.h>

#include "base/cursor.h"
#include "grammar/pickle_scan.h"

/* The arguments that a call must have.  A name that is called in another way is a finding. */
typedef enum heft_pickle_rule {
    HEFT_CALL_ANY,          /* no argument makes the call harmful */
    HEFT_CALL_NEVER,        /* a type that is only passed to other functions */
    HEFT_CALL_ENUM,         /* (number); getattr(class, "MEMBER") is allowed, too */
    HEFT_CALL_IDENTITY,     /* (value, …), which is the result: a text or a function, perhaps */
    HEFT_CALL_OUTER,        /* like CALL_ANY; getattr(class, "ProcessGroupState") is allowed, too */
    HEFT_CALL_GETATTR,      /* (class of CALL_ENUM or CALL_OUTER, name of a member) */
    HEFT_CALL_ENCODE,       /* (text, "latin1"): other codecs return text or unpack bytes */
    HEFT_CALL_BYTES,        /* () or (bytes or text, …), not a number of bytes to reserve */
    HEFT_CALL_FACTORY,      /* () or (a type of Python itself, …) */
    HEFT_CALL_REBUILD,      /* (function of CALL_ANY in torch._utils, type, arguments, …) */
    HEFT_CALL_DTYPE,        /* (simple type, False, True); its state is checked, too */
    HEFT_CALL_RECONSTRUCT,  /* (numpy.ndarray, shape, one letter); its state is checked, too */
    HEFT_CALL_SCALAR,       /* (element type without objects, bytes) */
    HEFT_CALL_FROM_BUFFER,  /* (bytes, element type without objects, …) */
    HEFT_CALL_ARRAY_WRAPPER /* (); its state says how many bytes joblib skips after it */
} heft_pickle_rule;

typedef struct heft_pickle_allowed {
    const char *module;
    const char *names; /* each name is preceded and followed by a space */
    heft_pickle_rule rule;
} heft_pickle_allowed;

/* Return the row of the exact name, or NULL.  With is_script, names of TorchScript are allowed. */
const heft_pickle_allowed *heft_pickle_allow(heft_str module, heft_str name, bool is_script);

typedef enum heft_trace_kind {
    HEFT_TRACE_ABSENT,  /* an unused entry of the memo */
    HEFT_TRACE_UNKNOWN, /* the result of a call that is a finding */
    HEFT_TRACE_PLAIN,   /* neither a text nor a function: a set, a large number */
    HEFT_TRACE_NUMBER,
    HEFT_TRACE_TEXT,
    HEFT_TRACE_BYTES,
    HEFT_TRACE_NONE,
    HEFT_TRACE_LIST,
    HEFT_TRACE_TUPLE,
    HEFT_TRACE_DICT,
    HEFT_TRACE_IMPORT,  /* an imported name of the table */
    HEFT_TRACE_DTYPE,   /* numpy.dtype */
    HEFT_TRACE_ARRAY,   /* numpy.ndarray without content so far */
    HEFT_TRACE_WRAPPER, /* joblib's NumpyArrayWrapper */
    HEFT_TRACE_OBJECT   /* the result of an allowed call */
} heft_trace_kind;

typedef struct heft_trace_value {
    union {
        const char *text; /* TEXT */
        int64_t number;   /* NUMBER */
        uint64_t index;   /* TUPLE: of the first item; DICT, DTYPE, WRAPPER, IMPORT: of the row */
    };
    uint32_t len; /* bytes of the text, items of the tuple (HEFT_TRACE_MANY: not kept); of an
                     OBJECT 1 if it is a storage */
    uint8_t kind; /* heft_trace_kind */
} heft_trace_value;

enum { HEFT_TRACE_MANY = INT32_MAX };

typedef struct heft_trace_import {
    const heft_pickle_allowed *row;
    heft_str module, name;
} heft_trace_import;

typedef struct heft_trace_object { /* a dictionary, an element type or a wrapper */
    uint32_t first, len;           /* kept keys and values of a dictionary; len of a type: bytes */
    char letter;                   /* the letter of an element type */
    bool has_many;                 /* more items than are kept */
    bool has_special_key;          /* a key "__…", "append" or the like */
    bool has_objects;              /* elements are pointers to objects */
    bool is_built;                 /* the state has been set */
    bool is_fixed;                 /* a check relies on it: a change is a finding */
} heft_trace_object;

typedef struct heft_trace {
    const heft_pickle_scanner *s;
    const uint8_t *bytes; /* the pickle */
    heft_cur c;
    heft_arena texts;                    /* texts without their escapes */
    heft_vec stack, marks, memo, items;  /* heft_trace_value, uint32_t, heft_trace_value × 2 */
    heft_vec imports, objects, odd_memo; /* rows; entries with numbers that no pickler writes */
    heft_pickle_finding now;             /* offset and opcode of the current opcode */
    uint64_t memoized;                   /* used entries of the memo: the next number of MEMOIZE */
    uint64_t frame_end;                  /* offset of the end of the current frame */
    uint64_t jump_to;                    /* next opcode after frame_end; 0: there */
    bool uses_unknown;                   /* an opcode calls or changes an UNKNOWN value */
    bool has_arrays, has_nested;         /* a pickle of its own begins at jump_to */
    bool is_cut, is_broken, has_stopped, is_out_of_memory;
} heft_trace;

/* ---- findings ---- */

void heft_trace_report(const heft_trace *x, heft_pickle_danger danger, heft_str module,
                       heft_str name);
/* Report that Python would fail, once; the scan ends. */
void heft_trace_break(heft_trace *x);

/* ---- the stack ---- */

void heft_trace_push(heft_trace *x, heft_trace_value v);
void heft_trace_push_kind(heft_trace *x, heft_trace_kind kind);
void heft_trace_push_mark(heft_trace *x);
/* Pop `count` values, or all above the latest mark, and return the lowest; valid until the next
 * push.  NULL, and broken, if there are fewer. */
enum { HEFT_TRACE_TO_MARK = 255 };
const heft_trace_value *heft_trace_pop(heft_trace *x, uint32_t count, uint32_t *popped);
/* Remove the latest mark if no value lies above it, else a value. */
void heft_trace_pop_one(heft_trace *x);
/* Return the uppermost value, or NULL, and broken, if there is none above the latest mark. */
heft_trace_value *heft_trace_top(heft_trace *x);

/* ---- the memo ---- */

/* number: UINT64_MAX past 64 bits, which is a finding. */
void heft_trace_put(heft_trace *x, uint64_t number);
void heft_trace_get(heft_trace *x, uint64_t number);
void heft_trace_free(heft_trace *x);

/* ---- values with a content ---- */

heft_trace_value heft_trace_tuple(heft_trace *x, const heft_trace_value *items, uint32_t n);
/* Return the items of a tuple, NULL for another value and for tuples whose items are not kept. */
const heft_trace_value *heft_trace_items(const heft_trace *x, const heft_trace_value *v,
                                         uint32_t *n);
heft_trace_value heft_trace_new(heft_trace *x, heft_trace_kind kind);
/* Return the object of a DICT, DTYPE or WRAPPER, NULL of another value. */
heft_trace_object *heft_trace_object_of(const heft_trace *x, const heft_trace_value *v);
/* Add keys and values to a dictionary; other values are ignored. */
void heft_trace_add(heft_trace *x, const heft_trace_value *dict, const heft_trace_value *items,
                    uint32_t n);
/* Return the last value of a key, NULL if there is none or the items are not kept. */
const heft_trace_value *heft_trace_find(const heft_trace *x, const heft_trace_value *dict,
                                        const char *key);
const heft_trace_import *heft_trace_import_of(const heft_trace *x, const heft_trace_value *v);
heft_str heft_trace_text(const heft_trace_value *v); /* empty for other values */
bool heft_trace_is_number(const heft_trace_value *v, int64_t n);
bool heft_trace_is_bytes(const heft_trace_value *v); /* or text */

/* ---- literals: the texts of opcodes ---- */

/* Push the text of STRING, with quotes and escapes, and of UNICODE, with escapes "\uXXXX". */
void heft_trace_push_quoted(heft_trace *x, heft_str s);
void heft_trace_push_unicode(heft_trace *x, heft_str s);
void heft_trace_push_text(heft_trace *x, heft_str s);
/* Push the number of INT or LONG, or of FLOAT; Python fails at other texts. */
void heft_trace_push_digits(heft_trace *x, heft_str s, bool is_float);
/* Push a little-endian number of two's complement. */
void heft_trace_push_signed(heft_trace *x, heft_str bytes);
uint64_t heft_trace_unsigned(heft_str bytes);
/* Read the number of a line of the memo, UINT64_MAX past 64 bits; return false for other texts. */
bool heft_trace_line_number(uint64_t *out, heft_str line);

/* ---- calls ---- */

/* Push the result of a call, after a finding if the arguments are not those of a writer. */
void heft_trace_call(heft_trace *x, heft_trace_value function, heft_trace_value arguments,
                     bool has_keywords);
/* Check the state that BUILD gives to the uppermost value. */
void heft_trace_build(heft_trace *x, heft_trace_value state);
/* Push the storage of a persistent id: ("storage", class, key, location, elements, view). */
void heft_trace_push_storage(heft_trace *x, const heft_trace_value *id, uint32_t n);
/* Note that the length of a storage is unknown. */
void heft_trace_odd_storage(heft_trace *x);

#endif
