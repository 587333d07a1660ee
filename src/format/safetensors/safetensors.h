/* safetensors.h - what reading and writing safetensors share. */
#ifndef HEFT_SAFETENSORS_H
#define HEFT_SAFETENSORS_H
#include "format/format.h"

enum {
    HEFT_ST_LENGTH = 8,             /* of the field in front of the header */
    HEFT_ST_MAX_HEADER = 100000000, /* what every reader refuses to go beyond */
    HEFT_ST_ALIGN = 8               /* the least that data must be aligned to */
};

/* The first tensor of a type that readers before safetensors 0.8 refuse the whole file for, or HEFT_NONE. */
uint32_t heft_st_find_fnuz(const heft_index *x);
extern const char heft_st_fnuz_text[]; /* what that means */

extern const heft_dtype_spellings heft_st_types;

typedef struct heft_st_header { /* what the entries say together */
    uint64_t data, data_bytes;  /* where the data begin, and how many there are */
    uint64_t next; /* where they end, as far as tensors come in order, counted from there */
    bool in_order;
} heft_st_header;
/* Fills x from the JSON, whose data and data_bytes are known: safetensors_header.c. */
heft_status heft_st_read_header(heft_st_header *h, heft_index *x, heft_str header);

/* The key that is no tensor. */
static inline bool heft_st_is_metadata(heft_str key)
{
    return key.len == 12 && !memcmp(key.ptr, "__metadata__", 12);
}

/* The index of a model in several files: safetensors_index.c. */
heft_status heft_st_parse_index(heft_window *in, heft_index *x);

extern const heft_sharding heft_st_sharding;

heft_status heft_st_plan(heft_plan *p);
heft_status heft_st_write_header(const heft_plan *p, heft_out *o);

#endif
