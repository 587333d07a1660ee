/* windows_terminal.c - replaces terminal.c: the console, and the arguments in UTF-16. */
#include "process/term.h"

#include <io.h>
#include <stdint.h>
#include <stdlib.h>
#include <windows.h>

enum { VIRTUAL_TERMINAL = 4 }; /* ENABLE_VIRTUAL_TERMINAL_PROCESSING of Windows 10 */

static char *utf8(const wchar_t *text)
{
    int bytes = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *out = malloc((size_t)bytes + 1);
    if (out)
        WideCharToMultiByte(CP_UTF8, 0, text, -1, out, bytes, NULL, NULL);
    return out;
}

/* The arguments of main() are in the code page of the system, with wildcards expanded. */
char **terminal_prepare(int *argc, char **argv)
{
    int count = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
    char **out = wide ? calloc((size_t)count + 1, sizeof *out) : NULL;
    SetConsoleOutputCP(CP_UTF8);
    for (int i = 0; out && i < count; i++)
        if (!(out[i] = utf8(wide[i])))
            return argv;
    LocalFree(wide);
    if (!out)
        return argv;
    *argc = count;
    return out; /* kept until the process ends */
}

void terminal_use_slashes(char *path)
{
    for (; *path; path++)
        if (*path == '\\')
            *path = '/';
}

bool terminal_has_colour(void)
{
    return true;
}

bool terminal_shows_colour(int fd)
{
    DWORD mode;
    HANDLE console = (HANDLE)_get_osfhandle(fd);
    return GetConsoleMode(console, &mode) &&
           (mode & VIRTUAL_TERMINAL || SetConsoleMode(console, mode | VIRTUAL_TERMINAL));
}

size_t terminal_columns(int fd)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &info))
        return 0;
    int columns = info.srWindow.Right - info.srWindow.Left + 1;
    return columns > 0 ? (size_t)columns : 0;
}
