/* run_command.h - begins, completes and ends the session of a command. */
#ifndef HEFT_CLI_RUN_COMMAND_H
#define HEFT_CLI_RUN_COMMAND_H
#include "process/command_session.h"

/* Begin a session of a command, without options. */
void session_begin(session *s, const command *c);
/* Set what follows from the options. Return an exit code. */
int session_complete(session *s);
/* Free what the session owns. */
void session_end(session *s);

#endif
