/* fuzz_hub.c - fuzzes the hub's list of the files of a repository: the main file is at the top of
 * the repository, at a commit or at the revision of the user. */
#include <ctype.h>
#include <string.h>

#include <heft/companion.h>

#include "fuzz.h"
#include "port/remote/session.h"

static bool is_commit(const char *revision, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isxdigit((unsigned char)revision[i]))
            return false;
    return len == 40;
}

static void require_valid(const char *address, const char *base, const char *revision)
{
    size_t len = strlen(base);
    fuzz_require(!strncmp(address, base, len) && address[len] == '@');
    const char *found = address + len + 1, *slash = strchr(found, '/');
    fuzz_require(slash && slash[1] && !strchr(slash + 1, '/'));
    size_t n = (size_t)(slash - found);
    bool is_users = n == strlen(revision) && !strncmp(found, revision, n);
    fuzz_require(is_users || is_commit(found, n));
}

static heft_status find_main_file(char *out, const char *url, heft_str text, heft_error *err)
{
    heft_folder_choice choice;
    heft_folder_listing names;
    heft_settings *answer = NULL;
    heft_status st = heft_settings_parse_json(&answer, text, NULL, err);
    if (st)
        return st;
    heft_hub_list_folder(&names, answer, "");
    st = heft_folder_choose(&choice, &names, NULL, err);
    if (!st)
        st = heft_hub_address(out, url, answer, "", choice.main, err);
    heft_folder_listing_free(&names);
    heft_settings_close(answer);
    return st;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    static const struct {
        const char *url, *base, *revision;
    } cases[] = {
        { "hf://owner/name", "hf://owner/name", "main" },
        { "hf://datasets/owner/name/", "hf://datasets/owner/name", "main" },
        { "hf://owner/name@v1", "hf://owner/name", "v1" },
        { "hf://owner/name@v1/", "hf://owner/name", "v1" },
    };
    static char address[HEFT_URL_MAX];
    heft_address target;
    heft_str list = { (const char *)data, size };
    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heft_error err = fuzz_no_error();
        heft_status st = find_main_file(address, cases[i].url, list, &err);
        if (st) {
            fuzz_require_error(st, &err);
            continue;
        }
        require_valid(address, cases[i].base, cases[i].revision);
        fuzz_require(!heft_address_of(&target, address, &err) && !target.is_repository);
    }
}

const fuzz_target fuzz_this = { .run = run };
