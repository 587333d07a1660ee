/* msgpack_tree.h - walks a tree of nested maps and lists in MessagePack, in which a format
 * recognises its tensors.
 *
 * The walk keeps the name of the value at the cursor, the keys of all enclosing containers joined
 * by a separator, and adds values that the format does not take as metadata with that name.
 */
#ifndef HEFT_MSGPACK_TREE_H
#define HEFT_MSGPACK_TREE_H
#include "format/format.h"
#include "grammar/msgpack.h"

typedef struct heft_msgpack_tree heft_msgpack_tree;
struct heft_msgpack_tree {
    heft_cur c;         /* cursor.what names the tree in messages: "the record" */
    heft_index *x;      /* receives tensors and metadata */
    char separator;     /* between keys */
    bool keeps_empty;   /* nil and empty maps are metadata; else they are passed over */
    bool has_separator; /* some key has the separator; set by the walk */
    bool is_inside;     /* some key was read: an empty name is that of a value with an empty key */
    heft_vec path;      /* char: name of the value at the cursor */
    uint64_t budget;    /* bytes that names and metadata values may still take */
    /* Take a map or an extension, whose head was read.  Set *is_taken after reading all of it.
     * Otherwise the cursor may stay where it is; or *item becomes a value inside that stands for
     * the whole map, with the cursor after the head of that value.  Every extension has to be
     * taken. */
    heft_status (*take)(heft_msgpack_tree *t, heft_msgpack_item *item, bool *is_taken);
    void *ctx; /* for take() */
};

/* Open a tree over the whole file, at the first byte; the caller sets take() and ctx. */
heft_msgpack_tree heft_msgpack_tree_open(heft_window *in, heft_index *x, const char *what,
                                         char separator);
/* Release the memory of the tree. */
void heft_msgpack_tree_close(heft_msgpack_tree *t);
/* Add the content of an item after its head was read, without recursion. */
heft_status heft_msgpack_tree_walk(heft_msgpack_tree *t, const heft_msgpack_item *item);
/* Copy the name of the value at the cursor to the index; the tree itself is named `fallback`. */
heft_status heft_msgpack_tree_name(heft_msgpack_tree *t, uint64_t at, const char *fallback,
                                   heft_str *out);
/* Set and return HEFT_E_NOMEM. */
heft_status heft_msgpack_tree_no_memory(const heft_msgpack_tree *t);

#endif
