/* test_folder_choice.c - the files of a model, chosen from the names in a folder. */
#include "heft_test.h"
#include "models.h"

#include "folder/folder_choice.h"

#define S                   ".safetensors"
#define ZERO                "zero_pp_rank_"
#define PIECE(rank, number) "shard-" rank "-model-" number S

typedef struct row {
    const char *names;  /* separated by spaces */
    const char *result; /* the main file and the others: + a shard, ! left out, ~ another form */
    heft_status status; /* the status if it fails; `result` has words of the message */
} row;

static void add_names(heft_folder_listing *l, const char *names)
{
    char name[128];
    for (const char *p = names; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)len, p);
        heft_folder_listing_add(l, name);
        p += len;
    }
}

static void print_choice(char out[1000], const heft_folder_choice *c)
{
    static const char marks[] = { '+', '!', '~' };
    int at = snprintf(out, 1000, "%s", c->main);
    for (uint32_t i = 0; i < c->folder.count; i++)
        at += snprintf(out + at, 1000 - (size_t)at, " %c%s", marks[c->folder.files[i].role],
                       c->folder.files[i].name);
}

/* Choose with each allocation failing in turn, and then with enough memory. */
static void assert_choice(const row *r, const char *named)
{
    heft_status st = HEFT_E_NOMEM;
    for (uint32_t at = 1; st == HEFT_E_NOMEM; at++) {
        char text[1000];
        heft_error err;
        heft_test_memory m;
        heft_folder_choice c;
        heft_folder_listing l;
        heft_test_memory_init(&m, at);
        heft_folder_listing_init(&l, m.host.allocator);
        add_names(&l, r->names);
        st = heft_folder_choose(&c, &l, named, &err);
        if (st == r->status && st) {
            heft_assert_fails(st, r->status, &err, r->result);
        } else if (st != HEFT_E_NOMEM) {
            heft_assert_ok(st, &err);
            print_choice(text, &c);
            assert_string_equal(text, r->result);
        }
        heft_folder_listing_free(&l);
        heft_assert_all_freed(&m);
    }
}

