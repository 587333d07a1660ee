/* verify_hub.h - `heft verify --hub`: compare downloads with the digests that the hub states. */
#ifndef HEFT_CLI_VERIFY_HUB_H
#define HEFT_CLI_VERIFY_HUB_H
#include "opt.h"

/* Check every argument, a file or a folder; return the exit code. */
int verify_hub(const opt_args *args, bool as_json);

#endif
