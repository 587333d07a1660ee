/* no_yaml.c - documents in YAML in a build without libyaml. */
#include "base/sized.h"
#include "port/port.h"
#include <heft/blend.h>

heft_status heft_yaml_to_json(heft_blob *out, heft_str yaml, const heft_host *host, heft_error *err)
{
    (void)yaml, (void)host;
    *out = (heft_blob){ .size = 0 };
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "this build of Heft has no libyaml, which reads settings in YAML: "
                            "write them in JSON, or rebuild Heft with -Dyaml=enabled");
}
