/* transfer.h - one transfer of a request through libcurl. */
#ifndef HEFT_PORT_REMOTE_TRANSFER_H
#define HEFT_PORT_REMOTE_TRANSFER_H
#include "port/remote/curl_library.h"
#include "port/remote/session.h"

/* Prepare r->easy for the next transfer of the request; false: out of memory. */
bool heft_transfer_begin(heft_request *r);
/* Judge a finished transfer; return true if the request should be repeated. */
bool heft_transfer_judge(heft_request *r, CURLcode result);
/* Free r->easy after the session has released the handle. */
void heft_transfer_end(heft_request *r);

#endif
