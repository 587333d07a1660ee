/* append_model.h - compressed parts, appended as they come: pieces of a fixed size, each a frame of its own, are encoded
 * on as many threads as there are and written one after the other.  The file does not depend on how many. */
#ifndef HEFT_APPEND_MODEL_H
#define HEFT_APPEND_MODEL_H
#include "core/check/checksum_sweep.h"
#include "core/read/progress.h"
#include "core/read/stream.h"
#include "core/write/plan.h"

enum { HEFT_APPEND_MOST = 12 }; /* pieces on their way */

typedef struct heft_piece {
    uint32_t part;
    uint64_t from;  /* where in the part it begins */
    size_t len;     /* of its content */
    bool last;      /* of the part */
    uint8_t *raw;   /* its content, for the caller to fill; room for heft_appender.piece bytes */
    size_t encoded; /* in out, once it was encoded */
    uint8_t *out;
    const heft_codec *codec; /* of the encoder; NULL: there is none yet */
    int level;
    void *encoder;
} heft_piece;

typedef struct heft_appender {
    heft_planner *p;
    heft_sink *sink;
    size_t piece; /* bytes of content of each but a part's last */
    size_t room;  /* bytes that the encoding of a piece can take */
    heft_piece pieces[HEFT_APPEND_MOST];
    uint32_t width; /* of them are there */
    uint64_t at;    /* end of the file so far */
    uint64_t part_start;
    heft_memory mem;
    heft_vec frames;         /* of the part being written, for formats that ask for them */
    heft_running_digest tap; /* digest of its stored or decoded bytes */
    heft_error *err;
} heft_appender;

heft_status heft_append_open(heft_appender *a, heft_planner *p, heft_sink *sink, heft_error *err);
/* Encodes a piece; on any thread, each piece by one at a time. */
heft_status heft_append_encode(const heft_appender *a, heft_piece *s, heft_error *err);
/* Pieces come here in the order of the file: all of a part, then the next. */
heft_status heft_append_write(heft_appender *a, const heft_piece *s, heft_error *err);
void heft_append_close(heft_appender *a); /* one of zeros is harmless */

#endif
