/* archives.c - finds the file of weights in an archive of another program: NeMo's .nemo (tar), .pt2
 * of torch.export (zip), llamafiles (a program with a zip archive behind it), and archives that
 * people make.  The member is stored as it is, so that its bytes are a file in a range of the file.
 *
 * Reference: docs.nvidia.com/nemo-framework ("Checkpoints"), torch/export/pt2_archive/constants.py,
 * llamafile's README ("zipalign").
 */
#include "base/error.h"
#include "base/text.h"
#include "format/format.h"
#include "format/zip_archive.h"
#include "grammar/tar.h"
#include "grammar/zip.h"

/* Headers of tar may each be a request to a server, after which the search begins anew. */
enum { MAX_MEMBERS = 1024 };

typedef struct choice {
    heft_archive_member m;
    uint32_t weights, well_known; /* numbers of files */
    bool is_packed;               /* compressed or encrypted */
    bool is_tar;                  /* a header of tar was read */
    bool has_more;                /* members that were not searched */
    bool is_pt2;                  /* a package of torch.export, which is no archive of files */
} choice;

static heft_str base_name(heft_str path)
{
    size_t at = path.len;
    while (at && path.ptr[at - 1] != '/')
        at--;
    return (heft_str){ path.ptr + at, path.len - at };
}

/* Return true for the files that hold the weights even if there are others. */
static bool is_well_known(heft_str name)
{
    return heft_str_is(name, "model_weights.ckpt") || heft_str_is(name, "serialized_state_dict.pt");
}

/* Many files of other programs end in .bin. */
static bool is_well_known_bin(heft_str name)
{
    return heft_str_ends(name, ".bin") &&
           (heft_str_begins(name, "pytorch_model") || heft_str_begins(name, "adapter_model") ||
            heft_str_begins(name, "diffusion_pytorch_model"));
}

/* Inputs of the model are no weights, nor is what macOS notes about a file in "._NAME". */
static bool is_weights(heft_str name)
{
    static const char *const suffixes[] = { ".safetensors", ".gguf",   ".ckpt", ".pt",
                                            ".pth",         ".onnx",   ".npz",  ".bpk",
                                            ".mpk",         ".distcp", ".zt",   ".msgpack",
                                            ".gptrs",       ".gten",   ".mag",  ".weights",
                                            ".h5",          ".keras" };
    bool is_one = is_well_known_bin(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        is_one = is_one ||
                 (heft_str_ends(name, suffixes[i]) && name.len > heft_lit(suffixes[i]).len);
    return is_one && !heft_str_begins(name, "._") &&
           !heft_str_is(name, "serialized_example_inputs.pt");
}

/* Choose the first file, or the first that is well known. */
static void consider(choice *c, const heft_archive_member *m, bool is_packed)
{
    heft_str name = base_name(m->name), other = c->m.other;
    c->is_pt2 = c->is_pt2 || heft_str_is(name, "archive_format");
    bool known = is_well_known(name), is_first = known ? !c->well_known : !c->weights;
    if (!is_weights(name))
        return;
    if (c->weights && !other.ptr)
        other = is_first ? c->m.name : m->name;
    if (is_first) {
        c->m = *m;
        c->is_packed = is_packed;
    }
    c->m.other = other;
    c->weights++;
    c->well_known += known;
}

static heft_status search_tar(choice *c, heft_window *in)
{
    heft_tar tar = { in, 0 };
    heft_tar_entry e;
    bool found = true;
    for (uint32_t i = 0; i <= MAX_MEMBERS && found; i++) {
        HEFT_TRY(heft_tar_next(&tar, &e, &found));
        heft_archive_member m = { .where = e.data, .name = e.name };
        c->is_tar = c->is_tar || found;
        c->has_more = found && i == MAX_MEMBERS;
        if (found && e.is_file && !c->has_more)
            consider(c, &m, false);
    }
    return HEFT_OK;
}

static heft_status search_zip(choice *c, heft_window *in, heft_arena *arena)
{
    heft_zip zip;
    HEFT_TRY(heft_zip_open(&zip, in, arena, true));
    for (uint32_t i = 0; i < zip.count; i++) {
        const heft_zip_entry *e = &zip.entries[i];
        heft_archive_member m = { .where = { e->data, e->stored }, .name = e->name };
        m.crc = e->crc;
        m.has_crc = true;
        consider(c, &m, e->is_opaque || e->method != HEFT_ZIP_STORED);
    }
    return HEFT_OK;
}

/* ---- the archive ---- */

bool heft_archive_is_tar(const uint8_t *head, size_t len)
{
    return len >= HEFT_TAR_MAGIC + 5 && !memcmp(head + HEFT_TAR_MAGIC, "ustar", 5);
}

static bool begins(const uint8_t *head, size_t len, const char *text)
{
    heft_str s = heft_lit(text);
    return len >= s.len && !memcmp(head, text, s.len);
}

/* Return true for zip archives, and for programs that may have one behind them. */
static bool may_be_zip(const uint8_t *head, size_t len)
{
    return begins(head, len, "PK\3\4") || begins(head, len, "MZ") ||
           begins(head, len, "\x7f\x45LF") || begins(head, len, "jartsr=");
}

static heft_status refuse(const choice *c, heft_error *err)
{
    if (c->is_pt2 && !c->well_known)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, HEFT_ZIP_PT2);
    if (c->has_more)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "the archive has more than %U members: unpack it first, and name "
                                "the file of weights",
                                (uint64_t)MAX_MEMBERS);
    if (c->weights > 1 && c->well_known != 1)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "the archive has %U files of weights, %q and %q among them: unpack "
                                "it first, and name one of them",
                                (uint64_t)c->weights, c->m.name, c->m.other);
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "the weights %q in the archive are compressed or encrypted: unpack it "
                            "first",
                            c->m.name);
}

heft_status heft_archive_find(heft_archive_member *out, heft_window *in, heft_arena *arena,
                              const uint8_t *head, size_t len, heft_error *err)
{
    choice c = { .weights = 0 };
    heft_error own = { .status = HEFT_OK };
    heft_status st = HEFT_OK;
    *out = c.m;
    in->err = &own;
    if (heft_archive_is_tar(head, len))
        st = search_tar(&c, in);
    else if (may_be_zip(head, len))
        st = search_zip(&c, in, arena);
    in->err = NULL;
    bool is_final = st == HEFT_E_NOMEM || (st && c.is_tar);
    if (is_final && st != HEFT_AGAIN)
        *err = own;
    if (st == HEFT_AGAIN || is_final)
        return st;
    if (!st && c.is_pt2 && !c.well_known)
        return refuse(&c, err);
    if (st || (!c.weights && !c.has_more)) /* not an archive, or of something else */
        return HEFT_OK;
    if (c.has_more || c.is_packed || (c.weights > 1 && c.well_known != 1))
        return refuse(&c, err);
    *out = c.m;
    out->others = c.weights - 1;
    return HEFT_OK;
}
