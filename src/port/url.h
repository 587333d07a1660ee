/* url.h - the text of URLs, and the table of functions for URLs. */
#ifndef HEFT_PORT_URL_H
#define HEFT_PORT_URL_H
#include <heft/remote.h>

#include "port/port.h"

/* Functions of a build with libcurl. */
typedef struct heft_remote {
    heft_status (*open_source)(heft_source **out, const char *url, const heft_url_options *opt,
                               heft_error *err);
    heft_status (*open_file)(heft_file **out, const char *url, const heft_open_options *opt,
                             const heft_url_options *url_opt, heft_error *err);
    heft_status (*open_sink)(heft_sink **out, const char *url, uint32_t flags,
                             const heft_url_options *opt, heft_error *err);
    heft_status (*remove_kept)(const char *resume, heft_error *err);
} heft_remote;
extern const heft_remote heft_curl_remote; /* remote/open_url.c */
/* Return the table of this build, or NULL. */
const heft_remote *heft_host_remote(void);

/* Return true after heft_url_interrupt(true). */
bool heft_url_is_interrupted(void);

/* Open a sink for a URL; flags: see heft_sink_open_file(). */
heft_status heft_sink_open_url(heft_sink **out, const char *url, uint32_t flags,
                               const heft_url_options *url_opt, heft_error *err);

/* Return the length of the URL without query and fragment; keys of S3 and names of the hub have
 * neither, and '?' and '#' are parts of them. */
size_t heft_url_before_query(const char *url);

/* Append the text to the string in a buffer.  All bytes are percent-encoded except unreserved bytes
 * and the bytes of `kept`.  Return false if the buffer is too small. */
bool heft_url_append(char *buf, size_t size, heft_str text, const char *kept);

#endif
