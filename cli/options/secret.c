#include "options/opt.h"

#include <stdlib.h>
#include <string.h>

#include "process/term.h"

static bool is_encrypted(heft_str pem)
{
    static const char mark[] = "ENCRYPTED";
    return pem.len && memmem(pem.ptr, pem.len, mark, sizeof mark - 1);
}

static int ask(secret *out, const char *path)
{
    bool has_terminal = false;
    char *buf = malloc(PASSWORD_MAX);
    /* A program that reads messages as JSON may have put the command into the background, where a
     * question stops the process. */
    ptrdiff_t len = buf && !message_is_json() ? password_ask(buf, path, &has_terminal) : -1;
    int code = CODE_DONE;
    if (len < 0)
        code = say_status(HEFT_E_ARGUMENT, path,
                          has_terminal
                              ? "has a password that could not be read: use --password-file"
                              : "is encrypted, and there is no terminal to ask for its "
                                "password: use --password-file");
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

/* Return the secret that option i sets, or NULL. */
static secret *secret_at(const session *s, size_t i)
{
    const opt *o = opt_at(s->command, i);
    return o && o->kind == OPT_SECRET ? opt_target(s, o) : NULL;
}

int secrets_read(const session *s)
{
    int code = CODE_DONE;
    for (size_t i = 0; opt_at(s->command, i) && !code; i++) {
        secret *key = secret_at(s, i);
        if (key && key->path)
            code = text_read(&key->text, key->path, TEXT_NAMED);
    }
    for (size_t i = 0; opt_at(s->command, i) && !code; i++) {
        const secret *key = secret_at(s, i);
        if (key && key->password && !key->password->path && is_encrypted(key->text))
            code = ask(key->password, key->path);
    }
    for (size_t i = 0; opt_at(s->command, i) && code; i++)
        if (secret_at(s, i))
            secret_free(secret_at(s, i));
    return code;
}
