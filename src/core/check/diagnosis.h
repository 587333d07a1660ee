/* diagnosis.h - an examined file: diagnoses, and lost tensors. */
#ifndef HEFT_DIAGNOSIS_H
#define HEFT_DIAGNOSIS_H
#include <heft/doctor.h>
#include <heft/heft_ext.h>

#include "core/read/progress.h"

typedef struct heft_padded_source {
    heft_source base; /* first member; base.size is the size that is shown */
    heft_source *from;
} heft_padded_source;

typedef struct heft_doctor_row { /* a diagnosis */
    heft_severity severity;
    uint32_t tensor;
    const char *kind, *text, *advice; /* static, or in the arena */
    heft_range where;
} heft_doctor_row;

struct heft_doctor {
    const heft_host *host;
    heft_memory mem;
    heft_arena arena;
    heft_source *source;
    heft_padded_source view; /* borrowed by file */
    heft_file *file;         /* NULL if the index cannot be read */
    const char *path;
    const heft_format *format;
    heft_vec rows;        /* heft_doctor_row */
    heft_vec lost_ranges; /* heft_range: bytes with a wrong checksum */
    uint8_t *lost;        /* by tensor: 1 if lost; NULL if no tensor is lost */
    uint32_t lost_count;
    uint32_t faults, warnings;
    uint64_t expected_bytes;
    bool is_out_of_memory; /* a diagnosis could not be stored */
    bool forgives;         /* the file opens only if errors are forgiven: heft_ix_forgive() */
};

enum { HEFT_DOCTOR_ROWS = 1000 }; /* diagnoses that are kept; more are only counted */

/* Copy a text into the arena; return NULL if out of memory. */
const char *heft_doctor_copy(heft_doctor *d, const char *text);
/* Add a diagnosis with the static texts of `row`; the text is formatted as by
 * heft_error_set(). */
void heft_doctor_add(heft_doctor *d, heft_doctor_row row, const char *fmt, ...);
/* Mark a tensor, or all tensors with a byte in d->lost_ranges, as lost. */
heft_status heft_doctor_lose(heft_doctor *d, uint32_t tensor, heft_error *err);
/* Mark all tensors with a part for which is_lost() returns true; it is asked about each part. */
heft_status heft_doctor_lose_if(heft_doctor *d,
                                bool (*is_lost)(heft_doctor *d, const heft_ix_part_row *p,
                                                uint64_t at),
                                uint64_t at, heft_error *err);
heft_status heft_doctor_lose_ranges(heft_doctor *d, heft_error *err);

/* Diagnose a file that opens: d->file is set. */
heft_status heft_doctor_check_file(heft_doctor *d, heft_progress *progress, heft_error *err);
/* Open d->file at a size: the bytes beyond the end of the file are zeros.  With d->forgives, pass
 * over errors that leave the meaning of the index clear. */
heft_status heft_doctor_open_at(heft_doctor *d, uint64_t size, const heft_open_options *opt,
                                heft_error *err);
/* Try to open a file with such errors; d->file stays NULL if the file has others.  *why: the error
 * of opening, which becomes the first error that cannot be passed over. */
heft_status heft_doctor_open_forgiving(heft_doctor *d, heft_error *why, heft_error *err);
/* Add a diagnosis if values of tensors that are not lost are NaN or infinite. */
heft_status heft_doctor_check_values(heft_doctor *d, const heft_progress *progress,
                                     heft_error *err);
/* Add a diagnosis for each error that was passed over. */
void heft_doctor_add_forgiven(heft_doctor *d);

typedef struct heft_byte_survey {
    uint64_t crlf, lone_lf;     /* line feeds after a carriage return, and all the rest */
    uint64_t nul;               /* zero bytes */
    uint64_t replacements;      /* U+FFFD in UTF-8: EF BF BD */
    uint64_t first_crlf;        /* offsets, or HEFT_NOWHERE */
    uint64_t first_replacement; /* valid if replacements */
    bool is_utf8;               /* no byte contradicts UTF-8 */
} heft_byte_survey;

heft_status heft_byte_survey_run(heft_byte_survey *out, heft_source *s, const heft_allocator *al,
                                 heft_progress *progress, heft_error *err);
/* Return true if binary content has CR LF in place of every LF. */
bool heft_byte_survey_has_crlf(const heft_byte_survey *b);
/* Return true if a decoder has replaced binary content with U+FFFD. */
bool heft_byte_survey_has_replacements(const heft_byte_survey *b);

/* Set *from to the offset of the zeros at the end of the source, or to the size if the last byte is
 * not zero. */
heft_status heft_find_zero_tail(uint64_t *from, heft_source *s, const heft_allocator *al,
                                heft_error *err);

#endif