static void the_best_name_is_chosen_and_the_others_are_reported(void **state)
{
    static const row rows[] = {
        { "README.md config.json model" S, "model" S, HEFT_OK },
        { "model" S " model" S, "model" S, HEFT_OK },
        { "b" S " model" S, "model" S " !b" S, HEFT_OK },
        { "model" S " model.fp16" S " pytorch_model.bin m.gguf", /**/
          "model" S " ~m.gguf ~model.fp16" S " ~pytorch_model.bin", HEFT_OK },
        { "model" S " adapter_model" S, "model" S " ~adapter_model" S, HEFT_OK },
        { "adapter_model" S " other" S, "adapter_model" S " !other" S, HEFT_OK },
        { "consolidated.pth consolidated.00.pth", "consolidated.pth !consolidated.00.pth",
          HEFT_OK },
        { "m.zt m-1.zt m-2.zt", "m.zt !m-1.zt !m-2.zt", HEFT_OK },
        { "m.zt m-a.zt", "'m-a.zt' and 'm.zt': name one of them", HEFT_E_IO },
        { "m-1.zt m-2.zt", "'m-1.zt' and 'm-2.zt': name one of them", HEFT_E_IO },
        { "a.gguf b.gguf c.gguf d.gguf", "4 weight files, among them 'a.gguf'", HEFT_E_IO },
        { ".hidden" S, "no weight file", HEFT_E_IO },
        { "", "no weight file", HEFT_E_IO },
        { "model.tflite", "'model.tflite' is a file of TensorFlow Lite", HEFT_E_UNSUPPORTED },
        { "model.onnx", "model.onnx", HEFT_OK },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_choice(&rows[i], NULL);
}

static void numbered_shards_are_one_model(void **state)
{
    static const row rows[] = {
        { "m-00002-of-00002" S " m-00001-of-00002" S, "m-00001-of-00002" S " +m-00002-of-00002" S,
          HEFT_OK },
        { "m-0-of-3.gguf", "m-0-of-3.gguf +m-1-of-3.gguf +m-2-of-3.gguf", HEFT_OK },
        { "m-1-of-2.npz", "m-1-of-2.npz +m-2-of-2.npz", HEFT_OK },
        { "m-09-of-10.pt m-01-of-10.pt", /**/
          "m-01-of-10.pt +m-02-of-10.pt +m-03-of-10.pt +m-04-of-10.pt +m-05-of-10.pt "
          "+m-06-of-10.pt +m-07-of-10.pt +m-08-of-10.pt +m-09-of-10.pt +m-10-of-10.pt",
          HEFT_OK },
        { "m-2-of-2.pt",
          "1 of 2 numbered shards, and neither an index nor the first shard "
          "'m-1-of-2.pt'",
          HEFT_E_IO },
        { "m-0-of-2.pt m-2-of-2.pt", "which are not shards of one set", HEFT_E_IO },
        { "m-1-of-2.pt m-01-of-2.pt", "which are not shards of one set", HEFT_E_IO },
        { "m-1-of-4097.pt", "one of 4097 shards, more than 4096", HEFT_E_LIMIT },
        { "m-1-of-1.pt", "m-1-of-1.pt", HEFT_OK },
        { "m-3-of-2.pt", "m-3-of-2.pt", HEFT_OK },
        /* an index comes first, and its shards are not named again */
        { "model-1-of-2" S " model-2-of-2" S " model" S ".index.json",
          "model" S ".index.json !model-1-of-2" S " !model-2-of-2" S, HEFT_OK },
        { "pytorch_model-1-of-1.bin pytorch_model-1-of-2.bin pytorch_model.bin.index.json model" S,
          "model" S " ~pytorch_model-1-of-1.bin ~pytorch_model.bin.index.json", HEFT_OK },
        { "model-1-of-2" S " adapter_model" S,
          "model-1-of-2" S " +model-2-of-2" S " ~adapter_model" S, HEFT_OK },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_choice(&rows[i], NULL);
}

/* With a time that grows with the square of the number this test takes minutes. */
static void many_files_take_little_time(void **state)
{
    enum { MANY = 200000 };
    (void)state;
    heft_error err;
    heft_folder_choice c;
    heft_folder_listing l;
    heft_folder_listing_init(&l, heft_host_default()->allocator);
    heft_folder_listing_add(&l, "model" S);
    for (int i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, i % 2 ? "x%d-1-of-2" S : "x%d" S ".index.json", i);
        heft_folder_listing_add(&l, name);
    }
    heft_assert_ok(heft_folder_choose(&c, &l, NULL, &err), &err);
    assert_string_equal(c.main, "model" S);
    assert_int_equal(c.folder.count, MANY);
    heft_folder_listing_free(&l);
}

static void other_files_of_a_named_index(void **state)
{
    static const row rows[] = {
        { "model" S ".index.json x" S " pytorch_model.bin", "model" S ".index.json !x" S, HEFT_OK },
        { "", "model" S ".index.json", HEFT_OK },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_choice(&rows[i], "model" S ".index.json");
}

static void checkpoints_in_pieces(void **state)
{
    static const row rows[] = {
        { ".metadata __0_0.distcp", ".metadata", HEFT_OK },
        { "__0_0.distcp common.pt .metadata metadata.json", ".metadata", HEFT_OK },
        { ".metadata model" S, "model" S, HEFT_OK },
        { "model" S " .metadata __0_0.distcp", "model" S " ~.metadata !__0_0.distcp", HEFT_OK },
        { "__1_0.distcp __0_0.distcp common.pt", "'__0_0.distcp', but not its index",
          HEFT_E_UNSUPPORTED },
        { "b.tflite a.tflite", "'a.tflite' is a file of TensorFlow Lite", HEFT_E_UNSUPPORTED },
        { "pytorch_model_fsdp_0/ a.txt", "'pytorch_model_fsdp_0': open that folder",
          HEFT_E_UNSUPPORTED },
        { "model_world_size_2_rank_1.pt model_world_size_2_rank_0.pt "
          "optim_world_size_2_rank_0.pt extra_state_world_size_2_rank_0.pt",
          "model_world_size_2_rank_0.pt +model_world_size_2_rank_1.pt", HEFT_OK },
        { "metadata.json common.pt", "'common.pt' has pieces", HEFT_E_UNSUPPORTED },
        { "common.pt", "common.pt", HEFT_OK },
        { "mp_rank_01/ mp_rank_00/ a.txt", "'mp_rank_00' has the part", HEFT_E_UNSUPPORTED },
        { "iter_0000500/ iter_0000400/", "'iter_0000400' has pieces", HEFT_E_UNSUPPORTED },
        { ZERO "0_mp_rank_00_optim_states.pt " ZERO "1_mp_rank_00_optim_states.pt bf16_" ZERO
               "0_mp_rank_00_optim_states.pt expp_rank_0_mp_rank_00_optim_states.pt "
               "mp_rank_00_model_states.pt",
          "mp_rank_00_model_states.pt", HEFT_OK },
        { ZERO "1_mp_rank_00_model_states.pt " ZERO "0_mp_rank_00_model_states.pt " ZERO
               "0_mp_rank_00_optim_states.pt",
          "files *_model_states.pt of 2 ranks, and files *_optim_states.pt of 1", HEFT_E_IO },
        { ZERO "0_mp_rank_00_model_states.pt",
          "'" ZERO "0_mp_rank_00_model_states.pt' of DeepSpeed ZeRO-3", HEFT_E_UNSUPPORTED },
        { ZERO "10_mp_rank_00_optim_states.pt " ZERO "0_mp_rank_00_model_states.pt bf16_" ZERO
               "0_mp_rank_00_optim_states.pt",
          "but no such file of rank 1", HEFT_E_IO },
        { ZERO "1_mp_rank_00_optim_states.pt " ZERO "1_mp_rank_00_model_states.pt " ZERO
               "0_mp_rank_00_model_states.pt " ZERO "0_mp_rank_00_optim_states.pt " ZERO
               "0_mp_rank_00_optim_states.pt zero_to_fp32.py",
          ZERO "0_mp_rank_00_model_states.pt +" ZERO "1_mp_rank_00_model_states.pt +" ZERO
               "0_mp_rank_00_optim_states.pt +" ZERO "1_mp_rank_00_optim_states.pt",
          HEFT_OK },
        { ZERO "0_mp_rank_01_optim_states.pt " ZERO "0_mp_rank_00_model_states.pt " ZERO
               "0_mp_rank_00_optim_states.pt",
          "tensor or pipeline parallelism: files such as '" ZERO "0_mp_rank_01",
          HEFT_E_UNSUPPORTED },
        { "mp_rank_00_model_states.pt bf16_" ZERO "1_mp_rank_00_optim_states.pt bf16_" ZERO
          "0_mp_rank_00_optim_states.pt",
          "mp_rank_00_model_states.pt +bf16_" ZERO "0_mp_rank_00_optim_states.pt +bf16_" ZERO
          "1_mp_rank_00_optim_states.pt",
          HEFT_OK },
        { "mp_rank_00_model_states.pt mp_rank_01_model_states.pt", "'mp_rank_01_model_states.pt'",
          HEFT_E_UNSUPPORTED },
        { "layer_01-model_00-model_states.pt mp_rank_00_model_states.pt", "pipeline parallelism",
          HEFT_E_UNSUPPORTED },
        { "model" S " mp_rank_00_model_states.pt mp_rank_01_model_states.pt global_step5/",
          "model" S " ~mp_rank_00_model_states.pt", HEFT_OK },
        { "mp_rank_00_model_states.pt zero/", "universal checkpoint", HEFT_E_UNSUPPORTED },
        { "zero/ zero/w/fp32.pt", "'mp_rank_00_model_states.pt' with the shapes",
          HEFT_E_UNSUPPORTED },
        { "mp_rank_00_model_states.pt zero/ zero/w/fp32.pt zero/b/fp32.pt zero/w/exp_avg.pt "
          "zero/optimizer_state.pt mp_rank_01_model_states.pt zero/b/fp32.pt",
          "mp_rank_00_model_states.pt +zero/b/fp32.pt +zero/w/fp32.pt", HEFT_OK },
        { "zero/ zero/w/fp32.pt " ZERO "1_mp_rank_00_model_states.pt " ZERO
          "0_mp_rank_00_model_states.pt " ZERO "0_mp_rank_01_model_states.pt",
          ZERO "0_mp_rank_00_model_states.pt +zero/w/fp32.pt +" ZERO "1_mp_rank_00_model_states.pt",
          HEFT_OK },
        { "mp_rank_00_model_states.pt zero/ zero/w/fp32.pt zero/b/",
          "'zero/b/' does not have the file fp32.pt", HEFT_E_IO },
        { "model" S " mp_rank_00_model_states.pt zero/ zero/w/fp32.pt",
          "model" S " ~mp_rank_00_model_states.pt", HEFT_OK },
        { "model" S " zero/", "model" S, HEFT_OK },
        { "latest zero_to_fp32.py global_step500/", "'global_step500': open that folder",
          HEFT_E_UNSUPPORTED },
        { "model" S " mp_rank_00/ __0_0.distcp common.pt", "model" S " !__0_0.distcp !mp_rank_00",
          HEFT_OK },
        { PIECE("2", "1-of-1") " " PIECE("1", "1-of-1"),
          PIECE("1", "1-of-1") " +" PIECE("2", "1-of-1"), HEFT_OK },
        { PIECE("10", "1-of-1") " " PIECE("1", "1-of-1"), "no file of rank 2", HEFT_E_IO },
        { PIECE("1", "2-of-2") " " PIECE("2", "1-of-2") " " PIECE("2", "2-of-2") " " PIECE(
              "1", "1-of-2"),
          PIECE("1", "1-of-2") " +" PIECE("1", "2-of-2") " +" PIECE("2", "1-of-2") " +" PIECE(
              "2", "2-of-2"),
          HEFT_OK },
        { PIECE("1", "1-of-2") " " PIECE("2", "1-of-2"), "rank 1 that is number 2 of 2",
          HEFT_E_IO },
        { PIECE("1", "1-of-2") " " PIECE("1", "2-of-2") " " PIECE("2", "2-of-2"),
          "rank 2 that is number 1 of 2", HEFT_E_IO },
        { PIECE("1", "1-of-2") " " PIECE("1", "2-of-2") " " PIECE("2", "1-of-2"),
          "rank 2 that is number 2 of 2", HEFT_E_IO },
        { PIECE("1", "1-of-2") " " PIECE("1", "2-of-2") " " PIECE("2", "1-of-1"),
          "not pieces of one checkpoint", HEFT_E_IO },
        { PIECE("1", "1-of-1") " " PIECE("01", "1-of-1"), "no file of rank 2", HEFT_E_IO },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_choice(&rows[i], NULL);
}

static void modules_have_folders(void **state)
{
    static const row rows[] = {
        { "modules.json model" S " 2_D/ 2_D/model" S " 2_D/x" S " 3_N/c.json 2_D/a/b" S,
          "model" S " !2_D/model" S, HEFT_OK },
        { "modules.json 0_T/pytorch_model.bin", "'0_T/pytorch_model.bin': name", HEFT_E_IO },
        { "model" S " 2_D/model" S, "model" S, HEFT_OK },
        { "modules.json model" S " D/model" S " _D/model" S, "model" S, HEFT_OK },
        /* the routes of a router */
        { "modules.json model" S " query_0_T/ query_0_T/model" S, "model" S " !query_0_T/model" S,
          HEFT_OK },
        { "modules.json model" S " run_0_t/model" S " v_1/model" S " a_0T/model" S, "model" S,
          HEFT_OK },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_choice(&rows[i], NULL);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void numbers_of_names(void **state)
{
    static const struct {
        const char *name, *head, *of;
        uint32_t number, count;
    } rows[] = {
        { "model-00001-of-00003" S, "model-", "-of-00003" S, 1, 3 },
        { "a_7_of_9.pt", "a_", "_of_9.pt", 7, 9 },
        { "a.0-of-1", "a.", "-of-1", 0, 1 },
        { "00001-of-00002.npz", "", "-of-00002.npz", 1, 2 },
        { "a-1-of-2-of-3.pt", "a-1-of-", "-of-3.pt", 2, 3 },
        { "a-000000001-of-999999999.pt", "a-", "-of-999999999.pt", 1, 999999999 },
        { "a-1-of-2.fp16.bin", "a-", "-of-2.fp16.bin", 1, 2 },
        { "a-0000000001-of-2.pt", NULL, NULL, 0, 0 },
        { "a-1-of-0000000002.pt", NULL, NULL, 0, 0 },
        { "a1-of-2.pt", NULL, NULL, 0, 0 },
        { "a-1-of-2x.pt", NULL, NULL, 0, 0 },
        { "a-1_of-2.pt", NULL, NULL, 0, 0 },
        { "a-x-of-2.pt", NULL, NULL, 0, 0 },
        { "a-1-of-", NULL, NULL, 0, 0 },
        { "-of-2", NULL, NULL, 0, 0 },
        { "", NULL, NULL, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_numbered_name n;
        bool is = heft_numbered_name_read(&n, heft_str_from(rows[i].name));
        assert_int_equal(is, rows[i].head != NULL);
        if (!is)
            continue;
        assert_int_equal(n.head.len, strlen(rows[i].head));
        assert_int_equal(n.of.len, strlen(rows[i].of));
        assert_memory_equal(n.of.ptr, rows[i].of, n.of.len);
        assert_int_equal(n.number, rows[i].number);
        assert_int_equal(n.count, rows[i].count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_name_is_chosen_and_the_others_are_reported),
        cmocka_unit_test(numbered_shards_are_one_model),
        cmocka_unit_test(many_files_take_little_time),
        cmocka_unit_test(other_files_of_a_named_index),
        cmocka_unit_test(checkpoints_in_pieces),
        cmocka_unit_test(modules_have_folders),
        cmocka_unit_test(numbers_of_names),
    };
    return cmocka_run_group_tests_name("folder_choice", tests, NULL, NULL);
}
