/* transfer.h - one transfer of a request through libcurl. */
#ifndef HEFT_PORT_REMOTE_TRANSFER_H
#define HEFT_PORT_REMOTE_TRANSFER_H
#include "port/remote/curl_library.h"
#include "port/remote/session.h"

/* Prepare r->easy for the next transfer of the request; false: out of memory. */
bool heft_transfer_begin(heft_request *r);
/* Judge a finished transfer; return true if the request should be repeated. */
bool heft_transfer_judge(heft_request *r, CURLcode result);
/* Return true if a running transfer must be ended, because too few bytes were moved for some time.
 * now: the time in milliseconds. */
bool heft_transfer_is_slow(heft_request *r, int64_t now);
/* Free r->easy after the session has released the handle. */
void heft_transfer_end(heft_request *r);

/* ---- failures, failure.c ---- */

/* Return the HTTP status of the answer, or 0. */
long heft_request_code(const heft_request *r);
/* Let the request fail with this message. */
heft_status heft_request_reject(heft_request *r, heft_status st, const char *text);
/* Judge a transfer that failed, or whose status says so; return true if the request should be
 * repeated, after r->retry_after seconds if that is not 0.  is_answer: a truncated answer. */
bool heft_failure_judge(heft_request *r, CURLcode result, bool is_answer);

#endif
