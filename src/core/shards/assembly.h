/* assembly.h - the bytes of assembled tensors (model/boxes.h): a source that gathers them from
 * their boxes when they are read.
 *
 * The source has the bytes of the assembled tensors one after the other and is the last shard of
 * the model, so that all who read a part read an assembled tensor as any other. */
#ifndef HEFT_ASSEMBLY_H
#define HEFT_ASSEMBLY_H
#include "core/read/file.h"
#include "model/boxes.h"

/* Add the source to f, if f has assembled tensors, and the offsets of their parts.  Call after the
 * shards are open. */
heft_status heft_assembly_add(heft_file *f, heft_error *err);

/* ---- for assembly.c ---- */

/* Make a source of the assembled tensors of f, which must outlive the source;
 * assembled_source.c. */
heft_status heft_assembled_source(heft_source **out, const heft_file *f, heft_error *err);

#endif
