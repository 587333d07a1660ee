/* linked.h - files that were written but have not appeared yet, for an index that refers to their parts. */
#ifndef HEFT_LINKED_H
#define HEFT_LINKED_H
#include "core/read/file.h"

typedef struct heft_linked heft_linked;

heft_status heft_linked_begin(heft_linked **out, const heft_host *h, const heft_format *format,
                              uint32_t count, heft_error *err);
/* The sink of the next of count files: takes inner over, and keeps it from appearing. */
heft_sink *heft_linked_sink(heft_linked *l, heft_sink *inner);
/* The file that was written last is complete, with so many bytes: reads it back. */
heft_status heft_linked_add(heft_linked *l, uint64_t size, heft_error *err);
/* All of them as one model, and what is to be said of each; they live as long as l. */
heft_status heft_linked_join(heft_linked *l, const heft_file **out, const heft_plan_link **links,
                             heft_error *err);
/* Lets all of them appear, in their order. */
heft_status heft_linked_finish(heft_linked *l, heft_error *err);
void heft_linked_free(heft_linked *l); /* NULL is harmless */

#endif
