/* writer.h - a model declared call by call (declare.c, add.c), its bytes handed over part by part (writer.c). */
#ifndef HEFT_WRITER_H
#define HEFT_WRITER_H
#include "core/write/append.h"

struct heft_writer {
    heft_planner p;
    heft_sink *sink;
    bool begun;
    heft_error failed; /* what left the model or the file incomplete; status 0: nothing did */
    uint32_t *places;  /* parts by place, for filling what lies between them */
    uint32_t place_count;
    uint32_t *place_of; /* part -> its position in places, or HEFT_NONE: left out */
    uint32_t part;      /* whose bytes come next … */
    uint64_t got;       /* … and how many came */
    uint32_t place;     /* a stream: up to where it is filled: the place that comes next … */
    uint64_t at;        /* … and the byte */
    heft_tap tap;       /* digest of the part whose bytes come */
    heft_appender *to;  /* of compressed parts, which take their places as they come, or NULL */
    uint32_t filled;    /* pieces that wait to be encoded; the next one is being filled */
    bool spoiled[HEFT_APPEND_MOST];
};

/* Sets a message of HEFT_E_ARGUMENT and returns that. */
heft_status heft_writer_wrong(heft_error *err, const char *what);
/* Returns st.  Unless it is HEFT_OK, the writer can only be discarded from here on. */
heft_status heft_writer_break(heft_writer *w, heft_status st, heft_error *err);
/* Copies a text, or what a value lends, into the index of the writer. */
heft_status heft_writer_copy(heft_writer *w, heft_str *s, heft_error *err);
heft_status heft_writer_copy_value(heft_writer *w, heft_value *v, heft_error *err);
/* Whether a value has a kind that there is, texts of UTF-8, and as many bytes as its kind takes. */
bool heft_writer_is_value(const heft_value *v);

#endif
