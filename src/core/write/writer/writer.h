/* writer.h - a model declared call by call (declare_metadata.c, add_tensor.c) and written
 * (writer.c). The caller passes the data part by part (accept_data.c), may add tensors and
 * metadata after the beginning (late_tensors.c), and payload.c writes the data.
 *
 * This room has the writer of programs that declare a model themselves; what it shares with
 * conversions is in the rooms plan, append and convert. */
#ifndef HEFT_WRITER_H
#define HEFT_WRITER_H
#include "core/write/append/frame_output.h"
#include "core/write/writer/sparse_input.h"

struct heft_writer {
    heft_planner p;
    heft_sink *sink;
    heft_inserting_sink inserting;
    bool begun;
    heft_error failed;    /* error that left the model or the file incomplete; status 0: none */
    uint32_t *file_order; /* parts sorted by offset */
    uint32_t file_order_count;
    uint32_t *order_of; /* part -> index in file_order, or HEFT_NONE: left out */
    uint32_t part;      /* next part to receive data */
    /* Bytes of the part received from the caller, and bytes passed on in the type of the file. */
    uint64_t received, written;
    bool is_started; /* start_part() has run for the part, which may be empty */
    /* Stream: the first gap that is not written yet, as the index in file_order of the part
     * after the gap; the offset of the gap. */
    uint32_t next_gap;
    uint64_t filled_to;
    heft_running_digest part_digest; /* digest of the part being received */
    heft_appender *appender;         /* appends compressed and late parts; or NULL */
    uint32_t chunks_filled;          /* full chunks that wait to be encoded */
    heft_vec sparse;                 /* heft_sparse_spec *, in the order of the parts */
    uint32_t next_sparse;            /* index in `sparse` of the next sparse tensor */
    heft_sparse_input indices;       /* checks the indices of the sparse tensor being received */
    bool checks_values;              /* refuse values that break a heft_value_rule */
    bool is_late;                    /* something was added after heft_writer_begin() */
    uint32_t declared_parts;         /* number of parts declared before the first late addition */
    heft_text_set names, keys;       /* names of tensors and keys of metadata, once is_late */
};

/* Set an error of HEFT_E_ARGUMENT and return that status. */
heft_status heft_writer_argument_error(heft_error *err, const char *what);
/* Return st.  Unless st is HEFT_OK, record the error: from then on the writer can only be
 * discarded. */
heft_status heft_writer_record_failure(heft_writer *w, heft_status st, heft_error *err);
/* Return the recorded error, or HEFT_OK. */
heft_status heft_writer_failure(const heft_writer *w, heft_error *err);
/* Return the bytes that the caller has to pass for a part, in the declared element type. */
uint64_t heft_writer_length(const heft_writer *w, uint32_t part);
/* Implement heft_plan_source.is_sorted; ctx is a heft_writer. */
heft_status heft_writer_in_order(void *ctx, uint32_t tensor, bool *strictly);
/* Implement heft_plan_source.check_values; ctx is a heft_writer. */
heft_status heft_writer_check_values(void *ctx, uint32_t tensor, heft_value_rule *broken);
/* Advance to the next part that has bytes; finish empty parts on the way. */
heft_status heft_writer_advance(heft_writer *w, heft_error *err);
/* Copy a string, or everything that a value borrows, into the planner's index. */
heft_status heft_writer_copy(heft_planner *p, heft_str *s, heft_error *err);
heft_status heft_writer_copy_value(heft_planner *p, heft_value *v, heft_error *err);

/* ---- additions while writing, late_tensors.c ---- */

bool heft_writer_grows(const heft_writer *w); /* the format has HEFT_CAN_APPEND */
/* Set HEFT_E_ARGUMENT for a call that the format allows only before the beginning; what:
 * "tensors come". */
heft_status heft_writer_too_late(const heft_writer *w, const char *what, heft_error *err);
/* Prepare the writer for additions after heft_writer_begin(); does nothing from the second call
 * on. */
heft_status heft_writer_open_late(heft_writer *w, heft_error *err);
/* Record the name of the tensor added last. */
heft_status heft_writer_late_name(heft_writer *w, heft_error *err);
/* Plan the top-level value added last; on failure remove the value again. */
heft_status heft_writer_late_value(heft_writer *w, uint32_t value, heft_error *err);
/* Append parts from now on, each at the current end of the file. */
heft_status heft_writer_append(heft_writer *w, heft_error *err);

/* ---- into the file, payload.c ---- */

/* Sort the parts by offset, once the plan has run. */
heft_status heft_writer_build_order(heft_writer *w, heft_error *err);
/* Write the next bytes of the part, already in the element type of the file. */
heft_status heft_writer_put(heft_writer *w, uint32_t part, const void *data, size_t len,
                            heft_error *err);
bool heft_writer_leaves_out(const heft_writer *w, uint32_t part);
/* Write everything between the planned parts, up to the end of the last part. */
heft_status heft_writer_fill_gaps(heft_writer *w, heft_error *err);
heft_status heft_writer_open_appender(heft_writer *w, heft_error *err);
/* Encode the waiting chunks in parallel and write the frames in order. */
heft_status heft_writer_flush(heft_writer *w, heft_error *err);

#endif
