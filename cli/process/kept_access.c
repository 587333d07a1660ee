#include "process/kept_access.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The descriptors are the process's: noted before there is a command. */
static struct {
    int fd[INHERITED_MAX];
    size_t n;
} inherited;

void kept_access_add(kept_access *k, const struct stat *of)
{
    mode_t mode = of->st_mode & 07777;
    size_t i = 0;
    while (i < k->n &&
           !(k->of[i].mode == mode && k->of[i].uid == of->st_uid && k->of[i].gid == of->st_gid))
        i++;
    if (i < k->n || k->n == KEPT_MAX)
        return;
    k->of[i].mode = mode;
    k->of[i].uid = of->st_uid;
    k->of[i].gid = of->st_gid;
    k->n++;
}

void kept_access_add_folder(kept_access *k, const char *folder, const char *prefix)
{
    DIR *dir = opendir(folder);
    struct stat info;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if (!strncmp(e->d_name, prefix, strlen(prefix)) &&
            !fstatat(dirfd(dir), e->d_name, &info, 0) && S_ISREG(info.st_mode))
            kept_access_add(k, &info);
    if (dir)
        closedir(dir);
}

static void note(int fd)
{
    if (inherited.n < INHERITED_MAX)
        inherited.fd[inherited.n++] = fd;
}

/* Without /proc, look at the first descriptors only. */
void inherited_note(void)
{
    enum { FIRST = 64 };
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir))
            note(atoi(e->d_name));
    for (int fd = 0; !dir && fd < FIRST; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            note(fd);
    if (dir)
        closedir(dir);
}

int inherited_descriptor(size_t i)
{
    return i < inherited.n ? inherited.fd[i] : -1;
}
