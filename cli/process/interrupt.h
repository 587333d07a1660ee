/* interrupt.h - handle SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU. A signal that was ignored when
 * the command began (nohup) stays ignored. */
#ifndef HEFT_CLI_INTERRUPT_H
#define HEFT_CLI_INTERRUPT_H
#include <heft/heft.h>

/* From now on a signal prints "interrupted; nothing written" and kills the process. For commands
 * that write. */
void interrupt_announce(void);
/* From now on the first signal is only recorded, so that the work can stop and clean up. The second
 * signal kills the process. */
void interrupt_hold(void);
/* From now on signals kill the process silently, as by default. For output that cannot be rolled
 * back. */
void interrupt_allow(void);
/* Wait until the descriptor can be read; return false after a signal, recorded by
 * interrupt_hold(). */
bool interrupt_wait(int fd);
/* Return true if a signal was recorded. Thread-safe. */
bool interrupt_is_pending(void);
/* Set and return the error of work that was interrupted. */
heft_status interrupt_error(heft_error *err);
/* Kill the process with the recorded signal, if there is one. */
void interrupt_die(void);

#endif
