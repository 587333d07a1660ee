/* doctor.h - find out why a file does not open, and salvage the intact tensors.  The general
 * rules of heft.h apply.
 *
 * Stability: provisional. */
#ifndef HEFT_DOCTOR_H
#define HEFT_DOCTOR_H
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- diagnoses ---------------------------------------------------------------------------- */

typedef struct heft_doctor heft_doctor; /* an examined file */

typedef struct heft_diagnosis {
    heft_severity severity; /* HEFT_FAULT: the file is damaged, or not a file of weights */
    const char *kind; /* stable name, "truncated", or the rule of a finding of heft_file_verify() */
    heft_range where; /* offset HEFT_NOWHERE: no particular bytes */
    uint32_t tensor;  /* id in heft_doctor_file(), or HEFT_NONE */
    const char *text,
        *advice;          /* a line each; advice may be NULL.  Valid until heft_doctor_close() */
    uint64_t reserved[4]; /* 0: room for a second range and text */
} heft_diagnosis;

typedef struct heft_doctor_options {
    size_t size;               /* = sizeof(heft_doctor_options) */
    const char *path;          /* compare the suffix with the content; NULL: compare nothing */
    const heft_host *host;     /* NULL: heft_host_default(); must outlive the heft_doctor */
    heft_progress_fn progress; /* may be NULL */
    void *ctx;                 /* passed to progress */
} heft_doctor_options;
#define HEFT_DOCTOR_OPTIONS_INIT                            \
    {                                                       \
        sizeof(heft_doctor_options), NULL, NULL, NULL, NULL \
    }

/* Examine a file.  Takes the source over, even on failure.  Damage is a diagnosis and not an error;
 * reading takes one pass over the file to compare checksums, one over the values, and one more if
 * something is found.
 *   HEFT_E_IO           the file cannot be read
 *   HEFT_E_UNSUPPORTED  the file is well formed, but this build does not handle the version */
HEFT_API HEFT_MUST_CHECK heft_status heft_doctor_open(heft_doctor **out, heft_source *take,
                                                      const heft_doctor_options *opt,
                                                      heft_error *err);
/* Close an examined file.  NULL is ignored. */
HEFT_API void heft_doctor_close(heft_doctor *d);

/* Return the number of diagnoses. */
HEFT_API uint32_t heft_diagnosis_count(const heft_doctor *d);
/* Return diagnosis i. */
HEFT_API heft_diagnosis heft_diagnosis_at(const heft_doctor *d, uint32_t i);

typedef struct heft_doctor_summary {
    const heft_format *format; /* NULL: no format recognises the file */
    uint64_t file_bytes;       /* size of the file */
    uint64_t expected_bytes;   /* size that the content asks for, at least; 0: unknown */
    uint32_t tensors;          /* in the index; 0 if the index cannot be read */
    uint32_t lost;             /* tensors with missing bytes or with a wrong checksum */
    uint32_t faults, warnings; /* among all diagnoses, also beyond the listed */
    bool can_salvage;          /* heft_doctor_salvage() has something to write */
    uint8_t reserved8[3];      /* 0: up to the next member */
    uint32_t left_out; /* contents of the file that are not among the tensors, and not salvaged */
    uint8_t reserved[32]; /* 0: room for four sizes */
} heft_doctor_summary;
/* Get the figures of a diagnosis. */
HEFT_API void heft_doctor_summarize(heft_doctor_summary *out, const heft_doctor *d);

/* ---- intact tensors ------------------------------------------------------------------------ */

/* Return the file with the tensors that the index lists, or NULL if the index cannot be read.
 * Bytes after the end of a truncated file read as zeros: ask heft_doctor_is_lost() first.
 * Borrowed. */
HEFT_API const heft_file *heft_doctor_file(const heft_doctor *d);
/* Return true if bytes of the tensor are missing, or if a checksum of the tensor does not match. */
HEFT_API bool heft_doctor_is_lost(const heft_doctor *d, uint32_t tensor);

/* Write the tensors that are not lost to a new file, as heft_file_convert() does.  write and
 * progress may be NULL.  Checksums of the input were compared by heft_doctor_open().
 *   HEFT_E_FORMAT  no tensor can be salvaged
 *   HEFT_E_LOSSY   the format cannot represent part of the model: see write->on_loss */
HEFT_API HEFT_MUST_CHECK heft_status heft_doctor_salvage(const heft_doctor *d,
                                                         const heft_format *to, heft_sink *take,
                                                         const heft_write_options *write,
                                                         heft_progress_fn progress,
                                                         void *progress_ctx, heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
