/* shard_index.h - the index of a model in several files, as the library transformers writes it for safetensors and
 * for PyTorch. */
#ifndef HEFT_SHARD_INDEX_H
#define HEFT_SHARD_INDEX_H
#include "format/format.h"

typedef struct heft_shard_index_kind {
    const char *total_rule;        /* of the note that total_size is not a number */
    bool (*is_own)(heft_str file); /* whether a file of that name is one of the format */
    const char *title;             /* of the format */
} heft_shard_index_kind;

bool heft_shard_index_is_space(uint8_t c); /* between the tokens of JSON */
/* Whether a file that begins with these eight bytes is a JSON object. */
bool heft_shard_index_is_json_object(const uint8_t *first);
/* For probes: whether a file that begins so is an index, and the first shard that it names, as spelled; empty: not
 * within these bytes. */
bool heft_shard_index_recognise(const uint8_t *head, size_t len);
heft_str heft_shard_index_first_shard(const uint8_t *head, size_t len);
/* Whether the name is that of a PyTorch file: .bin, .pt, .pth. */
bool heft_shard_index_is_torch_name(heft_str file);
/* Fills x with what the index lists.  HEFT_E_UNSUPPORTED: it names files of another format. */
heft_status heft_shard_index_parse(heft_window *in, heft_index *x,
                                   const heft_shard_index_kind *kind);

#endif
