/* s3_shares.h - the shares of a conversion to an object of S3. */
#ifndef HEFT_PORT_REMOTE_S3_SHARES_H
#define HEFT_PORT_REMOTE_S3_SHARES_H
#include "port/remote/s3.h"
#include "port/share_store.h"

typedef uint8_t heft_s3_piece_hash[HEFT_HASH_BYTES];

typedef struct heft_s3_shares {
    heft_share_store base;
    heft_s3_upload upload;       /* session, address of the output, id of the upload */
    heft_address bucket, folder; /* "KEY.shares/" */
    char *prefix;                /* "KEY.shares/", without percent-encoding */
    bool exists;                 /* the output exists, and will be replaced */
    heft_answer old;             /* ETag of the existing output */
    /* known with the plan */
    size_t part_bytes;
    uint32_t part_count;
    heft_s3_etag_text *etags;   /* by part: ETags from records; empty: no record has one */
    heft_s3_piece_hash *hashes; /* BLAKE3 of pieces, see heft_s3_piece() */
} heft_s3_shares;

/* ---- parts and pieces, s3_share_record.c ---- */

/* A part that no share writes as a whole consists of pieces, stored as separate objects until
 * the output is completed: at the borders of shares, beside the header and the trailer, and where
 * record headers are written last. */

/* Set the members that are known with the plan. */
heft_status heft_s3_shares_cut(heft_s3_shares *s, heft_error *err);
/* Return the range of a part in the output. */
heft_range heft_s3_part_range(const heft_s3_shares *s, uint32_t part);
/* Return the bytes that a share writes of a part. */
heft_s3_cut heft_s3_share_cut(const heft_s3_shares *s, uint32_t share, uint32_t part);
/* Get the first and the last part with bytes of a share; false: the share has no bytes. */
bool heft_s3_share_parts(const heft_s3_shares *s, uint32_t share, uint32_t *first, uint32_t *last);
/* Return the hash of a piece: from the record of the share, or set by the sink of the share. */
uint8_t *heft_s3_piece(const heft_s3_shares *s, uint32_t share, uint32_t part);
/* Write the name of the object with a piece. */
void heft_s3_piece_name(heft_s3_name name, uint32_t share, uint32_t part);
/* Set the address of an object beside the output. */
heft_status heft_s3_shares_address(heft_address *out, const heft_s3_shares *s, const char *name,
                                   heft_error *err);
/* Call heft_s3_read() and heft_s3_put() for an object beside the output. */
heft_status heft_s3_shares_read(char **out, size_t *len, const heft_s3_shares *s, const char *name,
                                uint64_t most, heft_error *err);
heft_status heft_s3_shares_put(const heft_s3_shares *s, const char *name, heft_str body,
                               const char *header, long *code, heft_error *err);
/* Return the record of a share as it is stored, with the ETags of the parts and the hashes of the
 * pieces, to be freed; NULL without memory. */
char *heft_s3_share_record(size_t *len, const heft_s3_shares *s, uint32_t share, heft_str record);
/* Take ETags and hashes out of a stored record; the text becomes that of heft_share_write().
 *   HEFT_E_ARGUMENT  the text is damaged, or belongs to a different upload */
heft_status heft_s3_share_record_read(heft_s3_shares *s, uint32_t share, char *text, size_t *len,
                                      heft_error *err);

/* ---- data, s3_share_data.c ---- */

/* Open a sink for a share; number 0: for everything else, and finishing completes the upload. */
heft_status heft_s3_share_data_open(heft_sink **out, heft_share_store *s, uint32_t number,
                                    heft_error *err);
/* Compare the parts and pieces that the server has with the record of a share that was read. */
heft_status heft_s3_share_data_check(heft_s3_shares *s, uint32_t share, heft_error *err);
/* Turn the error of a missing upload to HEFT_E_NOTFOUND with the reasons. */
heft_status heft_s3_gone(heft_status st, heft_error *err);

extern const char heft_s3_done[]; /* name of the object that precedes the completion */

/* ---- the store, s3_share_store.c ---- */

heft_status heft_s3_shares_new(heft_share_store **out, const char *url, uint32_t flags,
                               const heft_url_options *opt, heft_error *err);

#endif
