/* pickle_write.h - writes pickles of protocol 2, with the opcodes that restricted readers accept.
 *
 * The caller emits values in the order of a stack machine: a container is an opcode, its items, and
 * an opcode that collects them (heft_pickle_op). */
#ifndef HEFT_PICKLE_WRITE_H
#define HEFT_PICKLE_WRITE_H
#include "base/out.h"

/* Opcodes without an argument. */
enum {
    HEFT_OP_MARK = '(',
    HEFT_OP_TUPLE = 't', /* collects all values since the mark */
    HEFT_OP_EMPTY_TUPLE = ')',
    HEFT_OP_EMPTY_LIST = ']',
    HEFT_OP_APPENDS = 'e', /* all values since the mark, to the list below the mark */
    HEFT_OP_EMPTY_DICT = '}',
    HEFT_OP_SET_ITEMS = 'u',  /* keys and values since the mark, in the dictionary below it */
    HEFT_OP_CALL = 'R',       /* the function below, with the tuple on top */
    HEFT_OP_PERSISTENT = 'Q', /* an object outside of the pickle, named by the value on top */
    HEFT_OP_BUILD = 'b',      /* the object below gets the state on top */
    HEFT_OP_NONE = 'N',
    HEFT_OP_STOP = '.'
};

enum { HEFT_PICKLE_WRITE_MEMO = 96, HEFT_PICKLE_BATCH = 1000 };

typedef struct heft_pickle_writer {
    heft_out *o;
    uint32_t memoized;
    const void *memo[HEFT_PICKLE_WRITE_MEMO]; /* address of each memoized text or name */
} heft_pickle_writer;

/* Begin a pickle; w->o is set. */
void heft_pickle_write_begin(heft_pickle_writer *w);
void heft_pickle_op(const heft_pickle_writer *w, char op);
/* Emit a text, UTF-8 of less than 4 GiB. */
void heft_pickle_write_text(const heft_pickle_writer *w, heft_str s);
/* Emit a text that occurs often: the first time as a text, later as a memo entry.  The address
 * identifies the text. */
void heft_pickle_write_shared(heft_pickle_writer *w, const char *text);
/* Emit a function or class likewise; the address of its name identifies it. */
void heft_pickle_write_global(heft_pickle_writer *w, const char *module, const char *name);
/* Emit an object of the class without its state: HEFT_OP_BUILD gives it one. */
void heft_pickle_write_object(heft_pickle_writer *w, const char *module, const char *name);
void heft_pickle_write_bool(const heft_pickle_writer *w, bool b);
void heft_pickle_write_u64(const heft_pickle_writer *w, uint64_t n);
void heft_pickle_write_i64(const heft_pickle_writer *w, int64_t n);
void heft_pickle_write_f64(const heft_pickle_writer *w, double f);
/* Emit bytes as protocol 2 does, _codecs.encode(TEXT, "latin1"): it has no opcode for bytes. */
void heft_pickle_write_bytes(heft_pickle_writer *w, heft_str bytes);
/* Collect `count` values on top of the stack as a tuple.  heft_pickle_tuple_mark() comes before the
 * first value. */
void heft_pickle_tuple_mark(const heft_pickle_writer *w, uint32_t count);
void heft_pickle_tuple(const heft_pickle_writer *w, uint32_t count);

#endif
