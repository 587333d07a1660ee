/* shipped.c - the maps that come with the library. */
#include "base/error.h"
#include "base/text.h"
#include "map/map_reader.h"

heft_str heft_map_shipped(uint32_t i)
{
    uint32_t count = 0;
    while (count < i && heft_map_texts[count])
        count++;
    return heft_map_texts[count] ? heft_str_from(heft_map_texts[count]) : (heft_str){ NULL, 0 };
}

/* Return the name in the line "map NAME". */
static heft_str name_of(heft_str text)
{
    heft_str line;
    while (text.len) {
        heft_map_cut(&text, &line, "\n");
        if (heft_str_is(heft_map_word(&line), "map"))
            return heft_map_trim(line);
    }
    return text;
}

heft_str heft_map_find_text(heft_str name)
{
    for (uint32_t i = 0; heft_map_texts[i]; i++) {
        heft_str text = heft_str_from(heft_map_texts[i]);
        if (heft_str_eq(name_of(text), name))
            return text;
    }
    return (heft_str){ NULL, 0 };
}
