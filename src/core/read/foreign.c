/* foreign.c - recognises files of other programs by their first or last bytes. */
#include "core/read/input_window.h"

#include "base/text.h"

enum { FROM_END = -1 };

static const char download[] = "download the file again",
                  log_in[] = "log in to the hub, accept the terms of the model, and download the "
                             "file again",
                  unpack[] = "unpack it first", decrypt[] = "decrypt it first",
                  to_onnx[] = "tf2onnx writes it as ONNX, which Heft reads",
                  resave[] = "save the tensors as safetensors in the program that wrote them",
                  name_weights[] = "name the file of weights";

enum {
    HTML,
    XML,
    REFUSAL,
    LFS,
    JSON_ERROR,
    GZIP,
    ZSTD,
    XZ,
    BZIP2,
    LZ4,
    SEVEN_ZIP,
    RAR,
    TAR,
    ZIP,
    AGE,
    PGP,
    OPENSSL,
    HDF5,
    TENSORFLOW,
    TFLITE,
    OPENVINO,
    ONNX,
    OLD_GGML,
    ARROW,
    PARQUET,
    ELF,
    PDF,
    IMAGE,
    PICKLE,
    JSON,
};

static const heft_foreign_kind kinds[] = {
    [HTML] = { "html-page", "an HTML page that a server sent instead of the weights", download },
    [XML] = { "xml-document", "an XML document, perhaps the error message of a server", download },
    [REFUSAL] = { "server-message", "the error message of a server, not the weights", log_in },
    [LFS] = { "git-lfs-pointer", "a Git LFS pointer", "fetch the file itself with 'git lfs pull'" },
    [JSON_ERROR] = { "json-error", "an error message of a server in JSON, not the weights",
                     log_in },
    [GZIP] = { "gzip", "compressed with gzip", unpack },
    [ZSTD] = { "zstd", "compressed with zstd", unpack },
    [XZ] = { "xz", "compressed with xz", unpack },
    [BZIP2] = { "bzip2", "compressed with bzip2", unpack },
    [LZ4] = { "lz4", "compressed with lz4", unpack },
    [SEVEN_ZIP] = { "7z", "a 7-Zip archive", unpack },
    [RAR] = { "rar", "a RAR archive", unpack },
    [TAR] = { "tar", "a tar archive", unpack },
    [ZIP] = { "zip", "a zip archive of a kind that this build does not read",
              "unpack it if it contains a file of weights" },
    [AGE] = { "encrypted", "encrypted with age", decrypt },
    [PGP] = { "encrypted", "encrypted with OpenPGP", decrypt },
    [OPENSSL] = { "encrypted", "encrypted with OpenSSL", decrypt },
    [HDF5] = { "hdf5", "in HDF5, which this build does not read",
               "save the tensors as .npz or safetensors in Keras or h5py" },
    [TENSORFLOW] = { "tensorflow-checkpoint",
                     "the index of a TensorFlow checkpoint, which this build does not read",
                     to_onnx },
    [TFLITE] = { "tflite", "a TensorFlow Lite model, which this build does not read", to_onnx },
    [OPENVINO] = { "openvino", "the graph of an OpenVINO model, whose weights lie in a .bin file",
                   resave },
    [ONNX] = { "onnx", "an ONNX model, which this build does not read", resave },
    [OLD_GGML] = { "old-ggml", "in a GGML format older than GGUF",
                   "convert it to GGUF with a release of llama.cpp from 2023" },
    [ARROW] = { "arrow", "an Arrow file, which this build does not read", resave },
    [PARQUET] = { "parquet", "a Parquet file, which this build does not read", resave },
    [ELF] = { "elf", "an ELF executable", name_weights },
    [PDF] = { "pdf", "a PDF document", name_weights },
    [IMAGE] = { "image", "a picture", name_weights },
    [PICKLE] = { "pickle", "a plain Python pickle, not written by torch.save()", resave },
    [JSON] = { "json", "a JSON text without tensors",
               "open the folder of the model, or the index that lists its shards" },
};

/* Texts match without regard to white space and to the case of letters. */
static const struct {
    const char *text;
    uint8_t kind; /* index of kinds */
} texts[] = {
    { "<!doctype", HTML },
    { "<html", HTML },
    { "<?xml version=\"1.0\"?> <net ", OPENVINO },
    { "<net ", OPENVINO },
    { "<?xml", XML },
    { "version https://git-lfs.github.com/spec/", LFS },
    { "{\"error", JSON_ERROR },
    { "{\"message\":", JSON_ERROR },
    { "{\"detail\":", JSON_ERROR },
    { "Invalid username or password", REFUSAL },
    { "Invalid credentials", REFUSAL },
    { "Access to model", REFUSAL },
    { "Access denied", REFUSAL },
    { "Repository not found", REFUSAL },
    { "Entry not found", REFUSAL },
    { "Not found", REFUSAL },
    { "404", REFUSAL },
    { "Forbidden", REFUSAL },
    { "Unauthorized", REFUSAL },
    { "Too many requests", REFUSAL },
    { "-----BEGIN PGP MESSAGE", PGP },
    { "-----BEGIN AGE ENCRYPTED FILE", AGE },
    { "age-encryption.org/", AGE },
    { "{", JSON },
};

