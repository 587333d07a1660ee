#include "assign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(const char *s)
{
    s += *s == '-' || *s == '+';
    s += *s == '.';
    return *s >= '0' && *s <= '9' && !(*s == '0' && (s[1] == 'x' || s[1] == 'X'));
}

static bool set_number(heft_value *v, const char *text)
{
    char *end;
    errno = 0;
    v->kind = HEFT_KIND_INT;
    v->as.i = strtoll(text, &end, 10);
    if (!*end && !errno)
        return true;
    errno = 0;
    v->kind = HEFT_KIND_UINT;
    v->as.u = strtoull(text, &end, 10);
    if (!*end && !errno && *text != '-')
        return true;
    v->kind = HEFT_KIND_FLOAT;
    v->as.f = strtod(text, &end);
    return !*end;
}

/* An integer, a float, true or false; "..." and anything else is text. */
static void set_value(heft_value *v, const char *text)
{
    size_t len = strlen(text);
    bool quoted = len >= 2 && *text == '"' && text[len - 1] == '"';
    if (!strcmp(text, "true") || !strcmp(text, "false")) {
        v->kind = HEFT_KIND_BOOL;
        v->as.b = *text == 't';
    } else if (!is_number(text) || !set_number(v, text)) {
        v->kind = HEFT_KIND_STR;
        v->as.s = quoted ? (heft_str){ text + 1, len - 2 } : (heft_str){ text, len };
    }
}

int assign_value(heft_value *v, const char *who, const char *given)
{
    const char *equals = strchr(given, '=');
    if (!equals || equals == given)
        return say_usage(who, "'%s' is not KEY=VALUE", given);
    v->key = (heft_str){ given, (size_t)(equals - given) };
    set_value(v, equals + 1);
    return CODE_DONE;
}

int assign_rename(heft_rename *r, const char *who, const char *given)
{
    const char *equals = strchr(given, '=');
    if (!equals)
        return say_usage(who, "'%s' is not A=B", given);
    r->from = (heft_str){ given, (size_t)(equals - given) };
    r->to = (heft_str){ equals + 1, strlen(equals + 1) };
    return CODE_DONE;
}
