/* scan_script.c - the code of TorchScript archives: loading one runs methods __setstate__ of its
 * classes, which may call functions that read and write files.
 *
 * Code may reach a function by torch.save, ops.aten.save, another name of torch, or getattr(): the
 * name itself is searched for, after a dot or as a whole text. */
#include "base/error.h"
#include "base/text.h"
#include "scan/scan.h"

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_quote(uint8_t c)
{
    return c == '"' || c == '\'';
}

/* The lines of code may go on after a backslash. */
static bool is_blank(uint8_t c)
{
    return c <= ' ' || c == '\\';
}

/* Return true if the word at the offset, of `len` bytes, is a member or a text of its own. */
static bool is_member(const uint8_t *p, uint64_t size, uint64_t at, size_t len)
{
    uint8_t next = at + len < size ? p[at + len] : 0;
    if (is_letter(next) || !at)
        return false;
    if (is_quote(p[at - 1]))
        return next == p[at - 1];
    while (at && is_blank(p[at - 1]))
        at--;
    return at && p[at - 1] == '.';
}

static void report(heft_scan *s, const heft_scan_piece *p, uint64_t at, heft_str name)
{
    heft_error text;
    heft_error_plain(&text, HEFT_E_FORMAT,
                     "the code of the model would call %q, a way to reach files", name);
    heft_scan_finding f = { .severity = HEFT_FAULT,
                            .rule = "pickle/script",
                            .member = p->member,
                            .offset = p->at + at,
                            .module = HEFT_STR("torch"),
                            .name = name,
                            .is_decoded = p->is_decoded,
                            .text = text.message };
    s->result.findings++;
    if (s->on_finding)
        s->on_finding(s->ctx, &f);
}

static void search(heft_scan *s, const heft_scan_piece *p, heft_str name)
{
    const uint8_t *at = p->bytes, *end = p->bytes + p->size;
    while ((at = heft_str_seek(at, end, name.ptr, name.len))) {
        uint64_t offset = (uint64_t)(at - p->bytes);
        if (is_member(p->bytes, p->size, offset, name.len)) {
            report(s, p, offset, name);
            return;
        }
        at += name.len;
    }
}

void heft_scan_script(heft_scan *s, const heft_scan_piece *p)
{
    static const char *const names[] = { "save", "from_file", "read_file", "write_file" };
    enum { NAMES = sizeof names / sizeof *names };
    if (!heft_scan_charge(s, p, p->size))
        return;
    for (size_t i = 0; i < NAMES; i++)
        search(s, p, heft_lit(names[i]));
}
