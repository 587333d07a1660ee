/* remote.h - files on servers, named by a URL.
 *
 *     https://HOST/PATH  http://HOST/PATH
 *     hf://[datasets/]OWNER/NAME[@REVISION][/FILE]   the Hugging Face hub, or $HF_ENDPOINT
 *     s3://BUCKET/KEY                                S3, with the variables and files of AWS
 *
 * A build without libcurl returns HEFT_E_UNSUPPORTED for every URL.  docs/remote.md describes
 * requests and trust.
 *
 * Stability: provisional. */
#ifndef HEFT_REMOTE_H
#define HEFT_REMOTE_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files on servers ---------------------------------------------------------------------- */

enum { HEFT_URL_BYTES = 8192 }; /* room for an address and its end */

typedef struct heft_url_options {
    size_t size;          /* = sizeof(heft_url_options) */
    uint64_t spool_bytes; /* largest file to download whole if the server has no ranges; 0: 1 GiB */
    uint64_t cache_bytes; /* memory for the bytes of a file; 0: 64 MiB */
    uint32_t connections; /* requests at the same time; 0: the variable HEFT_CONNECTIONS, or 8 */
    /* Seconds after which a request fails that has not connected, or that is slower than `slowest`;
     * 0: the variable HEFT_TIMEOUT, or 20. */
    uint32_t timeout;
    /* Called with a message for the user: a file is downloaded whole, or the server limits requests
     * and is waited for.  NULL: none.  Called on any thread, one call at a time for each model. */
    void (*say)(void *ctx, const char *text);
    void *ctx; /* passed to say */
    /* Keep downloaded bytes in hidden files beside this path, usually the output, and use the
     * bytes that an earlier process has kept; heft_url_remove_kept() removes the files.  NULL: keep
     * nothing. */
    const char *resume;
    bool offline;      /* refuse every URL, as with HF_HUB_OFFLINE=1 */
    uint8_t unused[3]; /* 0: up to the next member */
    uint32_t slowest;  /* bytes per second; 0: the variable HEFT_SLOWEST, or 1024 */
    /* heft_file_open_url() writes to these HEFT_URL_BYTES bytes the address of the file that was
     * opened, terminated: of a repository of the hub the chosen file, at the commit that has been
     * listed.  Empty after an error, and for a pipeline of several models.  NULL: not wanted. */
    char *opened;
} heft_url_options;
#define HEFT_URL_OPTIONS_INIT                                                         \
    {                                                                                 \
        sizeof(heft_url_options), 0, 0, 0, 0, NULL, NULL, NULL, false, { 0 }, 0, NULL \
    }

/* Return true if the path begins with a scheme of this header: heft_file_open() reads the file
 * from a server. */
HEFT_API bool heft_is_url(const char *path);
/* Write the URL without user, password and query to out, terminated and cut to `size` bytes, for
 * messages.  A path that is not a URL is copied. */
HEFT_API void heft_url_redact(char *out, size_t size, const char *url);
/* Open the file of a URL as a source.  opt may be NULL.  Several threads may read the source.
 *   HEFT_E_UNSUPPORTED  this build has no libcurl
 *   HEFT_E_ARGUMENT     not a URL, or the URL names no file
 *   HEFT_E_LIMIT        the server has no ranges, and the file exceeds spool_bytes
 *   HEFT_E_CANCELLED    heft_url_interrupt() was called, also from reads
 *   HEFT_E_IO           everything else: no such file (err->os is ENOENT), offline, no answer, a
 *                       refusal, an invalid answer; also from reads, when the file has changed */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_url(heft_source **out, const char *url,
                                                     const heft_url_options *opt, heft_error *err);

/* Open a model by a URL, as heft_file_open() does, with options for requests.  opt and url_opt may
 * be NULL.  Errors: see heft_file_open() and heft_source_url(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_open_url(heft_file **out, const char *url,
                                                        const heft_open_options *opt,
                                                        const heft_url_options *url_opt,
                                                        heft_error *err);
/* Remove the files that heft_url_options.resume keeps beside the path.  HEFT_OK if there are none.
 *   HEFT_E_IO  a file cannot be removed */
HEFT_API HEFT_MUST_CHECK heft_status heft_url_remove_kept(const char *resume, heft_error *err);

/* End all waits for servers in this process, in all threads: within about a second they fail with
 * HEFT_E_CANCELLED, as do later requests until heft_url_interrupt(false).  The removal of the parts
 * of an unfinished upload is still requested, once, for two seconds at most; the completion of an
 * upload is awaited, but not repeated.  Safe in a signal handler. */
HEFT_API void heft_url_interrupt(bool interrupts);

#ifdef __cplusplus
}
#endif
#endif
