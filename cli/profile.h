/* profile.h - finding a profile: what a file has to hold to be a certain model. */
#ifndef HEFT_CLI_PROFILE_H
#define HEFT_CLI_PROFILE_H
#include "cmd.h"

/* A file, when the name has a / or ends with .json; else NAME.json of $HEFT_PROFILES, of
 * ../share/heft/profiles beside this command, or of where it was installed.  Not CODE_DONE: said why
 * not. */
int profile_read(heft_profile **out, const char *name);

#endif
