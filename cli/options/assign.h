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

#endif
