/* s3.h - calls of S3, and uploads of an object in parts. */
#ifndef HEFT_PORT_REMOTE_S3_H
#define HEFT_PORT_REMOTE_S3_H
#include "port/remote/session.h"

enum {
    HEFT_S3_PART = 8 << 20, /* bytes of a part; a large object has larger parts */
    HEFT_S3_MAX_PARTS = 10000,
    HEFT_S3_ID = 3 * 1024,
    HEFT_S3_ETAG_TEXT = 256,
};
typedef char heft_s3_etag_text[HEFT_S3_ETAG_TEXT]; /* with quotation marks; empty: not known */

/* ---- single calls, s3_upload.c ---- */

/* Set the digest of the body.  Without SHA-256 in this build the body is not signed. */
void heft_s3_set_digest(heft_exchange *x);
/* Copy the text of the first element `name`; false: there is none, or the text does not fit. */
bool heft_s3_find_element(char *out, size_t size, const char *xml, const char *name);
/* Get ETag and size (total) of an object.
 *   HEFT_E_NOTFOUND  the object does not exist */
heft_status heft_s3_look(heft_answer *out, heft_session *s, const heft_address *target,
                         heft_error *err);

/* ---- uploads, s3_upload.c ---- */

typedef struct heft_s3_upload {
    heft_session *session;
    heft_address target;
    char id[HEFT_S3_ID]; /* percent-encoded; empty: no upload */
} heft_s3_upload;

/* Return the size of the parts of an object: S3 allows MAX_PARTS parts.
 *   HEFT_E_LIMIT  S3 stores no object of this size */
heft_status heft_s3_part_bytes(size_t *out, uint64_t size, heft_error *err);
heft_status heft_s3_upload_begin(heft_s3_upload *u, heft_error *err);
/* Remove the upload with all parts; without an id do nothing. */
heft_status heft_s3_upload_abort(heft_s3_upload *u, heft_error *err);
/* Make the object appear from parts 1 to count, `size` bytes in all.
 *   HEFT_E_ARGUMENT  the object exists, and may_replace is false */
heft_status heft_s3_upload_complete(heft_s3_upload *u, heft_s3_etag_text *etags, uint32_t count,
                                    uint64_t size, bool may_replace, heft_error *err);

/* ---- parts in memory, s3_parts.c ---- */

typedef struct heft_s3_parts {
    heft_s3_upload *upload;
    size_t part_bytes;
    uint64_t end;    /* offset after the last byte written */
    uint64_t memory; /* bytes of all parts in memory */
    struct heft_s3_part *parts;
    heft_s3_etag_text *etags; /* by part */
    uint32_t etag_count;
    heft_status status; /* the first failure */
    heft_error error;
} heft_s3_parts;

/* Begin with part_bytes of HEFT_S3_PART; the upload is borrowed. */
void heft_s3_parts_init(heft_s3_parts *s, heft_s3_upload *upload);
/* Take bytes from any thread, and send each part that is full. */
heft_status heft_s3_parts_write(heft_s3_parts *s, uint64_t offset, const void *data, size_t len,
                                heft_error *err);
/* Send the last part and wait for all answers.
 *   HEFT_E_IO  bytes before the last byte were not written */
heft_status heft_s3_parts_end(heft_s3_parts *s, heft_error *err);
/* Cancel all requests and free the memory; harmless after heft_s3_parts_end(). */
void heft_s3_parts_free(heft_s3_parts *s);

#endif
