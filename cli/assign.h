/* assign.h - parse the arguments of --set (KEY=VALUE). */
#ifndef HEFT_CLI_ASSIGN_H
#define HEFT_CLI_ASSIGN_H
#include "cmd.h"

/* Parse KEY=VALUE or KEY:TYPE=VALUE into *v. The first '=' ends the key; the last ':' before '='
 * begins the type, if a type name follows, and belongs to the key otherwise. The key and text
 * values point into arg. Return an exit code; cmd is the command named in the error line. */
int assign_value(heft_value *v, const char *cmd, const char *arg);

#endif
