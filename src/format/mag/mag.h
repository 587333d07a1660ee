/* mag.h - what the files of the format .mag share: generations, and what they may hold. */
#ifndef HEFT_MAG_H
#define HEFT_MAG_H
#include "format/format.h"

enum {
    HEFT_MAG_ALIGN = 64,
    HEFT_MAG_MAX_KEY = 65535,
    HEFT_MAG_I64 = 1, /* types of metadata records */
    HEFT_MAG_F64 = 2,
    HEFT_MAG_NO_CODE = 256,
    HEFT_MAG_SNAPSHOT_HEADER = 32,
    HEFT_MAG_CRC_SCRATCH = 512
};

typedef struct heft_mag_layout { /* a generation of the format */
    const char *version;         /* "1", "100", "snapshot" */
    const heft_dtype *types;     /* by code */
    uint32_t type_count;
    uint32_t min_rank, max_rank;
    uint32_t reader_rank; /* the highest that Magnetron's own reader takes */
} heft_mag_layout;

extern const heft_mag_layout heft_mag_layout_1, heft_mag_layout_100, heft_mag_snapshot_layout;

/* HEFT_MAG_NO_CODE: the layout has none for this type. */
uint32_t heft_mag_code(const heft_mag_layout *l, heft_dtype t);
/* Code 3 of version 100 is u8, but was i32 before 23 November 2025.  Whether all u8 tensors of a
 * version-100 archive are i32: each has room enough, and one has the room of an i32.  order is
 * that of the payloads, or NULL when they ascend. */
bool heft_mag_code_3_is_i32(const heft_index *x, const uint32_t *order, uint64_t file_bytes);
void heft_mag_u8_to_i32(heft_index *x);

/* Reports the tensors that the layout cannot carry, drops them, and closes the gaps. */
heft_status heft_mag_plan_tensors(heft_plan *p, const heft_mag_layout *l);
heft_status heft_mag_archive_plan(heft_plan *p);
heft_status heft_mag_archive_front(const heft_plan *p, heft_out *o);

heft_status heft_mag_snapshot_parse(heft_in *in, heft_index *x);
heft_status heft_mag_snapshot_plan(heft_plan *p);
heft_status heft_mag_snapshot_front(const heft_plan *p, heft_out *o);

#endif
