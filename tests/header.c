/* header.c - compiles the public headers alone, in the oldest C standard that they support. */
#include <heft/all.h>

int main(void)
{
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    bool sizes = open.size == sizeof open && write.size == sizeof write &&
                 convert.size == sizeof convert;
    bool version = heft_version() ==
                   (HEFT_VERSION_MAJOR << 16 | HEFT_VERSION_MINOR << 8 | HEFT_VERSION_PATCH);
    return sizes && version ? 0 : 1;
}
