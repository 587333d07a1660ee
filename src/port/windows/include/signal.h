/* signal.h - names of POSIX for the functions of posix.h. */
#ifndef HEFT_WINDOWS_SIGNAL_H
#define HEFT_WINDOWS_SIGNAL_H
#include_next <signal.h>

/* Signals that Windows does not have: signal() refuses the numbers. */
enum { SIGHUP = 1, SIGQUIT = 3, SIGBUS = 7, SIGPIPE = 13, SIGALRM = 14, SIGXFSZ = 25 };

#endif
