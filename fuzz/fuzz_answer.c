/* fuzz_answer.c - fuzzes the headers of HTTP answers: texts are terminated, ranges are in order and
 * within the file, and the case of names and the end of lines change nothing. */
#include <string.h>
#include <strings.h>

#include "fuzz.h"
#include "port/remote/session.h"

static void require_valid(const heft_answer *a)
{
    fuzz_require(memchr(a->etag, '\0', sizeof a->etag));
    fuzz_require(memchr(a->modified, '\0', sizeof a->modified));
    fuzz_require(memchr(a->linked, '\0', sizeof a->linked));
    fuzz_require(!a->has_range || a->first <= a->last);
    fuzz_require(!a->has_range || !a->has_total || a->last < a->total);
    fuzz_require(!a->has_total || a->total <= INT64_MAX);
}

static void require_same(const heft_answer *a, const heft_answer *b)
{
    fuzz_require(!strcmp(a->etag, b->etag) && !strcmp(a->modified, b->modified));
    fuzz_require(!strcmp(a->linked, b->linked) && a->is_encoded == b->is_encoded);
    fuzz_require(a->has_range == b->has_range && a->has_total == b->has_total);
    fuzz_require(!a->has_range || (a->first == b->first && a->last == b->last));
    fuzz_require(!a->has_total || a->total == b->total);
}

/* Read the line with a name in capitals and with CR and LF at the end. */
static void read_changed(heft_answer *a, heft_str line)
{
    char text[1024];
    size_t i = 0;
    for (; i < line.len && line.ptr[i] != ':' && line.ptr[i] != '/'; i++) {
        char c = line.ptr[i];
        text[i] = c >= 'a' && c <= 'z' ? (char)(c - ('a' - 'A')) : c;
    }
    memcpy(text + i, line.ptr + i, line.len - i);
    memcpy(text + line.len, "\r\n", 2);
    heft_answer_line(a, (heft_str){ text, line.len + 2 });
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    heft_answer plain = { .has_range = false }, changed = plain;
    (void)s;
    while (size) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t len = end ? (size_t)(end - data) : size;
        heft_str line = { (const char *)data, len < 1000 ? len : 1000 };
        heft_answer_line(&plain, line);
        require_valid(&plain);
        if (line.len >= 4 && !strncasecmp(line.ptr, "http", 4)) /* perhaps a status line */
            heft_answer_line(&changed, line);
        else
            read_changed(&changed, line);
        require_same(&plain, &changed);
        data += len + (end != NULL);
        size -= len + (end != NULL);
    }
}

const fuzz_target fuzz_this = { .run = run };
