/* windows_names.c - paths in UTF-16; rename, link and remove files. */
#include "port/windows/system.h"

#include <ctype.h>
#include <winternl.h>

static const OBJECT_INFORMATION_CLASS OBJECT_NAME = (OBJECT_INFORMATION_CLASS)1;

/* ---- reserved names ---- */

/* Return true for CON, NUL, COM1 and others, with or without a suffix. */
static bool is_device(const char *name, size_t len)
{
    static const char *const devices[] = { "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$" };
    size_t stem = 0;
    while (stem < len && name[stem] != '.' && name[stem] != ' ')
        stem++;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (stem == strlen(devices[i]) && !_strnicmp(name, devices[i], stem))
            return true;
    return stem == 4 && (!_strnicmp(name, "COM", 3) || !_strnicmp(name, "LPT", 3)) &&
           name[3] >= '1' && name[3] <= '9';
}

bool windows_is_reserved(const char *name, size_t len)
{
    bool is_dots = (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < ' ' || strchr("<>:\"|?*", name[i]))
            return true;
    return len && !is_dots &&
           (name[len - 1] == '.' || name[len - 1] == ' ' || is_device(name, len));
}

/* ---- paths ---- */

static bool is_slash(int c)
{
    return c == '/' || c == '\\';
}

/* Return the length of the drive, "C:", if the path begins with one.  "C:name" has none: a file in
 * the current folder of another drive would leave the folder of a model. */
static size_t drive_length(const char *path)
{
    bool is_drive = isalpha((unsigned char)path[0]) && path[1] == ':';
    return is_drive && (!path[2] || is_slash(path[2])) ? 2 : 0;
}

/* Return the length of the drive or of the prefix of long paths. */
static size_t prefix_length(const char *path)
{
    bool is_long = !strncmp(path, "\\\\?\\", 4) || !strncmp(path, "//?/", 4);
    return is_long ? 4 + drive_length(path + 4) : drive_length(path);
}

static bool is_allowed(const char *path)
{
    for (const char *p = path + prefix_length(path); *p;) {
        const char *from = p;
        while (*p && !is_slash(*p))
            p++;
        if (windows_is_reserved(from, (size_t)(p - from)))
            return false;
        p += *p != 0;
    }
    return true;
}

/* Return the path without dots and forward slashes, with the prefix of long paths. */
static wchar_t *make_absolute(const wchar_t *text)
{
    static const wchar_t local[] = L"\\\\?\\", network[] = L"\\\\?\\UNC";
    DWORD units = GetFullPathNameW(text, 0, NULL, NULL);
    size_t room = sizeof network / sizeof *network;
    wchar_t *full = units ? malloc((units + room) * sizeof *full) : NULL;
    if (!full) {
        if (!units)
            (void)windows_fail();
        return NULL;
    }
    wchar_t *path = full + room - 1;
    if (!GetFullPathNameW(text, units, path, NULL)) {
        (void)windows_fail();
        free(full);
        return NULL;
    }
    if (!wcsncmp(path, L"\\\\?\\", 4) || !wcsncmp(path, L"\\\\.\\", 4)) {
        memmove(full, path, (wcslen(path) + 1) * sizeof *full);
        return full;
    }
    bool is_network = path[0] == L'\\' && path[1] == L'\\';
    const wchar_t *prefix = is_network ? network : local;
    const wchar_t *rest = is_network ? path + 1 : path;
    size_t prefix_len = wcslen(prefix);
    memmove(full + prefix_len, rest, (wcslen(rest) + 1) * sizeof *full);
    memcpy(full, prefix, prefix_len * sizeof *full);
    return full;
}

/* Return the path that the kernel has for the handle.  A drive has another name in programs; any
 * other device has a name below GLOBALROOT. */
static wchar_t *path_in_kernel(HANDLE handle)
{
    enum { BYTES = 2 * 32768 };
    static const wchar_t drive[] = L"\\??\\", root[] = L"\\\\?\\GLOBALROOT";
    UNICODE_STRING *name = malloc(sizeof *name + BYTES);
    wchar_t *path = malloc(sizeof root + BYTES);
    bool is_found = name && path &&
                    !NtQueryObject(handle, OBJECT_NAME, name, sizeof *name + BYTES, NULL);
    size_t units = is_found ? name->Length / sizeof *path : 0;
    if (is_found && units > 4 && !wcsncmp(name->Buffer, drive, 4)) {
        wcscpy(path, L"\\\\?\\");
        memcpy(path + 4, name->Buffer + 4, (units - 4) * sizeof *path);
        path[units] = 0;
    } else if (is_found) {
        wcscpy(path, root);
        memcpy(path + wcslen(root), name->Buffer, units * sizeof *path);
        path[wcslen(root) + units] = 0;
    } else {
        free(path);
        path = NULL;
        errno = EIO;
    }
    free(name);
    return path;
}

