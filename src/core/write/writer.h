/* writer.h - a model declared call by call (declare.c, add.c) and written (writer.c): its bytes are handed over part
 * by part (intake.c), some of them declared late (late.c), and go into the file (payload.c). */
#ifndef HEFT_WRITER_H
#define HEFT_WRITER_H
#include "core/write/append_model.h"
#include "core/write/sparse_input.h"

struct heft_writer {
    heft_planner p;
    heft_sink *sink;
    bool begun;
    heft_error failed; /* what left the model or the file incomplete; status 0: nothing did */
    uint32_t *places;  /* parts by place, for filling what lies between them */
    uint32_t place_count;
    uint32_t *place_of; /* part -> its position in places, or HEFT_NONE: left out */
    uint32_t part;      /* whose bytes come next … */
    uint64_t received,
        written;     /* … how many came, and how many went on in the type that is written */
    bool is_started; /* the part, even when it has no bytes */
    uint32_t place;  /* a stream: up to where it is filled: the place that comes next … */
    uint64_t at;     /* … and the byte */
    heft_running_digest tap; /* digest of the part whose bytes come */
    heft_appender *to; /* of compressed parts, which take their places as they come, or NULL */
    uint32_t filled;   /* pieces that wait to be encoded; the next one is being filled */
    bool spoiled[HEFT_APPEND_MOST];
    heft_vec sparse;           /* heft_sparse_spec *, in the order of their parts … */
    uint32_t next_sparse;      /* … and the one that comes next */
    heft_sparse_input indices; /* of the sparse tensor that comes */
    bool is_late;              /* something was added after the beginning … */
    uint32_t planned;          /* … when there were so many parts */
    heft_text_set names, keys; /* of tensors and of metadata, from then on */
};

/* Sets a message of HEFT_E_ARGUMENT and returns that. */
heft_status heft_writer_wrong(heft_error *err, const char *what);
/* Returns st.  Unless it is HEFT_OK, the writer can only be discarded from here on. */
heft_status heft_writer_break(heft_writer *w, heft_status st, heft_error *err);
/* The error that left the writer incomplete, or HEFT_OK. */
heft_status heft_writer_broken(const heft_writer *w, heft_error *err);
/* Bytes that the caller hands over for a part: in the type that was declared. */
uint64_t heft_writer_length(const heft_writer *w, uint32_t part);
/* heft_plan_source.in_order; ctx is a heft_writer. */
heft_status heft_writer_in_order(void *ctx, uint32_t tensor, bool *strictly);
/* To the next part that has bytes; empty ones are written on the way. */
heft_status heft_writer_advance(heft_writer *w, heft_error *err);
/* Copies a text, or what a value lends, into the index of the planner. */
heft_status heft_writer_copy(heft_planner *p, heft_str *s, heft_error *err);
heft_status heft_writer_copy_value(heft_planner *p, heft_value *v, heft_error *err);
/* Whether a value has a kind that there is, texts of UTF-8, and as many bytes as its kind takes. */
bool heft_writer_is_value(const heft_value *v);

/* ---- while the file is written, late.c ---- */

bool heft_writer_grows(
    const heft_writer *w); /* what it writes is of a format with HEFT_CAN_APPEND */
/* HEFT_E_ARGUMENT for what comes after the beginning, "tensors come", of another format. */
heft_status heft_writer_too_late(const heft_writer *w, const char *what, heft_error *err);
/* Before something is added for the first time. */
heft_status heft_writer_open_late(heft_writer *w, heft_error *err);
/* The tensor added last has a name of its own. */
heft_status heft_writer_late_name(heft_writer *w, heft_error *err);
/* The value of the top level that was added last, which is taken away again when the format cannot carry it. */
heft_status heft_writer_late_value(heft_writer *w, uint32_t value, heft_error *err);
/* From here on parts take their places as they come. */
heft_status heft_writer_append(heft_writer *w, heft_error *err);

/* ---- into the file, payload.c ---- */

/* Once the plan has run: the places of parts. */
heft_status heft_writer_find_places(heft_writer *w, heft_error *err);
/* The next bytes of the part, in the type that is written. */
heft_status heft_writer_put(heft_writer *w, uint32_t part, const void *data, size_t len,
                            heft_error *err);
bool heft_writer_leaves_out(const heft_writer *w, uint32_t part);
/* What lies between parts that were planned, up to the end of the last of them. */
heft_status heft_writer_fill(heft_writer *w, heft_error *err);
heft_status heft_writer_open_appender(heft_writer *w, heft_error *err);
/* Encodes the pieces that wait, side by side, and writes them in order. */
heft_status heft_writer_flush(heft_writer *w, heft_error *err);

#endif
