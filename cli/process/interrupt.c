#include "process/interrupt.h"

#include <errno.h>
#include <heft/remote.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process/message.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU };
enum { SIGNALS = sizeof signals / sizeof *signals };

/* signal recorded by the handler below, or 0 */
static atomic_int pending;

/* The signal is blocked inside its handler, at least in this thread, and ends the process when the
 * handler returns. raise() is not used: the sandbox does not know the threads that some C libraries
 * name. */
static void die_of(int signal_number)
{
    signal(signal_number, SIG_DFL);
    kill(getpid(), signal_number);
}

static void announce(int signal_number)
{
    message_announce_interrupt();
    die_of(signal_number);
}

static void record(int signal_number)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&pending, &none, signal_number))
        die_of(signal_number);
    heft_url_interrupt(true);
}

static void handle_with(void (*handler)(int))
{
    struct sigaction act, old;
    memset(&act, 0, sizeof act);
    act.sa_handler = handler;
    act.sa_flags = SA_RESTART;
    for (size_t i = 0; i < SIGNALS; i++)
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
}

void interrupt_announce(void)
{
    handle_with(announce);
}

void interrupt_hold(void)
{
    handle_with(record);
}

void interrupt_allow(void)
{
    handle_with(SIG_DFL);
}

bool interrupt_is_pending(void)
{
    return atomic_load(&pending);
}

bool interrupt_wait(int fd)
{
    sigset_t held, before;
    struct pollfd input = { .fd = fd, .events = POLLIN };
    int n = 0;
    sigemptyset(&held);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&held, signals[i]);
    /* Signals arrive during ppoll() only, so that none is missed just before the wait. */
    sigprocmask(SIG_BLOCK, &held, &before);
    while (!interrupt_is_pending() && (n = ppoll(&input, 1, NULL, &before)) < 0 && errno == EINTR)
        continue;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return n > 0 && !interrupt_is_pending();
}

heft_status interrupt_error(heft_error *err)
{
    *err = (heft_error){ .status = HEFT_E_CANCELLED, .offset = HEFT_NOWHERE };
    snprintf(err->message, sizeof err->message, "interrupted; nothing written");
    return err->status;
}

void interrupt_die(void)
{
    sigset_t one;
    int signal_number = atomic_load(&pending);
    if (!signal_number)
        return;
    die_of(signal_number);
    sigemptyset(&one); /* reached only if the signal was blocked before the command began */
    sigaddset(&one, signal_number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}