/* Return the path of a handle.  Wine gives no path longer than MAX_PATH to the first question. */
static wchar_t *path_of_handle(HANDLE handle)
{
    DWORD units = GetFinalPathNameByHandleW(handle, NULL, 0, 0);
    wchar_t *path = units ? malloc((units + 1) * sizeof *path) : NULL;
    if (!units || (path && !GetFinalPathNameByHandleW(handle, path, units + 1, 0))) {
        free(path);
        return path_in_kernel(handle);
    }
    return path;
}

/* Join the folder of a descriptor and the relative path, which may be "." but has no other dots:
 * Windows does not resolve dots after the prefix of long paths. */
static wchar_t *join(int dir, const wchar_t *name)
{
    HANDLE handle = windows_handle(dir);
    wchar_t *folder = handle == INVALID_HANDLE_VALUE ? NULL : path_of_handle(handle);
    size_t len = folder ? wcslen(folder) : 0;
    if (!folder || !wcscmp(name, L"."))
        return folder;
    wchar_t *joined = malloc((len + wcslen(name) + 2) * sizeof *joined);
    if (joined) {
        memcpy(joined, folder, len * sizeof *joined);
        joined[len] = L'\\';
        wcscpy(joined + len + 1, name);
    }
    free(folder);
    return joined;
}

wchar_t *windows_path(int dir, const char *path)
{
    if (!strcmp(path, "/dev/null"))
        return windows_utf16("NUL");
    if (!*path || !is_allowed(path)) {
        errno = *path ? WINDOWS_RESERVED : ENOENT;
        return NULL;
    }
    wchar_t *wide = windows_utf16(path), *out = NULL;
    for (wchar_t *p = wide; p && *p; p++)
        if (*p == L'/')
            *p = L'\\';
    bool is_absolute = is_slash(path[0]) || prefix_length(path);
    if (wide)
        out = dir != WINDOWS_HERE && !is_absolute ? join(dir, wide) : make_absolute(wide);
    free(wide);
    return out;
}

/* Return the path without the prefix of long paths, with forward slashes, in UTF-8. */
static char *plain_path(wchar_t *path)
{
    bool is_network = !wcsncmp(path, L"\\\\?\\UNC\\", 8);
    wchar_t *from = is_network ? path + 6 : !wcsncmp(path, L"\\\\?\\", 4) ? path + 4 : path;
    if (is_network)
        *from = L'\\';
    for (wchar_t *p = from; *p; p++)
        if (*p == L'\\')
            *p = L'/';
    return windows_utf8(from, (int)wcslen(from));
}

char *windows_realpath(const char *path, char *out)
{
    int fd = windows_open(path, WINDOWS_PATH_ONLY);
    wchar_t *wide = fd < 0 ? NULL : path_of_handle(windows_handle(fd));
    char *found = wide ? plain_path(wide) : NULL;
    int os = errno;
    free(wide);
    if (fd >= 0)
        windows_close(fd);
    errno = os;
    if (!found || !out)
        return found;
    enum { OUT_BYTES = 32768 }; /* PATH_MAX */
    snprintf(out, OUT_BYTES, "%s", found);
    free(found);
    return out;
}

/* ---- changing names ---- */

/* FILE_RENAME_INFO of Windows 10, with flags in place of the Boolean. */
typedef struct rename_request {
    DWORD flags;
    HANDLE folder;
    DWORD bytes;
    wchar_t name[1];
} rename_request;

enum { RENAME_CLASS = 22, RENAME_REPLACE = 1, RENAME_POSIX = 2, RENAME_READ_ONLY = 0x40 };

