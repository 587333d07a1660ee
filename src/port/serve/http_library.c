/* http_library.c - loads libmicrohttpd. */
#include "port/serve/http_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LIBRARY "libmicrohttpd.so.12"

static heft_http http;
static bool is_loaded;

static bool find_functions(void *library)
{
    static const struct {
        const char *name;
        void *to;
    } members[] = {
        { "MHD_start_daemon", &http.start },
        { "MHD_stop_daemon", &http.stop },
        { "MHD_get_connection_values", &http.values },
        { "MHD_lookup_connection_value", &http.value },
        { "MHD_create_response_from_buffer", &http.of_buffer },
        { "MHD_create_response_from_callback", &http.of_callback },
        { "MHD_create_response_from_fd_at_offset64", &http.of_file },
        { "MHD_add_response_header", &http.add_header },
        { "MHD_queue_response", &http.queue },
        { "MHD_destroy_response", &http.destroy },
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        void *function = dlsym(library, members[i].name);
        if (!function)
            return false;
        memcpy(members[i].to, &function, sizeof function);
    }
    return true;
}

heft_status heft_http_load(const heft_http **out, heft_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        is_loaded = library && find_functions(library);
    }
    bool is = is_loaded;
    pthread_mutex_unlock(&lock);
    *out = &http;
    return is ? HEFT_OK
              : heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                 "pages are served by libmicrohttpd, which cannot be loaded: "
                                 "install the package libmicrohttpd12");
}
