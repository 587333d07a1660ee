/* secret.h - keys and passwords, read before the sandbox begins. */
#ifndef HEFT_CLI_SECRET_H
#define HEFT_CLI_SECRET_H
#include "options/opt.h"
#include "process/textfile.h"

typedef struct secret { /* target of an OPT_SECRET option */
    const char *path;   /* NULL: not given */
    heft_str text;
    struct secret *password; /* password of an encrypted key, or NULL */
} secret;

/* Read all files of OPT_SECRET options, and ask for the password of an encrypted key without a
 * password file. Return an exit code. */
int secrets_read(const session *s);
/* Overwrite and free the text. */
void secret_free(secret *s);

#endif
