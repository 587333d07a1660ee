/* windows_text.c - text in UTF-16 and UTF-8, errors as errno, and functions that other C libraries
 * have. */
#include "port/windows/system.h"

#include <io.h>

/* ---- errors ---- */

static const struct {
    DWORD error;
    int os;
} errors[] = {
    { ERROR_FILE_NOT_FOUND, ENOENT },
    { ERROR_PATH_NOT_FOUND, ENOENT },
    { ERROR_INVALID_DRIVE, ENOENT },
    { ERROR_BAD_NETPATH, ENOENT },
    { ERROR_BAD_PATHNAME, ENOENT },
    { ERROR_INVALID_NAME, EINVAL },
    { ERROR_DIRECTORY, ENOTDIR },
    { ERROR_ACCESS_DENIED, EACCES },
    { ERROR_SHARING_VIOLATION, EBUSY },
    { ERROR_USER_MAPPED_FILE, EBUSY },
    { ERROR_LOCK_VIOLATION, EWOULDBLOCK },
    { ERROR_ALREADY_EXISTS, EEXIST },
    { ERROR_FILE_EXISTS, EEXIST },
    { ERROR_DIR_NOT_EMPTY, ENOTEMPTY },
    { ERROR_INVALID_HANDLE, EBADF },
    { ERROR_NOT_ENOUGH_MEMORY, ENOMEM },
    { ERROR_OUTOFMEMORY, ENOMEM },
    { ERROR_COMMITMENT_LIMIT, ENOMEM },
    { ERROR_DISK_FULL, ENOSPC },
    { ERROR_HANDLE_DISK_FULL, ENOSPC },
    { ERROR_BROKEN_PIPE, EPIPE },
    { ERROR_NO_DATA, EPIPE },
    { ERROR_PIPE_NOT_CONNECTED, EPIPE },
    { ERROR_WRITE_PROTECT, EROFS },
    { ERROR_NOT_SAME_DEVICE, EXDEV },
    { ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG },
    { ERROR_TOO_MANY_OPEN_FILES, EMFILE },
    { ERROR_INVALID_PARAMETER, EINVAL },
    { ERROR_INVALID_FUNCTION, EINVAL },
    { ERROR_NOT_SUPPORTED, EINVAL },
    { ERROR_CALL_NOT_IMPLEMENTED, EINVAL },
    { ERROR_NO_UNICODE_TRANSLATION, EILSEQ },
    { ERROR_CANT_RESOLVE_FILENAME, ELOOP },
};

int windows_fail(void)
{
    DWORD error = GetLastError();
    errno = EIO;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error)
            errno = errors[i].os;
    return -1;
}

/* ---- UTF-16 ---- */

wchar_t *windows_utf16(const char *text)
{
    int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *out = units ? malloc((size_t)units * sizeof *out) : NULL;
    if (!units)
        (void)windows_fail();
    else if (out)
        MultiByteToWideChar(CP_UTF8, 0, text, -1, out, units);
    return out;
}

char *windows_utf8(const wchar_t *text, int len)
{
    int bytes = len ? WideCharToMultiByte(CP_UTF8, 0, text, len, NULL, 0, NULL, NULL) : 0;
    char *out = malloc((size_t)bytes + 1);
    if (!out)
        return NULL;
    if (bytes)
        WideCharToMultiByte(CP_UTF8, 0, text, len, out, bytes, NULL, NULL);
    out[bytes] = 0;
    return out;
}

/* ---- the environment ---- */

/* A variable as UTF-8, kept until the process ends: the list holds each name and value once. */
typedef struct variable {
    struct variable *next;
    char *value;
    char name[];
} variable;

static variable *variables;
static SRWLOCK variables_lock = SRWLOCK_INIT;

/* Return the value, malloc'ed.  TMPDIR is the folder for temporary files of Windows unless it is
 * set. */
static char *read_variable(const char *name)
{
    wchar_t *wide = windows_utf16(name), *value = NULL;
    DWORD units = wide ? GetEnvironmentVariableW(wide, NULL, 0) : 0;
    char *out = NULL;
    if (units && (value = malloc(units * sizeof *value))) {
        DWORD got = GetEnvironmentVariableW(wide, value, units);
        out = got < units ? windows_utf8(value, (int)got) : NULL;
    } else if (!strcmp(name, "TMPDIR") && (value = malloc((MAX_PATH + 2) * sizeof *value))) {
        DWORD got = GetTempPathW(MAX_PATH + 1, value);
        out = got && got <= MAX_PATH ? windows_utf8(value, (int)got) : NULL;
    }
    free(value);
    free(wide);
    return out;
}

static variable *find_variable(const char *name)
{
    variable *v = variables;
    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    return v;
}

const char *windows_getenv(const char *name)
{
    AcquireSRWLockExclusive(&variables_lock);
    variable *v = find_variable(name);
    if (!v && (v = malloc(sizeof *v + strlen(name) + 1))) {
        strcpy(v->name, name);
        v->value = read_variable(name);
        v->next = variables;
        variables = v;
    }
    ReleaseSRWLockExclusive(&variables_lock);
    return v ? v->value : NULL;
}

/* ---- functions of other C libraries ---- */

char *windows_strndup(const char *text, size_t len)
{
    size_t n = strnlen(text, len);
    char *copy = malloc(n + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

void *windows_memmem(const void *in, size_t len, const void *what, size_t what_len)
{
    const char *p = in;
    for (size_t i = 0; what_len <= len && i <= len - what_len; i++)
        if (!memcmp(p + i, what, what_len))
            return (void *)(uintptr_t)(p + i);
    return NULL;
}

int windows_strerror_r(int os, char *out, size_t size)
{
    const char *text = os == WINDOWS_RESERVED ? "Windows reserves a name in the path"
                                              : strerror(os);
    snprintf(out, size, "%s", text ? text : "unknown error");
    return 0;
}

struct tm *windows_gmtime_r(const time_t *t, struct tm *out)
{
    return gmtime_s(out, t) ? NULL : out;
}

unsigned windows_alarm(unsigned seconds)
{
    (void)seconds;
    return 0;
}

void windows_erase(void *block, size_t size)
{
    SecureZeroMemory(block, size);
}

int windows_isatty(int fd)
{
    DWORD mode;
    HANDLE handle = windows_handle(fd);
    return handle != INVALID_HANDLE_VALUE && GetConsoleMode(handle, &mode);
}
