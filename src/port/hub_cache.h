/* hub_cache.h - names of repositories in the local Hugging Face cache, as paths. */
#ifndef HEFT_HUB_CACHE_H
#define HEFT_HUB_CACHE_H
#include "port/port.h"

/* Return true if the path begins with "hub:", so that heft_hub_path() says which path it means. */
bool heft_is_hub_name(const char *path);

#endif
