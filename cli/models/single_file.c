#include "models/single_file.h"

#include "text/outbuf.h"

static uint32_t count_names(single_file *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heft_tensor_count(s->f); i++)
        count += single_file_name(s, i).ptr != NULL;
    return count;
}

void single_file_open(single_file *s, const heft_file *f)
{
    heft_map *best = NULL;
    uint32_t most = 0;
    *s = (single_file){ .f = f };
    for (uint32_t i = 0; heft_map_shipped(i).ptr; i++) {
        if (heft_map_parse(&s->map, heft_map_shipped(i), NULL, NULL))
            continue;
        heft_map_info info = heft_map_describe(s->map);
        bool fits = str_same(info.from, str_of("diffusers")) &&
                    str_same(info.to, str_of("single-file"));
        uint32_t count = fits ? count_names(s) : 0;
        heft_map_close(count > most ? best : s->map);
        best = count > most ? s->map : best;
        most = count > most ? count : most;
    }
    s->map = best;
}

heft_str single_file_name(single_file *s, uint32_t tensor)
{
    size_t n = heft_map_rename(s->name, sizeof s->name, s->map, HEFT_MAP_INVERSE,
                               heft_tensor_at(s->f, tensor).name);
    return (heft_str){ n ? s->name : NULL, n };
}

void single_file_release(single_file *s)
{
    heft_map_close(s->map);
    s->map = NULL;
}
