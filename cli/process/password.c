#include "process/term.h"

#include <fcntl.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "process/interrupt.h"
#include "process/message.h"

/* Read a line without its end; -1 after a failure, or after a signal. */
static ssize_t read_line(int fd, char *buf, size_t capacity)
{
    size_t len = 0;
    ssize_t n = 1;
    while (len < capacity && interrupt_wait(fd) && (n = read(fd, buf + len, 1)) == 1 &&
           buf[len] != '\n')
        len++;
    return n < 0 || len == capacity || interrupt_is_pending() ? -1 : (ssize_t)len;
}

/* Read a password without an echo. Ctrl-C ends the command after the echo is back. */
static ssize_t read_silently(int fd, const char *path, char *buf)
{
    struct termios before, silent;
    ssize_t len = -1;
    if (tcgetattr(fd, &before))
        return -1;
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    silent.c_lflag |= NOFLSH; /* Ctrl-C must not discard the message that answers it */
    interrupt_hold();
    /* A program that waits for the question may answer at once: no byte of it is flushed. */
    if (!tcsetattr(fd, TCSAFLUSH, &silent)) {
        dprintf(fd, "Password of %s: ", path);
        len = read_line(fd, buf, PASSWORD_MAX);
        /* The rest of a long line must not reach the shell. */
        tcsetattr(fd, TCSAFLUSH, &before);
        dprintf(fd, "\n");
    }
    if (interrupt_is_pending())
        message_announce_interrupt();
    interrupt_die();
    interrupt_announce(); /* as before: only commands that write take keys */
    return len;
}

ptrdiff_t password_ask(char *buf, const char *path, bool *has_terminal)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    *has_terminal = fd >= 0;
    ssize_t len = fd >= 0 ? read_silently(fd, path, buf) : -1;
    if (fd >= 0)
        close(fd);
    return len;
}