/* Rename as POSIX does, even if programs have `to` open: Windows 10 of 1709 and later. */
static bool rename_posix(const wchar_t *from, const wchar_t *to)
{
    size_t bytes = wcslen(to) * sizeof *to;
    rename_request *r = calloc(1, sizeof *r + bytes);
    HANDLE handle = CreateFileW(
        from, DELETE | SYNCHRONIZE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
        OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    bool done = false;
    if (r && handle != INVALID_HANDLE_VALUE) {
        r->flags = RENAME_REPLACE | RENAME_POSIX | RENAME_READ_ONLY;
        r->bytes = (DWORD)bytes;
        memcpy(r->name, to, bytes);
        done = SetFileInformationByHandle(handle, (FILE_INFO_BY_HANDLE_CLASS)RENAME_CLASS, r,
                                          (DWORD)(sizeof *r + bytes));
    }
    if (handle != INVALID_HANDLE_VALUE)
        CloseHandle(handle);
    free(r);
    return done;
}

typedef BOOL pair_fn(const wchar_t *from, const wchar_t *to);

static int on_pair(int from_dir, const char *from, int to_dir, const char *to, pair_fn *fn)
{
    wchar_t *wide_from = windows_path(from_dir, from), *wide_to = NULL;
    if (wide_from)
        wide_to = windows_path(to_dir, to);
    int failed = !wide_to ? -1 : fn(wide_from, wide_to) ? 0 : windows_fail();
    int os = errno;
    free(wide_from);
    free(wide_to);
    errno = os;
    return failed;
}

/* Replace a file that is open, where Windows cannot do that in one step: the old file keeps its
 * bytes under the name "NAME.heft-old" until the new file has the name. */
static bool rename_in_steps(const wchar_t *from, const wchar_t *to)
{
    static const wchar_t suffix[] = L".heft-old";
    size_t len = wcslen(to);
    wchar_t *old = malloc((len + sizeof suffix / sizeof *suffix) * sizeof *old);
    if (!old) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return false;
    }
    memcpy(old, to, len * sizeof *old);
    wcscpy(old + len, suffix);
    bool is_aside = MoveFileExW(to, old, MOVEFILE_WRITE_THROUGH);
    bool done = is_aside && MoveFileExW(from, to, MOVEFILE_WRITE_THROUGH);
    DWORD error = GetLastError();
    if (done)
        DeleteFileW(old);
    else if (is_aside)
        MoveFileExW(old, to, MOVEFILE_WRITE_THROUGH);
    free(old);
    SetLastError(error);
    return done;
}

static BOOL rename_over(const wchar_t *from, const wchar_t *to)
{
    return rename_posix(from, to) ||
           MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ||
           (GetLastError() == ERROR_ACCESS_DENIED && rename_in_steps(from, to));
}

static BOOL rename_if_new(const wchar_t *from, const wchar_t *to)
{
    return MoveFileExW(from, to, MOVEFILE_WRITE_THROUGH);
}

static BOOL link_new(const wchar_t *from, const wchar_t *to)
{
    return CreateHardLinkW(to, from, NULL);
}

int windows_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return on_pair(from_dir, from, to_dir, to, rename_over);
}

int windows_rename_new(int dir, const char *from, const char *to)
{
    return on_pair(dir, from, dir, to, rename_if_new);
}

int windows_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    (void)flags;
    return on_pair(from_dir, from, to_dir, to, link_new);
}

typedef BOOL name_fn(const wchar_t *path);

static int on_name(int dir, const char *path, name_fn *fn)
{
    wchar_t *wide = windows_path(dir, path);
    int failed = !wide ? -1 : fn(wide) ? 0 : windows_fail(), os = errno;
    free(wide);
    errno = os;
    return failed;
}

static BOOL remove_file(const wchar_t *path)
{
    return DeleteFileW(path);
}

static BOOL remove_folder(const wchar_t *path)
{
    return RemoveDirectoryW(path);
}

static BOOL create_folder(const wchar_t *path)
{
    return CreateDirectoryW(path, NULL);
}

static BOOL has_attributes(const wchar_t *path)
{
    return GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
}

int windows_unlinkat(int dir, const char *path, int flags)
{
    return on_name(dir, path, flags & WINDOWS_REMOVE_FOLDER ? remove_folder : remove_file);
}

int windows_unlink(const char *path)
{
    return windows_unlinkat(WINDOWS_HERE, path, 0);
}

int windows_mkdirat(int dir, const char *path, int mode)
{
    (void)mode;
    return on_name(dir, path, create_folder);
}

int windows_mkdir(const char *path, int mode)
{
    return windows_mkdirat(WINDOWS_HERE, path, mode);
}

int windows_rmdir(const char *path)
{
    return windows_unlinkat(WINDOWS_HERE, path, WINDOWS_REMOVE_FOLDER);
}

int windows_access(const char *path, int mode)
{
    (void)mode;
    return on_name(WINDOWS_HERE, path, has_attributes);
}

/* Targets of links are not read: what follows no link refuses the file. */
ssize_t windows_readlinkat(int dir, const char *path, char *out, size_t size)
{
    (void)dir, (void)path, (void)out, (void)size;
    errno = EINVAL;
    return -1;
}

ssize_t windows_readlink(const char *path, char *out, size_t size)
{
    static const char self[] = "/proc/self/exe";
    enum { UNITS = 32768 };
    if (strcmp(path, self) != 0)
        return windows_readlinkat(WINDOWS_HERE, path, out, size);
    wchar_t *wide = malloc(UNITS * sizeof *wide);
    char *text = wide && GetModuleFileNameW(NULL, wide, UNITS) ? plain_path(wide) : NULL;
    size_t len = text ? strlen(text) : 0;
    len = len < size ? len : size;
    if (text)
        memcpy(out, text, len);
    free(text);
    free(wide);
    return len ? (ssize_t)len : -1;
}
