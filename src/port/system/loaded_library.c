/* loaded_library.c - loads a shared library once, and finds its functions. */
#include "port/system/loaded_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool find_functions(const heft_loaded_library *l, void *handle)
{
    for (size_t i = 0; i < l->count; i++) {
        void *function = dlsym(handle, l->names[i].name);
        if (!function)
            return false;
        memcpy((char *)l->functions + l->names[i].offset, &function, sizeof function);
    }
    return true;
}

static heft_library_state load(heft_loaded_library *l)
{
    errno = 0;
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return errno == ENOMEM ? HEFT_LIBRARY_NO_MEMORY : HEFT_LIBRARY_MISSING;
    if (!find_functions(l, handle))
        return HEFT_LIBRARY_OTHER;
    l->handle = handle;
    return HEFT_LIBRARY_LOADED;
}

heft_library_state heft_library_load(heft_loaded_library *l)
{
    pthread_mutex_lock(&l->lock);
    heft_library_state state = l->handle ? HEFT_LIBRARY_LOADED : load(l);
    pthread_mutex_unlock(&l->lock);
    return state;
}
