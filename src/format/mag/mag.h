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
    HEFT_MAG_CRC_SCRATCH = 512,
    HEFT_MAG_PADDING = 0xFF,
    HEFT_MAG_PEEKS = 16
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
typedef enum heft_mag_code_3 {
    HEFT_MAG_U8,
    HEFT_MAG_U8_PERHAPS, /* nothing in the file rules out i32 */
    HEFT_MAG_I32_BY_SIZE,
    HEFT_MAG_I32_BY_PADDING
} heft_mag_code_3;

/* Code 3 of version 100 is u8, but was i32 before 23 November 2025.  All u8 tensors of a version-100 archive are i32
 * when each has room enough and one has the room of an i32, or bytes behind it that do not pad a u8.  order is that of the
 * payloads, or NULL when they ascend.  HEFT_AGAIN: some of those bytes are missing; there are at most 63 for each of
 * HEFT_MAG_PEEKS tensors. */
heft_status heft_mag_guess_code_3(heft_mag_code_3 *out, heft_window *in, const heft_index *x,
                                  const uint32_t *order);
/* Whether the sizes alone say so of what is written, in the order of its tensors; its padding says u8. */
bool heft_mag_sizes_say_i32(const heft_index *x, uint64_t file_bytes);
/* Read all u8 tensors as i32. */
void heft_mag_u8_to_i32(heft_index *x);

/* Reports the tensors that the layout cannot carry, drops them, and closes the gaps. */
heft_status heft_mag_plan_tensors(heft_plan *p, const heft_mag_layout *l);
/* Writes what the header's CRC-32C covers; HEFT_E_IO when these bytes are not those that gave crc, which stands
 * in front of them already. */
heft_status heft_mag_put_checked(const heft_plan *p, heft_out *o, uint32_t crc,
                                 void (*put)(const heft_plan *p, heft_out *o));
heft_status heft_mag_archive_plan(heft_plan *p);
heft_status heft_mag_archive_write_header(const heft_plan *p, heft_out *o);

heft_status heft_mag_snapshot_parse(heft_window *in, heft_index *x);
heft_status heft_mag_snapshot_plan(heft_plan *p);
heft_status heft_mag_snapshot_write_header(const heft_plan *p, heft_out *o);

#endif
