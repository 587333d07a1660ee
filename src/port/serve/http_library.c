/* http_library.c - loads libmicrohttpd. */
#include "port/serve/http_library.h"

#include "port/system/loaded_library.h"

static heft_http http;
static const heft_library_function names[] = {
    { "MHD_start_daemon", offsetof(heft_http, start) },
    { "MHD_stop_daemon", offsetof(heft_http, stop) },
    { "MHD_get_connection_values", offsetof(heft_http, values) },
    { "MHD_lookup_connection_value", offsetof(heft_http, value) },
    { "MHD_create_response_from_buffer", offsetof(heft_http, of_buffer) },
    { "MHD_create_response_from_callback", offsetof(heft_http, of_callback) },
    { "MHD_create_response_from_fd_at_offset64", offsetof(heft_http, of_file) },
    { "MHD_add_response_header", offsetof(heft_http, add_header) },
    { "MHD_queue_response", offsetof(heft_http, queue) },
    { "MHD_destroy_response", offsetof(heft_http, destroy) },
};
static heft_loaded_library library = HEFT_LOADED_LIBRARY("libmicrohttpd.so.12", http, names);

heft_status heft_http_load(const heft_http **out, heft_error *err)
{
    *out = &http;
    return heft_library_load(&library) == HEFT_LIBRARY_LOADED
               ? HEFT_OK
               : heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                  "pages are served by libmicrohttpd, which cannot be loaded: "
                                  "install the package libmicrohttpd12");
}
