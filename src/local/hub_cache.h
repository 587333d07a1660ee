/* hub_cache.h - names of repositories in the local Hugging Face cache, as paths.
 *
 * This folder opens and changes models on this machine, by path: single files, folders, pipelines,
 * the cache of the Hub, edits, appended files, shares. It calls src/port and decides with
 * src/folder. */
#ifndef HEFT_HUB_CACHE_H
#define HEFT_HUB_CACHE_H
#include "port/port.h"

/* Return true if the path begins with "hub:": heft_hub_path() returns the path of the file. */
bool heft_is_hub_name(const char *path);
/* Names the part that this build lacks, if it opens no addresses: the end of "this build ...". */
extern const char heft_no_remote[];

#endif
