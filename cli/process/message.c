#include "process/message.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process/cmd.h"
#include "process/interrupt.h"
#include "process/textfile.h"

/* stderr belongs to the process, and signal handlers write to it, too. */
static message_style style;

void message_set_style(const message_style *given)
{
    style = *given;
}

/* The word may be abbreviated, and its value be the next word. */
void message_find_format(int argc, char **argv)
{
    static const char option[] = "--messages";
    enum { SHORTEST = sizeof "--me" - 1 };
    style = (message_style){ .is_json = false };
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t len = strcspn(argv[i], "=");
        if (len < SHORTEST || len >= sizeof option || strncmp(argv[i], option, len) != 0)
            continue;
        const char *value = argv[i][len] ? argv[i] + len + 1 : i + 1 < argc ? argv[++i] : "";
        style.is_json = !strcmp(value, "json");
    }
}

bool message_is_json(void)
{
    return style.is_json;
}

/* ---- in signal handlers ---- */

/* Append without a library function that is unsafe in a signal handler. */
static size_t put(char *line, size_t used, const char *text)
{
    size_t n = strlen(text);
    memcpy(line + used, text, n);
    return used + n;
}

static void write_error(const char *text, const char *status)
{
    char line[512]; /* longer than any of these messages */
    size_t n = put(line, 0,
                   style.is_json ? "{\"kind\": \"error\", \"file\": null, \"text\": \"" : "heft: ");
    n = put(line, n, text);
    if (style.is_json) {
        n = put(line, n, "\", \"status\": \"");
        n = put(line, n, status);
        n = put(line, n,
                "\", \"rule\": null, \"tensor\": null, \"offset\": null, \"errno\": null}");
    }
    n = put(line, n, "\n");
    ssize_t ignored = write(STDERR_FILENO, line, n);
    (void)ignored;
}

void message_announce_interrupt(void)
{
    write_error("interrupted; nothing written", "cancelled");
}

/* Several threads may read the lost pages: one of them ends the command, the others wait. */
static void on_bus_error(int signal_number)
{
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    (void)signal_number;
    while (atomic_flag_test_and_set(&is_said))
        continue;
    write_error("a file was truncated while it was being read", "io");
    _exit(CODE_SYSTEM);
}

void message_announce_bus_errors(void)
{
    signal(SIGBUS, on_bus_error);
}

/* ---- text ---- */

void out_place(outbuf *o, heft_str tensor, uint64_t offset, heft_str shard)
{
    bool has_offset = offset != HEFT_NOWHERE;
    if (tensor.ptr) {
        out_text(o, " (tensor \"");
        out_escaped(o, tensor);
        out_char(o, '"');
    }
    if (has_offset)
        out_format(o, "%sat byte %llu", tensor.ptr ? ", " : " (", (unsigned long long)offset);
    if (has_offset && shard.ptr) {
        out_text(o, " of ");
        out_name(o, shard);
    }
    out_text(o, tensor.ptr || has_offset ? ")" : "");
}

static const char *const kinds[] = { "note", "warning", "fault", "loss", "error", "info" };
static const char *const loss_severities[] = { "note", "warning", "error" };

/* Write the two examples: ': TEXT ("a", "b" and 148 more)' if their texts are the same, else both
 * texts. */
static void put_examples(outbuf *o, const message *m)
{
    const message_more *more = &m->more;
    bool is_same = !strcmp(m->text, more->text);
    unsigned long long rest = (unsigned long long)(more->count - 2);
    const char *how = style.can_list_all        ? "-v lists all"
                      : m->kind == MESSAGE_LOSS ? ""
                                                : "'heft verify' lists all";
    out_message(o, m->text);
    if (!is_same)
        out_place(o, m->tensor, HEFT_NOWHERE, m->shard);
    out_text(o, is_same && m->tensor.ptr ? " (tensors \"" : "; ");
    if (is_same && m->tensor.ptr) {
        out_escaped(o, m->tensor);
        out_text(o, "\", \"");
        out_escaped(o, more->tensor.ptr ? more->tensor : str_of(""));
        out_format(o, "\" and %llu more%s%s)", rest, *how ? "; " : "", how);
        return;
    }
    if (!is_same) {
        out_message(o, more->text);
        out_place(o, more->tensor, HEFT_NOWHERE, m->shard);
        out_text(o, "; ");
    }
    out_format(o, *how ? "and %llu more (%s)" : "and %llu more", is_same ? rest + 1 : rest, how);
}

