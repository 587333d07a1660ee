/* format_info.c - properties of formats, the library's version, and names of statuses. */
#include "core/read/file.h"

#include "core/read/input_window.h"

/* Return eight bits for each character of the first magic that the file begins with, or 0. */
static int magic_bits(const char *magics, const uint8_t *head, size_t head_len)
{
    for (size_t len; magics && *magics; magics += len + (magics[len] == ' ')) {
        for (len = 0; magics[len] && magics[len] != ' ';)
            len++;
        if (len <= head_len && !memcmp(head, magics, len))
            return 8 * (int)len;
    }
    return 0;
}

const heft_format *heft_detect(const uint8_t *head, size_t head_len, const uint8_t *tail,
                               size_t tail_len, uint64_t size)
{
    const heft_format *best = NULL;
    int best_bits = 0;
    for (size_t i = 0; i < heft_registry_count(); i++) {
        const heft_format *f = heft_registry_at(i);
        int bits = magic_bits(f->magics, head, head_len);
        if (!bits && f->probe)
            bits = f->probe(head, head_len, tail, tail_len, size);
        if (bits > best_bits) {
            best_bits = bits;
            best = f;
        }
    }
    return best;
}

heft_status heft_detect_foreign(const uint8_t *head, size_t head_len, const uint8_t *tail,
                                size_t tail_len, uint64_t size, heft_error *err)
{
    enum { SHOWN = 8 };
    const char *rule = "heft/unknown-format";
    const heft_foreign_kind *kind = heft_foreign_find(head, head_len, tail, tail_len);
    if (!size)
        heft_error_plain(err, HEFT_E_FORMAT, "the file is empty");
    else if (kind)
        heft_error_plain(err, HEFT_E_FORMAT, "the file is %s; %s", kind->description, kind->advice);
    else
        heft_error_plain(err, HEFT_E_FORMAT,
                         "unknown format: the file begins with %q; 'heft formats' lists the "
                         "supported formats",
                         (heft_str){ (const char *)head, head_len < SHOWN ? head_len : SHOWN });
    return heft_error_rule(err, HEFT_E_FORMAT, rule);
}

uint32_t heft_version(void)
{
    return (uint32_t)HEFT_VERSION_MAJOR << 16 | HEFT_VERSION_MINOR << 8 | HEFT_VERSION_PATCH;
}

const char *heft_status_name(heft_status s)
{
    static const char *const names[] = { "ok",        "format", "unsupported", "limit",
                                         "no-memory", "io",     "checksum",    "not-found",
                                         "argument",  "lossy",  "cancelled" };
    if (s == HEFT_AGAIN)
        return "again";
    return s <= 0 && s >= HEFT_E_CANCELLED ? names[-s] : "unknown";
}

uint32_t heft_format_count(void)
{
    return heft_registry_count();
}

const heft_format *heft_format_at(uint32_t i)
{
    return i < heft_registry_count() ? heft_registry_at(i) : NULL;
}

const heft_format *heft_format_find(heft_str name)
{
    for (size_t i = 0; i < heft_registry_count(); i++)
        if (heft_str_is(name, heft_registry_at(i)->name))
            return heft_registry_at(i);
    return NULL;
}

static bool ends_with(heft_str path, heft_str suffix)
{
    if (suffix.len >= path.len)
        return false;
    for (size_t i = 0; i < suffix.len; i++) {
        char c = path.ptr[path.len - suffix.len + i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != suffix.ptr[i])
            return false;
    }
    return true;
}

const heft_format *heft_format_for_path(const char *path)
{
    for (size_t i = 0; path && i < heft_registry_count(); i++)
        for (heft_str suffixes = heft_lit(heft_registry_at(i)->suffixes); suffixes.len;) {
            heft_str one = heft_str_next_word(&suffixes);
            if (one.len && ends_with(heft_lit(path), one))
                return heft_registry_at(i);
        }
    return NULL;
}

const char *heft_format_name(const heft_format *f)
{
    return f ? f->name : "";
}

const char *heft_format_title(const heft_format *f)
{
    return f ? f->title : "";
}

const char *heft_format_suffixes(const heft_format *f)
{
    return f ? f->suffixes : "";
}

const char *heft_format_versions(const heft_format *f)
{
    return f ? f->versions : "";
}

uint32_t heft_format_caps(const heft_format *f)
{
    return f ? f->caps : 0;
}

bool heft_format_writes(const heft_format *f, heft_str version)
{
    return heft_str_has_word(heft_lit(f->versions), version);
}