static const struct {
    const char *bytes;
    uint8_t len;
    int16_t at;   /* offset, or FROM_END */
    uint8_t kind; /* index of kinds */
} magics[] = {
    { "\x1f\x8b", 2, 0, GZIP },
    { "\x28\xb5\x2f\xfd", 4, 0, ZSTD },
    { "\xfd\x37zXZ", 5, 0, XZ },
    { "BZh", 3, 0, BZIP2 },
    { "\x04\x22\x4d\x18", 4, 0, LZ4 },
    { "\x02\x21\x4c\x18", 4, 0, LZ4 },
    { "7z\xbc\xaf\x27\x1c", 6, 0, SEVEN_ZIP },
    { "Rar!\x1a\x07", 6, 0, RAR },
    { "ustar", 5, 257, TAR },
    { "PK\x03\x04", 4, 0, ZIP },
    { "Salted__", 8, 0, OPENSSL },
    { "\x89HDF", 4, 0, HDF5 },
    { "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8, FROM_END, TENSORFLOW },
    { "TFL3", 4, 4, TFLITE },
    { "lmgg", 4, 0, OLD_GGML },
    { "fmgg", 4, 0, OLD_GGML },
    { "tjgg", 4, 0, OLD_GGML },
    { "algg", 4, 0, OLD_GGML },
    { "ARROW1\0\0", 8, 0, ARROW },
    { "PAR1", 4, 0, PARQUET },
    { "\x7f\x45LF", 4, 0, ELF },
    { "%PDF-", 5, 0, PDF },
    { "\x89PNG\r\n\x1a\n", 8, 0, IMAGE },
    { "\xff\xd8\xff", 3, 0, IMAGE },
    { "\x80\x02", 2, 0, PICKLE },
    { "\x80\x03", 2, 0, PICKLE },
    { "\x80\x04", 2, 0, PICKLE },
    { "\x80\x05", 2, 0, PICKLE },
};

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static bool begins_with_text(const uint8_t *p, size_t len, const char *text)
{
    const uint8_t *end = p + len;
    for (; *text; text++) {
        if (*text == ' ')
            continue;
        while (p < end && is_space(*p))
            p++;
        if (p == end || lower(*p++) != lower((uint8_t)*text))
            return false;
    }
    return true;
}

/* An ONNX model is a protobuf message: field 1 is the IR version, and field 2 (the producer),
 * 7 (the graph) or 8 (the operator sets) follows. */
static bool is_onnx(const uint8_t *head, size_t len)
{
    enum { IR_VERSION = 0x08, PRODUCER = 0x12, GRAPH = 0x3a, OPERATORS = 0x42, NEWEST = 32 };
    return len >= 4 && head[0] == IR_VERSION && head[1] && head[1] <= NEWEST &&
           (head[2] == PRODUCER || head[2] == GRAPH || head[2] == OPERATORS);
}

static const heft_foreign_kind *find_magic(const uint8_t *head, size_t head_len,
                                           const uint8_t *tail, size_t tail_len)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        bool from_end = magics[i].at == FROM_END;
        size_t len = magics[i].len, at = from_end ? 0 : (size_t)magics[i].at;
        bool fits = from_end ? len <= tail_len : at + len <= head_len;
        if (fits && !memcmp(from_end ? tail + tail_len - len : head + at, magics[i].bytes, len))
            return &kinds[magics[i].kind];
    }
    return is_onnx(head, head_len) ? &kinds[ONNX] : NULL;
}

const heft_foreign_kind *heft_foreign_find(const uint8_t *head, size_t head_len,
                                           const uint8_t *tail, size_t tail_len)
{
    enum { BYTE_ORDER_MARK = 3 };
    const heft_foreign_kind *kind = find_magic(head, head_len, tail, tail_len);
    if (kind)
        return kind;
    if (head_len >= BYTE_ORDER_MARK && !memcmp(head, "\xef\xbb\xbf", BYTE_ORDER_MARK)) {
        head += BYTE_ORDER_MARK;
        head_len -= BYTE_ORDER_MARK;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (begins_with_text(head, head_len, texts[i].text))
            return &kinds[texts[i].kind];
    return NULL;
}
