/* notices.h - what was noticed while a file was opened, said once on stderr. */
#ifndef HEFT_CLI_NOTICES_H
#define HEFT_CLI_NOTICES_H
#include "escape.h"

/* "RULE: text (tensor "w", at byte 10 of FILE)", escaped. */
void out_finding(outbuf *o, const heft_file *f, const heft_finding *x);
/* The warnings about an open file, the first few of very many; with `notes`, its notes as well. */
void notices_say(const heft_file *f, const char *path, bool notes);

#endif
