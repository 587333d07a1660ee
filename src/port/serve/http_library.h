/* http_library.h - the functions of libmicrohttpd, which is loaded when a server is opened. */
#ifndef HEFT_HTTP_LIBRARY_H
#define HEFT_HTTP_LIBRARY_H
#include <microhttpd.h>

#include "port/port.h"

typedef struct heft_http {
    __typeof__(MHD_start_daemon) *start;
    __typeof__(MHD_stop_daemon) *stop;
    __typeof__(MHD_get_connection_values) *values;
    __typeof__(MHD_lookup_connection_value) *value;
    __typeof__(MHD_create_response_from_buffer) *of_buffer;
    __typeof__(MHD_create_response_from_callback) *of_callback;
    __typeof__(MHD_create_response_from_fd_at_offset64) *of_file;
    __typeof__(MHD_add_response_header) *add_header;
    __typeof__(MHD_queue_response) *queue;
    __typeof__(MHD_destroy_response) *destroy;
} heft_http;

/* Load the library once. HEFT_E_UNSUPPORTED, with the name of the package, if it is missing. */
heft_status heft_http_load(const heft_http **out, heft_error *err);

#endif
