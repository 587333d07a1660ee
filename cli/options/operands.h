/* operands.h - the files and models that a command line names, in arguments and options. */
#ifndef HEFT_CLI_OPERANDS_H
#define HEFT_CLI_OPERANDS_H
#include "options/command.h"

typedef struct operand {
    const char *path;   /* a visitor may replace it */
    opt_kind kind;      /* OPT_MODEL and OPT_OUTPUT for arguments */
    output_kind output; /* the kind of an OPT_OUTPUT */
    bool is_argument;
    bool is_changed; /* the input is also the output */
} operand;

/* Call visit for each operand that is given, until it returns another code than CODE_DONE, which is
 * returned. */
int operands_visit(const session *s, int (*visit)(void *ctx, operand *o), void *ctx);
/* Make the operands paths or addresses: separators are slashes, "-" is a file with the content of
 * standard input, "hub:NAME" a folder of the cache. With --offline, an address is refused. Return
 * an exit code. */
int operands_resolve(session *s);
/* Return true if an operand is on a server. */
bool operands_use_server(const session *s);

#endif
