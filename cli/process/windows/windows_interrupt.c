/* windows_interrupt.c - replaces interrupt.c: Ctrl-C, Ctrl-Break and the end of a session. */
#include "process/interrupt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <windows.h>

#include "process/message.h"

enum { INTERRUPTED = 130 }; /* exit code, as of a shell after SIGINT */
typedef enum reaction { DIE, ANNOUNCE, RECORD } reaction;

static atomic_int pending, chosen;

/* Windows calls this function on a thread of its own. */
static BOOL WINAPI react(DWORD event)
{
    (void)event;
    int before = atomic_load(&chosen) == RECORD ? atomic_exchange(&pending, 1) : 1;
    if (!before)
        return TRUE;
    if (atomic_load(&chosen) == ANNOUNCE)
        message_announce_interrupt();
    TerminateProcess(GetCurrentProcess(), INTERRUPTED);
    return TRUE;
}

static void choose(reaction r)
{
    if (atomic_exchange(&chosen, (int)r) == DIE && r != DIE)
        SetConsoleCtrlHandler(react, TRUE);
}

void interrupt_announce(void)
{
    choose(ANNOUNCE);
}

void interrupt_hold(void)
{
    choose(RECORD);
}

void interrupt_allow(void)
{
    if (atomic_exchange(&chosen, DIE) != DIE)
        SetConsoleCtrlHandler(react, FALSE);
}

bool interrupt_is_pending(void)
{
    return atomic_load(&pending);
}

bool interrupt_wait(int fd)
{
    (void)fd; /* a read blocks as long as this wait would */
    return !interrupt_is_pending();
}

heft_status interrupt_error(heft_error *err)
{
    *err = (heft_error){ .status = HEFT_E_CANCELLED, .offset = HEFT_NOWHERE };
    snprintf(err->message, sizeof err->message, "interrupted; nothing written");
    return err->status;
}

void interrupt_die(void)
{
    if (interrupt_is_pending())
        TerminateProcess(GetCurrentProcess(), INTERRUPTED);
}
