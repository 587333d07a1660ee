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

/* ---- single calls, s3_calls.c ---- */

/* Send a request and wait for the answer.  err->os is ENOENT if the object does not exist. */
heft_status heft_s3_ask(heft_session *s, const heft_address *target, heft_exchange *x,
                        heft_error *err);
/* Set the digest of the body.  Without SHA-256 in this build the body is not signed. */
void heft_s3_set_digest(heft_exchange *x);
/* Copy the text of the first element `name`; false: there is none, or the text does not fit. */
bool heft_s3_find_element(char *out, size_t size, const char *xml, const char *name);
/* Cut the next element `name` out of an answer: terminate the content, and move *xml behind the
 * element.  NULL: there is no further element. */
char *heft_s3_next_element(char **xml, const char *name);
/* Get ETag and size (total) of an object.
 *   HEFT_E_NOTFOUND  the object does not exist */
heft_status heft_s3_look(heft_answer *out, heft_session *s, const heft_address *target,
                         heft_error *err);

/* ---- small objects, s3_objects.c ---- */

typedef char heft_s3_name[64];
typedef void heft_s3_name_fn(void *ctx, const char *name);
/* Read an object of at most `most` bytes; free() the text, terminated by '\0'.
 *   HEFT_E_NOTFOUND  the object does not exist */
heft_status heft_s3_read(char **out, size_t *len, heft_session *s, const heft_address *target,
                         uint64_t most, heft_error *err);
/* Store an object; header: a further header, or NULL; *code: the HTTP status. */
heft_status heft_s3_put(heft_session *s, const heft_address *target, heft_str body,
                        const char *header, long *code, heft_error *err);
/* Call fn with the name, after the last '/', of each object below the prefix. */
heft_status heft_s3_list(heft_session *s, const heft_address *bucket, const char *prefix,
                         heft_s3_name_fn *fn, void *ctx, heft_error *err);
/* Read a page of the list, and call fn with each name; set `token` to the token of the next page,
 * or to "" after the last. */
heft_status heft_s3_read_names(char *xml, char *token, size_t size, heft_s3_name_fn *fn, void *ctx,
                               heft_error *err);
/* Remove the named objects; folder: an address that ends with '/'. */
heft_status heft_s3_remove(heft_session *s, const heft_address *folder, heft_s3_name *names,
                           size_t count, heft_error *err);

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
/* A part that the server has stored. */
typedef struct heft_s3_stored_part {
    uint64_t bytes; /* HEFT_UNKNOWN_LENGTH: the server does not have the part */
    heft_s3_etag_text etag;
} heft_s3_stored_part;
/* Get the parts that the server has; `parts` has room for parts 1 to count.  Here and in the other
 * calls, err->os is ENOENT if the upload does not exist, because it was completed or aborted. */
heft_status heft_s3_upload_list(heft_s3_stored_part *parts, uint32_t count, heft_s3_upload *u,
                                heft_error *err);
/* Read a page of the list of parts.  *marker: number of the last part of the page before, or 0;
 * becomes the number of the last part of this page, or 0 after the last page. */
heft_status heft_s3_read_parts(heft_s3_stored_part *parts, uint32_t count, char *xml,
                               uint32_t *marker, heft_error *err);
/* Make the object appear from parts 1 to count, `size` bytes in all.
 *   HEFT_E_ARGUMENT  the object exists, and may_replace is false */
heft_status heft_s3_upload_complete(heft_s3_upload *u, heft_s3_etag_text *etags, uint32_t count,
                                    uint64_t size, bool may_replace, heft_error *err);

/* ---- parts in memory, s3_parts.c ---- */

/* The bytes of a part that this process writes. */
typedef struct heft_s3_cut {
    size_t due;           /* number of bytes; when all are written, the part is sent */
    size_t first, length; /* range of the part to send */
    bool is_object;       /* the range becomes a separate object, not a part of the upload */
} heft_s3_cut;

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
    /* Optional.  Return the bytes to send of part `number`; NULL: all bytes of each part. */
    heft_s3_cut (*cut)(void *ctx, uint32_t number);
    /* Set the address of the object for the bytes of a part; `bytes` are sent there. */
    heft_status (*name_object)(heft_address *out, void *ctx, uint32_t number, heft_str bytes,
                               heft_error *err);
    void *ctx;
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
