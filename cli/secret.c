#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { PASSWORD_MAX = 1024 };

static bool is_encrypted(heft_str pem)
{
    static const char mark[] = "ENCRYPTED";
    return pem.len && memmem(pem.ptr, pem.len, mark, sizeof mark - 1);
}

/* Read a line without its end; -1 after a failure. */
static ssize_t read_line(int fd, char *buf, size_t capacity)
{
    size_t len = 0;
    ssize_t n = 1;
    while (len < capacity && (n = read(fd, buf + len, 1)) == 1 && buf[len] != '\n')
        len++;
    return n < 0 || len == capacity ? -1 : (ssize_t)len;
}

static int say_no_terminal(const char *path)
{
    return say_status(HEFT_E_ARGUMENT, path,
                      "is encrypted, and there is no terminal to ask for its password: use "
                      "--password-file");
}

static int ask(secret *out, const char *path)
{
    struct termios before, silent;
    char *buf = malloc(PASSWORD_MAX);
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    ssize_t len = -1;
    if (buf && fd >= 0 && !tcgetattr(fd, &before)) {
        silent = before;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        /* A program that waits for the question may answer at once: no byte of it is flushed. */
        if (!tcsetattr(fd, TCSAFLUSH, &silent)) {
            dprintf(fd, "Password of %s: ", path);
            len = read_line(fd, buf, PASSWORD_MAX);
            tcsetattr(fd, TCSAFLUSH, &before);
        }
        dprintf(fd, "\n");
    }
    if (fd >= 0)
        close(fd);
    if (len < 0) {
        free(buf);
        return say_no_terminal(path);
    }
    out->text = (heft_str){ buf, (size_t)len };
    return CODE_DONE;
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
