/* verify_hub.h - `heft verify --hub`: compare files with the digests of a Hugging Face cache. */
#ifndef HEFT_CLI_VERIFY_HUB_H
#define HEFT_CLI_VERIFY_HUB_H
#include <stdbool.h>

#include "opt.h"

/* Check each file, and each file of a folder, without parsing it; return an exit code. */
int verify_hub(const opt_args *args, bool as_json, bool strict);

#endif
