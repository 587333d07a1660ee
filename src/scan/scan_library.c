/* scan_library.c - code in packages of torch.export: PyTorch loads the libraries that AOTInductor
 * compiled, or compiles them from the sources in the package. */
#include "base/error.h"
#include "base/text.h"
#include "scan/scan.h"

/* Return true for a library, a program or an object file of any system. */
static bool is_machine_code(const heft_scan_piece *p)
{
    static const char *const magics[] = { "\x7f\x45LF", "MZ", "\xcf\xfa\xed\xfe",
                                          "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe" };
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        heft_str magic = heft_lit(magics[i]);
        if (p->size >= magic.len && !memcmp(p->bytes, magic.ptr, magic.len))
            return true;
    }
    return false;
}

static bool has_name_of_code(heft_str name)
{
    static const char *const suffixes[] = { ".so", ".dll", ".pyd", ".dylib", ".o", ".a", ".cpp" };
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (heft_str_ends(name, suffixes[i]))
            return true;
    return false;
}

void heft_scan_library(heft_scan *s, const heft_scan_piece *p)
{
    heft_str folder = HEFT_STR("data/aotinductor/");
    const uint8_t *path = (const uint8_t *)p->member.ptr;
    if (!p->member.len || !heft_str_seek(path, path + p->member.len, folder.ptr, folder.len) ||
        !(is_machine_code(p) || has_name_of_code(p->name)))
        return;
    heft_scan_finding f = { .severity = HEFT_FAULT,
                            .rule = "torch/library",
                            .member = p->member,
                            .offset = p->at,
                            .is_decoded = p->is_decoded,
                            .text = "is compiled code or its source, which PyTorch runs when it "
                                    "loads the package" };
    s->result.findings++;
    if (s->on_finding)
        s->on_finding(s->ctx, &f);
}
