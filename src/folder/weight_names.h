/* weight_names.h - what the name of a file in a model's folder says about the file. */
#ifndef HEFT_WEIGHT_NAMES_H
#define HEFT_WEIGHT_NAMES_H
#include "base/numbered_name.h"

/* The index of a distributed checkpoint of PyTorch. */
#define HEFT_DCP_INDEX ".metadata"

/* The preference of a name: the highest is opened.  The names of a table, see docs/shards.md, come
 * before other files with the suffix of a format. */
enum {
    HEFT_NO_WEIGHTS,
    HEFT_UNKNOWN_WEIGHTS, /* a suffix of many formats: .bin, .ckpt */
    HEFT_WEIGHTS,         /* the suffix of a format */
    HEFT_WELL_KNOWN       /* a name of the table; greater numbers, too */
};

typedef struct heft_weight_name {
    const char *name;            /* terminated, without a folder */
    heft_numbered_name numbered; /* count 0: the name is not that of one of several shards */
    const char *family;  /* the format, "torch": files of different families may be the same weights
                            in two forms */
    const char *foreign; /* the program whose file this build does not read, or NULL */
    int rank;
    bool is_index; /* lists shards, as JSON */
    bool is_torch; /* a well-known name of PyTorch: safetensors files are preferred */
    bool is_adapter;
    bool is_piece; /* one of the files of a distributed checkpoint in safetensors */
} heft_weight_name;

/* Classify a name, which is borrowed. */
heft_weight_name heft_weight_name_of(const char *name);
/* Return the name without number, variant and suffix: "model". */
heft_str heft_weight_name_base(const heft_weight_name *w);
/* Return the variant in a name, such as "fp16", if it says how numbers are stored; else "". */
heft_str heft_weight_name_variant(const heft_weight_name *w);
/* Return true if both files are of one family. */
bool heft_weight_name_is_related(const heft_weight_name *a, const heft_weight_name *b);
/* Return true if both names differ only in a variant, such as "fp16", before the suffix. */
bool heft_weight_name_is_variant(const heft_weight_name *a, const heft_weight_name *b);
/* Return true if the index may list the shard, judging by the names. */
bool heft_weight_name_may_list(const heft_weight_name *index, const heft_weight_name *shard);
/* Return true for the numbered shard `shard` of a zTensor model with the manifest `root`. */
bool heft_weight_name_is_manifest_of(const heft_weight_name *root, const heft_weight_name *shard);
/* Return true if, judging by the names, the file `index` may be the index of a model with the shard
 * `shard`, whatever the shard is called. */
bool heft_weight_name_may_be_index_of(const char *index, const char *shard);

#endif
