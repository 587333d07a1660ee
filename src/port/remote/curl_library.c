/* curl_library.c - loads libcurl when the first URL is opened.
 *
 * Linked libraries are loaded with every program.  libcurl needs 30 other libraries, which take
 * longer to load than a command takes to list a local file. */
#include "port/remote/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "port/port.h"

enum { OLDEST = 0x075500 }; /* 7.85: CURLOPT_REDIR_PROTOCOLS_STR */

static heft_curl functions;
static const char *missing; /* the reason against the use of libcurl, or NULL */

static void load(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } members[] = {
        { "curl_global_init", offsetof(heft_curl, global_init) },
        { "curl_version_info", offsetof(heft_curl, version_info) },
        { "curl_getdate", offsetof(heft_curl, getdate) },
        { "curl_easy_init", offsetof(heft_curl, easy_init) },
        { "curl_easy_cleanup", offsetof(heft_curl, easy_cleanup) },
        { "curl_easy_setopt", offsetof(heft_curl, easy_setopt) },
        { "curl_easy_getinfo", offsetof(heft_curl, easy_getinfo) },
        { "curl_easy_strerror", offsetof(heft_curl, easy_strerror) },
        { "curl_multi_init", offsetof(heft_curl, multi_init) },
        { "curl_multi_cleanup", offsetof(heft_curl, multi_cleanup) },
        { "curl_multi_setopt", offsetof(heft_curl, multi_setopt) },
        { "curl_multi_add_handle", offsetof(heft_curl, multi_add_handle) },
        { "curl_multi_remove_handle", offsetof(heft_curl, multi_remove_handle) },
        { "curl_multi_perform", offsetof(heft_curl, multi_perform) },
        { "curl_multi_poll", offsetof(heft_curl, multi_poll) },
        { "curl_multi_wakeup", offsetof(heft_curl, multi_wakeup) },
        { "curl_multi_info_read", offsetof(heft_curl, multi_info_read) },
        { "curl_slist_append", offsetof(heft_curl, slist_append) },
        { "curl_slist_free_all", offsetof(heft_curl, slist_free_all) },
    };
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    missing = "URLs need libcurl, which is not installed: install the package libcurl4";
    if (!library)
        return;
    missing = "URLs need libcurl 7.85 or later, and an older one is installed";
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        void *function = dlsym(library, members[i].name);
        if (!function)
            return;
        memcpy((char *)&functions + members[i].offset, &function, sizeof function);
    }
    if (functions.version_info(CURLVERSION_FIRST)->version_num < OLDEST)
        return;
    missing = functions.global_init(CURL_GLOBAL_DEFAULT) ? "libcurl cannot be initialised" : NULL;
}

heft_status heft_curl_load(const heft_curl **out, heft_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *out = missing ? NULL : &functions;
    return missing ? heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s", missing) : HEFT_OK;
}
