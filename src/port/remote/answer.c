/* answer.c - the headers of HTTP answers: the byte range, and the version of the file.
 * libcurl has parsed the rest. */
#include <stdio.h>
#include <string.h>

#include "port/remote/session.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* If the line has the header `name`, set *value to the trimmed value. */
static bool has_name(heft_str *value, heft_str line, const char *name)
{
    size_t n = strlen(name);
    if (line.len <= n || line.ptr[n] != ':')
        return false;
    for (size_t i = 0; i < n; i++)
        if (lower(line.ptr[i]) != name[i])
            return false;
    *value = (heft_str){ line.ptr + n + 1, line.len - n - 1 };
    while (value->len && (*value->ptr == ' ' || *value->ptr == '\t')) {
        value->ptr++;
        value->len--;
    }
    while (value->len && strchr(" \t\r\n", value->ptr[value->len - 1]))
        value->len--;
    return true;
}

/* A value that does not fit is left out: two versions may begin with the same text. */
static void keep(char *to, size_t size, heft_str value)
{
    size_t n = value.len < size ? value.len : 0;
    memcpy(to, value.ptr, n);
    to[n] = '\0';
}

/* Take a decimal number from the beginning of the text. */
static bool take_number(uint64_t *out, heft_str *s)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(s->ptr[i] - '0');
        if (n > (INT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    s->ptr += i;
    s->len -= i;
    *out = n;
    return i;
}

static bool take(heft_str *s, const char *text)
{
    size_t n = strlen(text);
    if (s->len < n || memcmp(s->ptr, text, n) != 0)
        return false;
    s->ptr += n;
    s->len -= n;
    return true;
}

/* RFC 9110 §14.4: "bytes 0-99/200", "bytes 0-99/" and a star, "bytes " and a star before "/200". */
static void read_range(heft_answer *a, heft_str s)
{
    a->has_range = a->has_total = false;
    if (!take(&s, "bytes "))
        return;
    bool is_unsatisfied = take(&s, "*/");
    if (!is_unsatisfied) {
        bool is_valid = take_number(&a->first, &s) && take(&s, "-") && take_number(&a->last, &s) &&
                        take(&s, "/") && a->first <= a->last;
        if (!is_valid)
            return;
    }
    bool has_total = take_number(&a->total, &s) && !s.len;
    a->has_total = has_total && (is_unsatisfied || a->last < a->total);
    a->has_range = !is_unsatisfied && (a->has_total || (take(&s, "*") && !s.len));
}

/* Cut a value, and replace what a terminal might obey. */
static void keep_printable(char *to, size_t size, heft_str value)
{
    size_t n = value.len < size - 1 ? value.len : size - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = value.ptr[i] >= ' ' && value.ptr[i] <= '~' ? value.ptr[i] : '?';
    to[n] = '\0';
}

/* Read how long requests are refused: "RateLimit: "NAME";r=0;t=8, ..." lists the remaining requests
 * and the seconds of each limit, and earlier drafts have "limit=3, remaining=0, reset=8". */
static void read_limits(heft_answer *a, heft_str s)
{
    bool is_exhausted = true;
    while (s.len) {
        uint64_t n;
        is_exhausted = is_exhausted || *s.ptr == '"'; /* the name of another limit */
        bool is_remaining = take(&s, "r=") || take(&s, "remaining=");
        if (is_remaining && take_number(&n, &s))
            is_exhausted = !n;
        else if ((take(&s, "t=") || take(&s, "reset=")) && take_number(&n, &s))
            a->reset = is_exhausted && n > a->reset ? n : a->reset;
        while (s.len && !strchr(";, ", *s.ptr))
            s = (heft_str){ s.ptr + 1, s.len - 1 };
        while (s.len && strchr(";, ", *s.ptr))
            s = (heft_str){ s.ptr + 1, s.len - 1 };
    }
}

/* Another answer follows.  The hub states the digest in a redirect to the server of the content,
 * which cannot replace the digest. */
static void clear(heft_answer *a)
{
    char linked[sizeof a->linked];
    memcpy(linked, a->linked, sizeof linked);
    *a = (heft_answer){ .has_range = false };
    memcpy(a->linked, linked, sizeof linked);
}

void heft_answer_line(heft_answer *a, heft_str line)
{
    heft_str value;
    if (line.len >= 5 && !memcmp(line.ptr, "HTTP/", 5))
        clear(a);
    else if (has_name(&value, line, "etag"))
        keep(a->etag, sizeof a->etag, value);
    else if (!*a->linked && has_name(&value, line, "x-linked-etag"))
        keep(a->linked, sizeof a->linked, value);
    else if (has_name(&value, line, "last-modified"))
        keep(a->modified, sizeof a->modified, value);
    else if (has_name(&value, line, "date"))
        keep(a->date, sizeof a->date, value);
    else if (has_name(&value, line, "content-range"))
        read_range(a, value);
    else if (has_name(&value, line, "x-error-code"))
        keep_printable(a->code, sizeof a->code, value);
    else if (has_name(&value, line, "x-error-message"))
        keep_printable(a->text, sizeof a->text, value);
    else if (has_name(&value, line, "x-amz-bucket-region"))
        keep_printable(a->region, sizeof a->region, value);
    else if (has_name(&value, line, "ratelimit"))
        read_limits(a, value);
    else if (has_name(&value, line, "ratelimit-reset") ||
             has_name(&value, line, "x-ratelimit-reset"))
        take_number(&a->reset, &value);
    else if (has_name(&value, line, "content-encoding"))
        a->is_encoded = value.len && !(value.len == 8 && !memcmp(value.ptr, "identity", 8));
}

bool heft_answer_has_strong_etag(const heft_answer *a)
{
    return *a->etag && strncmp(a->etag, "W/", 2) != 0 && strncmp(a->etag, "w/", 2) != 0;
}

/* Keep the text of the first element `name` of a body in XML. */
static void keep_element(char *to, size_t size, const char *body, const char *name)
{
    char open[32];
    int n = snprintf(open, sizeof open, "<%s>", name);
    const char *from = strstr(body, open);
    if (from && !*to)
        keep_printable(to, size, (heft_str){ from + n, strcspn(from + n, "<") });
}

void heft_answer_body(heft_answer *a, const char *body)
{
    if (!strstr(body, "<Error>"))
        return;
    keep_element(a->code, sizeof a->code, body, "Code");
    keep_element(a->text, sizeof a->text, body, "Message");
    keep_element(a->region, sizeof a->region, body, "Region");
}
