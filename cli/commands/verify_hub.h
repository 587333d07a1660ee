/* verify_hub.h - `heft verify --hub`: compare downloads with the digests that the hub states. */
#ifndef HEFT_CLI_VERIFY_HUB_H
#define HEFT_CLI_VERIFY_HUB_H
#include "options/opt.h"

/* Check every argument, a file or a folder; return the exit code. */
int verify_hub(const session *s, bool as_json);

#endif
