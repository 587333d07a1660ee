/* path_risk.c - detects names that would escape a folder if a program used the names as paths. */
#include "base/path_risk.h"

#include "base/text.h"

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

static bool has_byte(heft_str name, char byte)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] == byte)
            return true;
    return false;
}

static bool has_parent(heft_str name)
{
    for (size_t at = 0, end; at < name.len; at = end + 1) {
        end = at;
        while (end < name.len && !is_separator(name.ptr[end]))
            end++;
        if (end - at == 2 && name.ptr[at] == '.' && name.ptr[at + 1] == '.')
            return true;
    }
    return false;
}

static bool has_drive(heft_str name)
{
    char letter = name.len > 2 ? (char)(name.ptr[0] | 0x20) : 0;
    return letter >= 'a' && letter <= 'z' && name.ptr[1] == ':' && is_separator(name.ptr[2]);
}

heft_path_risk heft_str_path_risk(heft_str name)
{
    if (name.len && name.ptr[0] == '/')
        return HEFT_PATH_ABSOLUTE;
    if (has_parent(name))
        return HEFT_PATH_PARENT;
    if (has_drive(name))
        return HEFT_PATH_DRIVE;
    if (has_byte(name, '\\'))
        return HEFT_PATH_BACKSLASH;
    return has_byte(name, '\0') ? HEFT_PATH_NUL : HEFT_PATH_PLAIN;
}

bool heft_str_is_file_name(heft_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!name.ptr[i] || name.ptr[i] == '/' || name.ptr[i] == '\\')
            return false;
    return name.len && name.len <= HEFT_MAX_SHARD_NAME && !heft_str_is(name, ".") &&
           !heft_str_is(name, "..");
}

bool heft_str_is_inner_path(heft_str name)
{
    enum { MOST_FOLDERS = 7 };
    for (uint32_t folders = 0; folders <= MOST_FOLDERS; folders++) {
        size_t len = 0;
        while (len < name.len && name.ptr[len] != '/')
            len++;
        if (!heft_str_is_file_name((heft_str){ name.ptr, len }))
            return false;
        if (len == name.len)
            return true;
        name = (heft_str){ name.ptr + len + 1, name.len - len - 1 };
    }
    return false;
}
