/* assign.h - parse the arguments of --set (KEY=VALUE). */
#ifndef HEFT_CLI_ASSIGN_H
#define HEFT_CLI_ASSIGN_H
#include "process/cmd.h"

typedef struct assignment {
    heft_value value;       /* a list is a text here, as given */
    const char *text;       /* the value as given; NULL: from a file */
    bool is_typed, is_list; /* KEY:TYPE=... or KEY:[TYPE]=[...]; is_list: the latter */
    heft_kind element;      /* the kind of TYPE, and */
    heft_dtype stored;      /* its element type, or HEFT_UNTYPED */
} assignment;

/* Parse KEY=VALUE, KEY:TYPE=VALUE or KEY:[TYPE]=VALUE. The first '=' ends the key. The last ':'
 * before '=' begins the type, if the name of a type follows, and belongs to the key otherwise; a
 * word that looks like the name of a type is an error. The key and text values point into arg.
 * Return an exit code; cmd is the command named in the error line. */
int assign_parse(assignment *out, const char *cmd, const char *arg);

#endif
