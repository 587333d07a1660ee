/* safetensors.h - shared by the reader and the writer of safetensors files. */
#ifndef HEFT_SAFETENSORS_H
#define HEFT_SAFETENSORS_H
#include "format/format.h"

enum {
    HEFT_ST_LENGTH = 8,             /* size of the length field before the header */
    HEFT_ST_MAX_HEADER = 100000000, /* limit of the reference implementation */
    HEFT_ST_ALIGN = 8               /* minimum alignment of the data section */
};

/* Return the first tensor with an F8 FNUZ type, or HEFT_NONE.  Readers before safetensors 0.8
 * refuse the whole file because of such a type. */
uint32_t heft_st_find_fnuz(const heft_index *x);
extern const char heft_st_fnuz_text[]; /* message about that */

extern const heft_dtype_spellings heft_st_types;

typedef struct heft_st_header {
    uint64_t data, data_bytes; /* offset and size of the data section */
    uint64_t next;             /* end of the latest tensor's data, relative to `data` */
    bool in_order; /* the data of the tensors is in the order of the entries, without gaps */
} heft_st_header;
/* Fill x from the JSON of the header; h->data and h->data_bytes must be set:
 * safetensors_header.c. */
heft_status heft_st_read_header(heft_st_header *h, heft_index *x, heft_str header);

/* Return true for the only key that is not a tensor's name. */
static inline bool heft_st_is_metadata(heft_str key)
{
    return key.len == 12 && !memcmp(key.ptr, "__metadata__", 12);
}

/* Return true if the header begins with the byte order mark of UTF-8, which is refused. */
static inline bool heft_st_has_mark(heft_str header)
{
    return header.len > 3 && !memcmp(header.ptr, "\xEF\xBB\xBF{", 4);
}

extern const heft_sharding heft_st_sharding;

heft_status heft_st_plan(heft_plan *p);
heft_status heft_st_write_header(const heft_plan *p, heft_out *o);

#endif
