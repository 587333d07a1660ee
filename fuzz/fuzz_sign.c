/* fuzz_sign.c - fuzzes the reader of signatures: memory is proportional to the text, names are
 * paths below the folder, a signature that is written and read again is equal, and no check of a
 * key accepts a statement that was changed after signing. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sign/signature.h"

/* A key for this test alone. */
static const char private_key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgoC7VtSki/VoOQ1U7\n"
    "bqrbfUoVDRryBZfpwpy0FQjXO6WhRANCAAT4mj3zIJKA3m5VL/tfWJOCH05Sn1AV\n"
    "HinCCznVNuGavyfsB8VRk67lrN3Z3xvSi5vmst19nMu4mTFTqYMOdWU2\n"
    "-----END PRIVATE KEY-----\n";
static const char public_key[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+Jo98yCSgN5uVS/7X1iTgh9OUp9Q\n"
    "FR4pwgs51Tbhmr8n7AfFUZOu5azd2d8b0oub5rLdfZzLuJkxU6mDDnVlNg==\n"
    "-----END PUBLIC KEY-----\n";

enum { PER_BYTE = 100, ROOM = 64 << 10, SIGN_ONE_IN = 8 };

static bool is_same(heft_str a, heft_str b)
{
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

/* ---- one signature ---- */

static void check_name(heft_str name)
{
    fuzz_require(name.len && name.ptr[0] != '/' && name.ptr[name.len - 1] != '/');
    for (size_t i = 0; i + 1 < name.len; i++) {
        bool begins = !i || name.ptr[i - 1] == '/';
        bool is_above = name.ptr[i] == '.' && name.ptr[i + 1] == '.' &&
                        (i + 2 == name.len || name.ptr[i + 2] == '/');
        fuzz_require(name.ptr[i] && !(begins && is_above));
    }
}

static void check_resources(const heft_signature *s, uint32_t count)
{
    heft_resource x, before = { .from = 0 };
    fuzz_require(heft_resource_count(s) == count);
    for (uint32_t i = 0; i < count; i++) {
        x = heft_resource_at(s, i);
        check_name(x.name);
        fuzz_require(x.from < x.to && x.digest.length && x.digest.length <= sizeof x.digest.bytes);
        fuzz_require(!i || heft_resource_order(&before, &x) < 0);
        uint32_t first = heft_resource_find(s, x.name);
        fuzz_require(first <= i && (first == i) == (!i || !is_same(before.name, x.name)));
        before = x;
    }
    fuzz_require(!heft_resource_at(s, count).name.ptr);
}

static void require_same(const heft_signature *a, const heft_signature *b)
{
    heft_signature_info x, y;
    heft_signature_get(&x, a);
    heft_signature_get(&y, b);
    fuzz_require(is_same(x.model, y.model) && is_same(x.message, y.message));
    fuzz_require(is_same(x.signature, y.signature) && is_same(x.key_hint, y.key_hint));
    fuzz_require(x.resources == y.resources && x.ignored == y.ignored);
    fuzz_require(x.certificates == y.certificates && x.allow_symlinks == y.allow_symlinks);
    for (uint32_t i = 0; i < x.certificates; i++)
        fuzz_require(
            is_same(heft_signature_certificate_at(a, i), heft_signature_certificate_at(b, i)));
}

static void write_and_read(const heft_signature *s)
{
    heft_error err = fuzz_no_error();
    heft_signature *again;
    fuzz_bytes text = { .ptr = NULL };
    fuzz_require(!heft_signature_write(s, fuzz_sink(&text), NULL));
    fuzz_require(
        !heft_signature_read(&again, (heft_str){ (const char *)text.ptr, text.len }, NULL, &err));
    require_same(s, again);
    heft_signature_close(again);
    free(text.ptr);
}

/* Sign the statement, change a bit of the message, and change the bit back. */
static void sign_and_change(heft_signature *s, fuzz_script *script)
{
    heft_signature_info info;
    heft_str key = heft_str_from(public_key);
    if (s->certificates.len ||
        heft_signature_sign(s, heft_str_from(private_key), HEFT_STR(""), NULL))
        return; /* a build without libcrypto */
    heft_signature_get(&info, s);
    uint32_t at = fuzz_next(script) << 8 | fuzz_next(script);
    char *bits = (char *)(uintptr_t)info.message.ptr + at % info.message.len;
    char change = (char)(1 << fuzz_next(script) % 8);
    fuzz_require(!heft_signature_check_key(s, key, NULL));
    *bits = (char)(*bits ^ change);
    fuzz_require(heft_signature_check_key(s, key, NULL) == HEFT_E_CHECKSUM);
    *bits = (char)(*bits ^ change);
    fuzz_require(!heft_signature_check_key(s, key, NULL));
}

static void use(heft_signature *s, fuzz_script *script)
{
    heft_signature_info info;
    heft_signature_get(&info, s);
    check_resources(s, info.resources);
    for (uint32_t i = 0; i < info.ignored; i++)
        fuzz_use(heft_signature_ignored_at(s, i).len);
    write_and_read(s);
    if (fuzz_next(script) % SIGN_ONE_IN == 0)
        sign_and_change(s, script);
}

/* ---- inputs ---- */

/* Read the data as a bundle, or as the statement of a bundle. */
static heft_status read_input(heft_signature **out, heft_str text, bool is_statement,
                              const heft_host *host, heft_error *err)
{
    if (!is_statement)
        return heft_signature_read(out, text, host, err);
    heft_status st = heft_signature_open(out, host, err);
    if (st)
        return st;
    (*out)->statement = text; /* borrowed: the data live longer than the signature */
    st = heft_statement_read(*out, err);
    if (!st)
        st = heft_signature_wrap(*out, err);
    if (st) {
        heft_signature_close(*out);
        *out = NULL;
    }
    return st;
}

static void run(const uint8_t *data, size_t size, fuzz_script *script)
{
    heft_error err = fuzz_no_error();
    heft_signature *s = NULL;
    fuzz_memory m;
    bool is_statement = size && memchr(data, ':', size) && !memmem(data, size, "mediaType", 9);
    uint32_t left = fuzz_next(script);
    fuzz_memory_init(&m, left < 32 ? left : UINT32_MAX);
    heft_status st = read_input(&s, (heft_str){ (const char *)data, size }, is_statement, &m.host,
                                &err);
    fuzz_require(!st == (s != NULL) && m.peak <= (uint64_t)PER_BYTE * size + ROOM);
    fuzz_require((st == HEFT_E_NOMEM) == m.has_failed);
    if (st)
        fuzz_require_error(st, &err);
    m.left = UINT32_MAX;
    if (s)
        use(s, script);
    heft_signature_close(s);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 5 };