static void put_text(outbuf *o, const message *m)
{
    bool is_finding = m->kind <= MESSAGE_FAULT;
    const char *label = m->kind == MESSAGE_LOSS ? loss_severities[m->severity]
                        : is_finding            ? kinds[m->kind]
                                                : NULL;
    term_paint(o, COLOUR_BOLD);
    out_text(o, "heft: ");
    term_paint(o, COLOUR_NONE);
    const char *const before[] = { stdin_label(m->file), label, is_finding ? m->rule : NULL };
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        if (before[i]) {
            out_message(o, before[i]);
            out_text(o, ": ");
        }
    if (m->more.count) {
        put_examples(o, m);
    } else {
        out_message(o, m->text);
        out_place(o, m->tensor, m->offset, m->shard);
    }
    out_char(o, '\n');
}

/* ---- JSON ---- */

static void member_or_null(json *j, const char *key, heft_str s)
{
    if (s.ptr)
        json_member_str(j, key, s);
    else
        json_member_null(j, key);
}

static heft_str optional(const char *s)
{
    return s ? str_of(s) : (heft_str){ NULL, 0 };
}

static void put_json(outbuf *o, const message *m)
{
    bool is_error = m->kind == MESSAGE_ERROR;
    json j = json_open(o);
    json_member_str(&j, "kind", str_of(kinds[m->kind]));
    if (m->kind == MESSAGE_LOSS)
        json_member_str(&j, "severity", str_of(loss_severities[m->severity]));
    member_or_null(&j, "file", optional(stdin_name(m->file)));
    json_member_str(&j, "text", str_of(m->text));
    member_or_null(&j, "status", optional(is_error ? heft_status_name(m->status) : NULL));
    member_or_null(&j, "rule", optional(m->rule));
    member_or_null(&j, "tensor", m->tensor);
    json_member_length(&j, "offset", m->offset);
    if (m->shard.ptr)
        json_member_str(&j, "shard", m->shard);
    if (m->more.count) {
        json_member_u64(&j, "count", m->more.count);
        json_member_str(&j, "second_text", str_of(m->more.text));
        member_or_null(&j, "second_tensor", m->more.tensor);
    }
    if (is_error && m->os)
        json_member_u64(&j, "errno", (uint64_t)m->os);
    else if (is_error)
        json_member_null(&j, "errno");
    json_close(&j);
}

void message_print(const message *m)
{
    char buf[MESSAGE_LINE];
    outbuf o;
    bool is_warning = m->kind == MESSAGE_NOTE || m->kind == MESSAGE_WARNING ||
                      (m->kind == MESSAGE_LOSS && m->severity < HEFT_FAULT);
    if (style.is_quiet && is_warning)
        return;
    out_open_fixed(&o, STDERR_FILENO, buf, sizeof buf);
    if (style.is_json)
        put_json(&o, m);
    else
        put_text(&o, m);
    out_flush(&o);
}

void message_progress(uint64_t done, uint64_t total)
{
    char buf[MESSAGE_LINE];
    outbuf o;
    out_open_fixed(&o, STDERR_FILENO, buf, sizeof buf);
    json j = json_open(&o);
    json_member_str(&j, "kind", str_of("progress"));
    json_member_u64(&j, "done", done);
    json_member_u64(&j, "total", total);
    json_close(&j);
    out_flush(&o);
}

