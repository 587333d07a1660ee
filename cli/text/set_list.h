/* set_list.h - lists in the values of --set, spelled as JSON: ["a", "b"], [1, 2.5]. */
#ifndef HEFT_CLI_SET_LIST_H
#define HEFT_CLI_SET_LIST_H
#include <heft/heft.h>

struct set_list; /* memory that lists borrow */
typedef enum list_result { LIST_READ, LIST_IS_NONE, LIST_NO_MEMORY } list_result;

typedef struct list_elements {
    heft_kind kind; /* HEFT_KIND_NULL: texts, booleans or numbers */
    heft_dtype stored;
    bool packs_booleans; /* they become an array, as numbers do */
} list_elements;

/* Read the text of `given` as a list of texts, of booleans or of numbers. Numbers become an array
 * of type `stored`, or of i32, i64 or f64 if `stored` is HEFT_UNTYPED. Other elements follow *to,
 * at index `at`, with capacity for every element of the text; *more becomes their number.
 * LIST_IS_NONE: the text is not such a list, or a number does not fit. *owner owns the memory that
 * *to borrows. */
list_result set_list_read(struct set_list **owner, heft_value *to, size_t *more, uint32_t at,
                          heft_value given, list_elements wanted);
/* Return the element type of an existing array, or HEFT_UNTYPED. */
heft_dtype set_list_dtype(const heft_value *existing);
void set_list_free(struct set_list *owner);

#endif
