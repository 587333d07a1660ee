/* mag.h - layouts, limits and functions shared by the reader and the writer of the .mag format. */
#ifndef HEFT_MAG_H
#define HEFT_MAG_H
#include "format/format.h"

enum {
    HEFT_MAG_ALIGN = 64,
    HEFT_MAG_MAX_KEY = 65535,
    HEFT_MAG_I64 = 1, /* value types of metadata records */
    HEFT_MAG_F64 = 2,
    HEFT_MAG_NO_CODE = 256,
    HEFT_MAG_SNAPSHOT_HEADER = 32,
    HEFT_MAG_CRC_SCRATCH = 512,
    HEFT_MAG_PADDING = 0xFF,
    HEFT_MAG_PADDING_SAMPLES = 16
};

typedef struct heft_mag_layout { /* one generation of the format */
    const char *version;         /* "1", "100", "snapshot" */
    const heft_dtype *types;     /* by element type code */
    uint32_t type_count;
    uint32_t min_rank, max_rank;
    uint32_t max_reader_rank; /* highest rank that Magnetron's own reader accepts */
} heft_mag_layout;

extern const heft_mag_layout heft_mag_layout_1, heft_mag_layout_100, heft_mag_snapshot_layout;

/* Return the code of a type, or HEFT_MAG_NO_CODE if the layout does not support the type. */
uint32_t heft_mag_code(const heft_mag_layout *l, heft_dtype t);

typedef enum heft_mag_code_3 {
    HEFT_MAG_U8,
    HEFT_MAG_U8_UNDECIDED, /* read as u8, but the file does not rule out i32 */
    HEFT_MAG_I32_BY_SIZE,
    HEFT_MAG_I32_BY_PADDING
} heft_mag_code_3;

/* Guess the meaning of code 3 in a version-100 archive: u8, but i32 before 23 November 2025.  The
 * u8 tensors of the index are all taken for i32 if every payload has space for i32 data, and at
 * least one payload has the size of i32 data or is followed by bytes that are not the padding of u8
 * data.  order: tensors by payload offset, or NULL if the payloads ascend already.  HEFT_AGAIN:
 * padding has to be loaded first, at most 63 bytes for each of HEFT_MAG_PADDING_SAMPLES tensors. */
heft_status heft_mag_guess_code_3(heft_mag_code_3 *out, heft_window *in, const heft_index *x,
                                  const uint32_t *order);
/* Return true if a reader of a planned file would guess i32 from the payload sizes alone.  The
 * payloads are in the order of the tensors.  The padding of a written file needs no check: it is
 * always the padding of u8 data. */
bool heft_mag_sizes_imply_i32(const heft_index *x, uint64_t file_bytes);
/* Change the type of every u8 tensor to i32, and the part lengths with it. */
void heft_mag_retype_u8_as_i32(heft_index *x);

/* Report and drop the tensors that the layout cannot represent, then compact the index. */
heft_status heft_mag_plan_tensors(heft_plan *p, const heft_mag_layout *l);
/* Emit the bytes that the header's CRC-32C covers.  Return HEFT_E_IO if the CRC is not `crc`,
 * which was computed while planning and has already been written. */
heft_status heft_mag_put_checked(const heft_plan *p, heft_out *o, uint32_t crc,
                                 void (*put)(const heft_plan *p, heft_out *o));
heft_status heft_mag_archive_plan(heft_plan *p);
heft_status heft_mag_archive_write_header(const heft_plan *p, heft_out *o);

heft_status heft_mag_snapshot_parse(heft_window *in, heft_index *x);
heft_status heft_mag_snapshot_plan(heft_plan *p);
heft_status heft_mag_snapshot_write_header(const heft_plan *p, heft_out *o);

#endif
