#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "interrupt.h"

enum { PASSWORD_MAX = 1024 };

static bool is_encrypted(heft_str pem)
{
    static const char mark[] = "ENCRYPTED";
    return pem.len && memmem(pem.ptr, pem.len, mark, sizeof mark - 1);
}

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

static int ask(secret *out, const char *path)
{
    char *buf = malloc(PASSWORD_MAX);
    /* A program that reads messages as JSON may have put the command into the background, where a
     * question stops the process. */
    int fd = buf && !message_is_json() ? open("/dev/tty", O_RDWR | O_CLOEXEC) : -1;
    ssize_t len = fd >= 0 ? read_silently(fd, path, buf) : -1;
    int code = CODE_DONE;
    if (len < 0)
        code = say_status(HEFT_E_ARGUMENT, path,
                          fd < 0 ? "is encrypted, and there is no terminal to ask for its "
                                   "password: use --password-file"
                                 : "has a password that could not be read: use --password-file");
    if (fd >= 0)
        close(fd);
    if (code && buf) {
        explicit_bzero(buf, PASSWORD_MAX);
        free(buf);
    }
    if (!code)
        out->text = (heft_str){ buf, (size_t)len };
    return code;
}

void secret_free(secret *s)
{
    if (s->text.ptr)
        explicit_bzero((void *)(uintptr_t)s->text.ptr, s->text.len);
    text_free(s->text);
    s->text = (heft_str){ NULL, 0 };
}

int secrets_read(const opt_usage *u)
{
    int code = CODE_DONE;
    for (size_t i = 0; i < u->count && !code; i++) {
        secret *s = u->options[i].kind == OPT_SECRET ? u->options[i].target : NULL;
        if (s && s->path)
            code = text_read(&s->text, s->path, TEXT_NAMED);
    }
    for (size_t i = 0; i < u->count && !code; i++) {
        const secret *s = u->options[i].kind == OPT_SECRET ? u->options[i].target : NULL;
        if (s && s->password && !s->password->path && is_encrypted(s->text))
            code = ask(s->password, s->path);
    }
    for (size_t i = 0; i < u->count && code; i++)
        if (u->options[i].kind == OPT_SECRET)
            secret_free(u->options[i].target);
    return code;
}
