/* interrupt.h - signals that ask a command to stop: SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU.  Those that were
 * ignored when the command began, as nohup does it, stay ignored. */
#ifndef HEFT_CLI_INTERRUPT_H
#define HEFT_CLI_INTERRUPT_H
#include <heft/heft.h>

/* From now on such a signal says that nothing was written, and kills: for commands that write. */
void interrupt_announce(void);
/* From now on the first one is only noted, so that the work can stop where it leaves nothing behind; the second one
 * kills. */
void interrupt_hold(void);
/* From now on they kill, as they do before any of these calls: for output that cannot be taken back. */
void interrupt_allow(void);
/* Whether one was noted.  From any thread. */
bool interrupt_is_pending(void);
/* The error of work that stops because one was noted. */
heft_status interrupt_error(heft_error *err);
/* If one was noted, the process dies of it. */
void interrupt_die(void);

#endif
