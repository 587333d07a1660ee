/* shard_index.h - the JSON index of a model in several files, as written by the transformers
 * library for safetensors and PyTorch. */
#ifndef HEFT_SHARD_INDEX_H
#define HEFT_SHARD_INDEX_H
#include "format/format.h"

typedef struct heft_shard_index_kind {
    const char *total_rule;        /* rule of the note that total_size is not an integer */
    const char *mark_rule;         /* rule of the note that a byte order mark begins the index */
    bool (*is_own)(heft_str file); /* true if a file of this name belongs to the format */
    const char *title;             /* title of the format, for messages */
    bool names_groups;             /* it lists groups of tensors, by path, each with its files */
} heft_shard_index_kind;

/* Return true for white space between JSON tokens. */
bool heft_shard_index_is_space(uint8_t c);
/* Return true if a file that begins with these eight bytes may be a JSON object. */
bool heft_shard_index_is_json_object(const uint8_t *first);
/* Return true if a file that begins with `head` is an index, and the first shard that the index
 * names, with escapes unprocessed; empty if that name lies beyond `len` bytes.  For probes. */
bool heft_shard_index_recognise(const uint8_t *head, size_t len);
heft_str heft_shard_index_first_shard(const uint8_t *head, size_t len);
/* Return true for the name of a PyTorch file: .bin, .pt, .pth. */
bool heft_shard_index_is_torch_name(heft_str file);
/* Fill x with the entries of the index.  HEFT_E_UNSUPPORTED: a shard has a different format. */
heft_status heft_shard_index_parse(heft_window *in, heft_index *x,
                                   const heft_shard_index_kind *kind);
/* Emit the name of shard i of `count`, which ends in `suffix`; i == count: the name of the index.
 */
void heft_shard_index_put_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count,
                               const char *suffix);
/* Emit an index whose shards have the names that put_name() emits. */
void heft_shard_index_put(heft_out *o, const heft_shard_set *s,
                          void (*put_name)(heft_out *o, heft_str stem, uint32_t i, uint32_t count));

#endif
