/* no_hub_cache.c - names of the Hugging Face cache in a build without the module 'remote'. */
#include <string.h>

#include <heft/heft_ext.h>

#include "local/hub_cache.h"

const char heft_no_remote[] = "has no module 'remote'; rebuild Heft with it among -Dmodules";

bool heft_is_hub_name(const char *path)
{
    return !strncmp(path, "hub:", 4);
}

static heft_status fail(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_UNSUPPORTED, "this build of Heft %s", heft_no_remote);
}

heft_status heft_hub_path(char *out, size_t capacity, const char *name, heft_error *err)
{
    (void)out, (void)capacity, (void)name;
    return fail(err);
}

heft_status heft_hub_list(void (*fn)(void *ctx, const char *name), void *ctx, heft_error *err)
{
    (void)fn, (void)ctx;
    return fail(err);
}
