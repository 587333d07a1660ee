/* scan_script.c - the code of TorchScript archives: loading one runs methods __setstate__ of its
 * classes, which may call functions that read and write files.
 *
 * Code may reach a function by torch.save, ops.aten.save, another name of torch, or getattr(): the
 * name itself is searched for, after a dot or as a whole text.  Blanks and comments may follow the
 * dot; a text may have escapes in octal, and parts that are joined: "sa" "\166e".  The search does
 * not know whether a quote or a "#" lies in a text or in a comment, and follows both. */
#include <string.h>

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

static bool is_octal(uint8_t c)
{
    return c >= '0' && c <= '7';
}

/* Read the character at an offset, as which an escape counts; set *len to its bytes. */
static uint8_t read_character(const heft_scan_piece *p, uint64_t at, uint64_t *len)
{
    enum { MOST = 4 }; /* a backslash and three digits */
    uint64_t n = 1;
    unsigned code = 0;
    for (; p->bytes[at] == '\\' && n < MOST && n < p->size - at && is_octal(p->bytes[at + n]); n++)
        code = code << 3 | (p->bytes[at + n] - (unsigned)'0');
    bool is_other = n == 1 && p->bytes[at] == '\\' && p->size - at > 1 && p->bytes[at + 1] > ' ';
    *len = n + is_other;
    return n > 1 ? (uint8_t)code : p->bytes[at];
}

static bool is_word(const heft_scan_piece *p, uint64_t at, heft_str word)
{
    return p->size - at >= word.len && !memcmp(p->bytes + at, word.ptr, word.len) &&
           (p->size - at == word.len || !is_letter(p->bytes[at + word.len]));
}

typedef struct state {
    uint32_t read, kept; /* bit n: n letters of the name have followed a quote; before a comment */
    bool is_after_dot, was_after_dot; /* before a comment */
} state;

/* Go on with a character that is part of a text or a word. */
static void read_letter(state *x, heft_str name, uint8_t c)
{
    uint32_t next = 0;
    for (size_t i = 0; i < name.len; i++)
        if ((x->read >> i & 1) && (uint8_t)name.ptr[i] == c)
            next |= UINT32_C(2) << i;
    x->read = next;
    x->is_after_dot = false;
}

static void read_sign(state *x, heft_str name, uint8_t c)
{
    if (is_quote(c)) {
        x->read |= 1;
        x->is_after_dot = false;
    } else if (c == '#') {
        x->kept |= x->read;
        x->was_after_dot |= x->is_after_dot;
        read_letter(x, name, c);
    } else if (c == '\n') {
        x->read |= x->kept;
        x->is_after_dot |= x->was_after_dot;
        x->kept = 0;
        x->was_after_dot = false;
    } else if (c > ' ' && c != '\\') {
        read_letter(x, name, c);
        x->is_after_dot = c == '.';
    }
}

/* name: the function that the code calls, empty for code that does anything. */
static void report(heft_scan *s, const heft_scan_piece *p, uint64_t at, heft_str name)
{
    heft_error text;
    heft_error_plain(&text, HEFT_E_FORMAT,
                     name.len ? "the code of the model would call %q, a way to reach files"
                              : "is code that torch.package runs",
                     name);
    heft_scan_finding f = { .severity = HEFT_FAULT,
                            .rule = "pickle/script",
                            .member = p->member,
                            .offset = p->at + at,
                            .module = name.len ? HEFT_STR("torch") : name,
                            .name = name,
                            .is_decoded = p->is_decoded,
                            .text = text.message };
    s->result.findings++;
    if (s->on_finding)
        s->on_finding(s->ctx, &f);
}

static void search(heft_scan *s, const heft_scan_piece *p, heft_str name)
{
    state x = { 0 };
    for (uint64_t at = 0, len; at < p->size; at += len) {
        uint8_t c = read_character(p, at, &len);
        bool is_whole_text = len == 1 && is_quote(c) && (x.read >> name.len & 1);
        if (is_whole_text || (x.is_after_dot && is_word(p, at, name))) {
            report(s, p, at, name);
            return;
        }
        if (len > 1)
            read_letter(&x, name, c);
        else
            read_sign(&x, name, c);
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

void heft_scan_package_code(heft_scan *s, const heft_scan_piece *p)
{
    report(s, p, 0, (heft_str){ "", 0 });
}
