// header.cc - the public headers, and the library behind them, from C++.
#include <heft/all.h>

int main()
{
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err;
    heft_file *file = nullptr;
    bool sizes = open.size == sizeof open && write.size == sizeof write &&
                 convert.size == sizeof convert;
    bool refused = heft_file_open(&file, "/", &open, &err) != HEFT_OK && !file;
    return sizes && refused ? 0 : 1;
}
