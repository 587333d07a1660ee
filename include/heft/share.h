/* share.h - a conversion as several shares, written by processes on several machines that need no
 * messages, to a file that all see.  The general rules of heft.h apply.
 *
 *   heft_share_convert()   writes a share beside the output; the last share completes the output
 *   heft_share_find()      takes number and count from Open MPI, MPICH or Slurm
 *   heft_share_open()      plans, for programs that store bytes and records themselves
 *
 * Every share plans the whole conversion and writes the payload in a range of the output.  A
 * small record for each share has the checksums of the bytes and the numbers of values that casts
 * lose.  Header, record headers and trailer are written when the records are joined.  The output
 * has the same bytes as after heft_file_convert().
 *
 * Stability: provisional. */
#ifndef HEFT_SHARE_H
#define HEFT_SHARE_H
#include <heft/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- beside the output -------------------------------------------------------------------- */

enum { HEFT_SHARE_MAX_COUNT = 65535 };

typedef struct heft_share {
    uint32_t number; /* 1 to count */
    uint32_t count;  /* 1 to HEFT_SHARE_MAX_COUNT */
} heft_share;

/* Parse "3/8", or with "auto" take the share from the environment: OMPI_COMM_WORLD_RANK and
 * OMPI_COMM_WORLD_SIZE (Open MPI), PMI_RANK and PMI_SIZE (MPICH), SLURM_PROCID and SLURM_NTASKS.
 *   HEFT_E_ARGUMENT  the text has another form, or is "auto" and no engine has set variables */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_find(heft_share *out, const char *text,
                                                     heft_error *err);

typedef struct heft_share_result {
    uint64_t bytes;       /* size of the output */
    uint64_t share_bytes; /* bytes of payload in the range of this share */
    uint32_t missing;     /* number of shares without a record; 0: the output is complete */
    bool was_written;     /* an earlier run had written the share */
    uint8_t reserved[19]; /* 0: room for two sizes */
} heft_share_result;

/* Write a share of a conversion to `path`.  The data and a record for each share are in the folder
 * "PATH.shares", which is created if necessary.  The call that finds the records of all shares
 * writes the rest, syncs and names the file, and removes the folder; several such calls at the same
 * time are harmless.  A share with a record is not written again.  If the process ends before, call
 * the function again for the same share; to give up, call heft_share_abort().
 * flags: HEFT_SINK_... .  out and opt may be NULL; opt->planned_bytes is not used.
 *   HEFT_E_ARGUMENT     the folder has shares of a different plan: input, options, format or number
 *                       of shares differ; or the file exists and HEFT_SINK_REPLACE is not set
 *   HEFT_E_UNSUPPORTED  parts are compressed, so that sizes are not known in advance; or the path
 *                       is an address
 * and the errors of heft_file_convert(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_convert(heft_share_result *out, const heft_file *in,
                                                        const heft_format *to, const char *path,
                                                        heft_share share, uint32_t flags,
                                                        const heft_convert_options *opt,
                                                        heft_error *err);
/* Complete the output from the records in "PATH.shares", as the last heft_share_convert() does.
 *   HEFT_E_NOTFOUND  shares are missing; *out has their number
 *   HEFT_E_ARGUMENT  a record is damaged */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_finish(heft_share_result *out, const heft_file *in,
                                                       const heft_format *to, const char *path,
                                                       uint32_t flags,
                                                       const heft_convert_options *opt,
                                                       heft_error *err);

/* Give up the shares of an output: remove the folder "PATH.shares".  The output, if there is one,
 * stays as it is.  Processes that still write shares fail.
 *   HEFT_E_NOTFOUND  there are no shares */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_abort(const char *path, heft_error *err);

/* ---- with sinks of your own --------------------------------------------------------------- */

/* The plan of a conversion in shares.  One thread at a time, but a sink may call heft_share_size(),
 * heft_share_range() and heft_share_bytes_in() while the plan writes to the sink. */
typedef struct heft_share_plan heft_share_plan;
/* Plan a conversion in `count` shares.  The input and everything in opt are borrowed until
 * heft_share_close(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_open(heft_share_plan **out, const heft_file *in,
                                                     const heft_format *to, uint32_t count,
                                                     const heft_convert_options *opt,
                                                     heft_error *err);
/* Return the id of the plan, equal on every machine for the same input, options and count. */
HEFT_API heft_hash heft_share_id(const heft_share_plan *p);
/* Return the size of the output in bytes. */
HEFT_API uint64_t heft_share_size(const heft_share_plan *p);
/* Return the range of the output with the payload of a share. */
HEFT_API heft_range heft_share_range(const heft_share_plan *p, uint32_t number);
/* Return the number of bytes that heft_share_write() writes in a range of the output: 0 outside of
 * the range of the share, and fewer than the range has where heft_share_join() writes record
 * headers between the payload (npz).  A sink that stores blocks knows in this way when a block is
 * full. */
HEFT_API uint64_t heft_share_bytes_in(const heft_share_plan *p, uint32_t number, heft_range range);
/* Write a share.  The sink needs write_at; offsets are those of the output.  *record becomes a text
 * in JSON: keep the record only once the bytes are safe, and free it by heft_blob_free(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_write(heft_blob *record, heft_share_plan *p,
                                                      uint32_t number, heft_sink *take,
                                                      heft_error *err);
/* Check the records of all shares, in any order, verify the checksums of the input joined from
 * the records, report casts that lose values, and write the bytes around the payload to the sink.
 *   HEFT_E_ARGUMENT  a record is damaged, missing, given twice, or belongs to a different plan */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_join(heft_share_plan *p, const heft_str *records,
                                                     uint32_t count, heft_sink *take,
                                                     heft_error *err);
/* Return HEFT_OK if a text is a record of the share `number`; HEFT_E_ARGUMENT otherwise. */
HEFT_API HEFT_MUST_CHECK heft_status heft_share_check(const heft_share_plan *p, heft_str record,
                                                      uint32_t number, heft_error *err);
/* Close a plan.  NULL is ignored. */
HEFT_API void heft_share_close(heft_share_plan *p);

#ifdef __cplusplus
}
#endif
#endif