bool result_begin(result_line *r, const char *file)
{
    if (!style.is_json)
        return false;
    out_open_fixed(&r->o, STDERR_FILENO, r->buf, sizeof r->buf);
    r->json = json_open(&r->o);
    json_member_str(&r->json, "kind", str_of("result"));
    json_member_str(&r->json, "file", str_of(file));
    return true;
}

void result_end(result_line *r)
{
    json_close(&r->json);
    out_flush(&r->o);
}

/* ---- messages with a format ---- */

/* Print m with the formatted text. help_command: command whose --help the line refers to, or
 * NULL. */
static void print_formatted(message *m, const char *help_command, const char *format, va_list args)
{
    char fixed[512]; /* used if memory runs out */
    outbuf text;
    va_list args_copy;
    va_copy(args_copy, args);
    out_open(&text, -1);
    out_vformat(&text, format, args);
    if (help_command)
        out_format(&text, " (see heft %s --help)", help_command);
    vsnprintf(fixed, sizeof fixed, format, args_copy);
    va_end(args_copy);
    const char *whole = out_cstr(&text);
    m->text = text.os ? fixed : whole;
    m->offset = HEFT_NOWHERE;
    message_print(m);
    out_free(&text);
}

void say(message_kind kind, const char *file, const char *format, ...)
{
    message m = { .kind = kind, .file = file };
    va_list args;
    va_start(args, format);
    print_formatted(&m, NULL, format, args);
    va_end(args);
}

void say_lost(bool is_error, const char *file, const char *format, ...)
{
    message m = { .kind = MESSAGE_LOSS,
                  .severity = is_error ? HEFT_FAULT : HEFT_WARNING,
                  .file = file };
    va_list args;
    va_start(args, format);
    print_formatted(&m, NULL, format, args);
    va_end(args);
}

static int code_of(heft_status s)
{
    switch (s) {
    case HEFT_OK:
        return CODE_DONE;
    case HEFT_E_FORMAT:
    case HEFT_E_CHECKSUM:
        return CODE_INVALID;
    case HEFT_E_UNSUPPORTED:
    case HEFT_E_LOSSY:
    case HEFT_E_LIMIT:
        return CODE_CANNOT;
    case HEFT_E_ARGUMENT:
    case HEFT_E_NOTFOUND:
        return CODE_USAGE;
    case HEFT_AGAIN:
    case HEFT_E_NOMEM:
    case HEFT_E_IO:
    case HEFT_E_CANCELLED:
        break;
    }
    return CODE_SYSTEM;
}

int say_status(heft_status status, const char *file, const char *format, ...)
{
    message m = { .kind = MESSAGE_ERROR, .status = status, .file = file };
    va_list args;
    va_start(args, format);
    print_formatted(&m, NULL, format, args);
    va_end(args);
    return code_of(status);
}

int say_system(int os, const char *file)
{
    message_print(&(message){ .kind = MESSAGE_ERROR,
                              .status = os == ENOMEM ? HEFT_E_NOMEM : HEFT_E_IO,
                              .os = os,
                              .file = file,
                              .text = strerror(os),
                              .offset = HEFT_NOWHERE });
    return CODE_SYSTEM;
}

int say_usage(const char *cmd, const char *format, ...)
{
    message m = { .kind = MESSAGE_ERROR,
                  .status = HEFT_E_ARGUMENT,
                  .file = style.is_json ? NULL : cmd };
    va_list args;
    va_start(args, format);
    print_formatted(&m, cmd, format, args);
    va_end(args);
    return CODE_USAGE;
}

int say_error(const char *file, const heft_error *err)
{
    message m = { .kind = MESSAGE_ERROR,
                  .status = err->status,
                  .os = err->os,
                  .file = file,
                  .text = err->message,
                  .rule = err->rule,
                  .offset = err->offset };
    if (err->status == HEFT_E_CANCELLED && interrupt_is_pending()) {
        m.file = NULL;
        m.text = "interrupted; nothing written";
        m.offset = HEFT_NOWHERE;
    }
    if (err->os != EPIPE) /* the reader closed the pipe: no message */
        message_print(&m);
    return code_of(err->status);
}
