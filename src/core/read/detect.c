/* detect.c - recognises a format by content: the format that matches the most bits wins. */
#include "core/read/file.h"

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

/* Descriptions of files that no format recognises, with advice. */
typedef struct foreign_kind {
    const char *prefix, *description, *advice;
} foreign_kind;

static const char html[] = "an HTML page that a server sent instead of the weights",
                  pickle[] = "a plain Python pickle, not written by torch.save()",
                  download[] = "download the file again", unpack[] = "unpack it first",
                  resave[] = "save the tensors as safetensors in the program that wrote them";

static const foreign_kind foreign_kinds[] = {
    { "<!DOCTYPE", html, download },
    { "<!doctype", html, download },
    { "<html", html, download },
    { "<HTML", html, download },
    { "<?xml", "an XML document, perhaps the error message of a server", download },
    { "version https://git-lfs.github.com/spec/", "a Git LFS pointer",
      "fetch the file itself with 'git lfs pull'" },
    { "\x1f\x8b", "compressed with gzip", unpack },
    { "\x28\xb5\x2f\xfd", "compressed with zstd", unpack },
    { "\xfd"
      "7zXZ",
      "compressed with xz", unpack },
    { "\x89HDF", "in HDF5, which this build does not read", resave },
    { "PK\x03\x04", "a zip archive of a kind that this build does not read",
      "unpack it if it contains a file of weights" },
    { "\x7f"
      "ELF",
      "an ELF executable", "name the file of weights" },
    { "\x80\x02", pickle, resave },
    { "\x80\x03", pickle, resave },
    { "\x80\x04", pickle, resave },
    { "\x80\x05", pickle, resave },
    { "{", "a JSON text without tensors",
      "open the folder of the model, or the index that lists its shards" },
};

heft_status heft_detect_foreign(const uint8_t *head, size_t head_len, uint64_t size,
                                heft_error *err)
{
    enum { SHOWN = 8 };
    const char *rule = "heft/unknown-format";
    const foreign_kind *s = foreign_kinds,
                       *end = foreign_kinds + sizeof foreign_kinds / sizeof *foreign_kinds;
    for (; s < end; s++) {
        heft_str prefix = heft_lit(s->prefix);
        if (prefix.len <= head_len && !memcmp(prefix.ptr, head, prefix.len))
            break;
    }
    if (!size)
        heft_error_plain(err, HEFT_E_FORMAT, "the file is empty");
    else if (s < end)
        heft_error_plain(err, HEFT_E_FORMAT, "the file is %s; %s", s->description, s->advice);
    else
        heft_error_plain(err, HEFT_E_FORMAT,
                         "unknown format: the file begins with %q; 'heft formats' lists the "
                         "supported formats",
                         (heft_str){ (const char *)head, head_len < SHOWN ? head_len : SHOWN });
    return heft_error_rule(err, HEFT_E_FORMAT, rule);
}
