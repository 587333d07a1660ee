"""made_tokenizers.py - small tokenizers with the definitions of published ones, for tests.

A vocabulary is trained on the text below; the steps that split a text are those of the published
tokenizer.json files."""
import base64
import collections
import json
import random
import re
import struct


SUFFIXES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def cased(end):
    head = r"[^\r\n\p{L}\p{N}]?"
    return f"{head}{UPPER}*{LOWER}+{end}|{head}{UPPER}+{LOWER}*{end}"


LETTERS = "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ"
# Name in llama.cpp: expressions that split, whether digits are split, ignore_merges.
STEPS = {
    "gpt-2": ([], False, False),
    "smollm": ([], True, False),
    "llama-bpe": ([f"{SUFFIXES}|{WORD}|\\p{{N}}{{1,3}}{REST}"], False, True),
    "dbrx": ([f"{SUFFIXES}|{WORD}|\\p{{N}}{{1,3}}{REST}"], False, False),
    "qwen2": ([f"{SUFFIXES}|{WORD}|\\p{{N}}{REST}"], False, False),
    "qwen35": ([SUFFIXES + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
                + SPACES], False, False),
    "gpt-4o": ([cased(SUFFIXES + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES], False,
               False),
    "tekken": ([cased("") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES], False, True),
    "deepseek-v3": ([r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                     r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
                     "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
                     "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"], False, False),
    "deepseek-llm": (["[\r\n]", f"\\s?[{LETTERS}]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$",
                      "[一-龥ࠀ-一가-퟿]+"], True, False),
    "deepseek-coder": (["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+"], True, False),
    "seed-coder": ([SUFFIXES + "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+"
                    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"], False, False),
}
CASED_END = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
POSSESSIVE = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|%s| ?[^\s\p{L}\p{N}]++[\r\n]*" \
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
SPARK = STEPS["deepseek-v3"][0][2].replace("[\r\n]*|\\s*[\r\n]+|", "|[\r\n]|")


def kimi():
    """Return the expression of Kimi K2: letters of Chinese apart from others."""
    upper, lower = (s[:-1] + r"&&[^\p{Han}]]" for s in (UPPER, LOWER))
    head = r"[^\r\n\p{L}\p{N}]?"
    return (rf"[\p{{Han}}]+|{head}{upper}*{lower}+{SUFFIXES}?|{head}{upper}+{lower}*{SUFFIXES}?"
            r"|\p{N}{1,3}" + REST)


# Other names in llama.cpp: expressions and kinds of steps, ignore_merges.
MORE_STEPS = {
    "llama-bpe, possessive": ([POSSESSIVE % r"\p{N}{1,3}"], True),
    "dbrx, possessive": ([POSSESSIVE % r"\p{N}{1,3}"], False),
    "bailingmoe": ([POSSESSIVE % r"\p{N}"], False),
    "granite-embed-multi-97m": ([cased(SUFFIXES + "?") + r"|\p{N}{1,3}" + CASED_END], True),
    "tiny_aya": ([r"\d{1,3}(?=(?:\d{3})*\b)",
                  cased(SUFFIXES + "?") + r"|\p{N}{1,3}" + CASED_END], False),
    "youtu": (["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
               cased(SUFFIXES + "?") + r"|\p{N}" + CASED_END], True),
    "kimi-k2": ([kimi()], False),
    "minicpm5": ([r"\p{N}{1,3}", f"{SUFFIXES}|{WORD}|\\p{{N}}+{REST}"], True),
    "ufakzeka": ([f"{WORD}|\\p{{N}}{REST}"], False),
    "laguna": ([r"[^\n]+|[\n]+", f"{SUFFIXES}|{WORD}|\\p{{N}}{REST}"], False),
    "exaone-moe": ([SUFFIXES + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
                    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"], False),
    "jais-2": ([f"{SUFFIXES}|{WORD}|\\p{{N}}{{1,3}}" r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
                + "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4, "1,2"))
                + r"|\s{1}"], False),
    "superbpe": ([r"\p{N}+", r"(?=(\d{3})+(?!\d))"], False),
    "spark2_5": ([r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", SPARK, r"\p{N}"], False),
    "bloom": ([BLOOM], False),
    "viking": ([BLOOM, "Digits"], False),
    "falcon": (["Punctuation Contiguous", "ByteLevel", "Digits together", "[0-9][0-9][0-9]"],
               False),
    "chameleon": (["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\t\n]|    |  )",
                   "Digits", "Punctuation Isolated", "ByteLevel"], False),
}
CORPUS = """The quick brown fox jumps over the lazy dog. It's what we've said: they'll see that I'm
here, aren't you? In 1984 there were 1,234,567 people; in 2024 there are 12345678. for (int i = 0;
i < 10; i++) { printf("%d\\n", i); } Über allen Gipfeln ist Ruh, naïve café. Привет, мир! Съешь ещё
этих мягких булок. 你好，世界。今天天气很好。こんにちは世界。 가나다라 안녕하세요. नमस्ते दुनिया
مرحبا بالعالم x = y + z / w; https://example.org/path?q=1&r=2 HelloWorld camelCase SCREAMING_CASE"""


def byte_letters():
    """Return the letter for each byte of byte-level tokens."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {b: chr(b if b in plain else 256 + rest.index(b)) for b in range(256)}


def train(words, base, count):
    """Return merges of the most frequent pairs, as byte-pair encoding learns them."""
    words = collections.Counter(words)
    split, merges, known = {w: list(w) for w in words}, [], set(base)
    while len(merges) < count:
        pairs = collections.Counter()
        for word, parts in split.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += words[word]
        pairs = {p: n for p, n in pairs.items() if "".join(p) not in known}
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        known.add("".join(best))
        for word, parts in split.items():
            at = 0
            while at + 1 < len(parts):
                if (parts[at], parts[at + 1]) == best:
                    parts[at:at + 2] = ["".join(best)]
                at += 1
    return merges


def byte_level(name, merges_as_lists=False, special=("<|endoftext|>", "<|im_start|>"), count=300):
    """Return a tokenizer.json of byte-level tokens."""
    letters = byte_letters()
    words = ["".join(letters[b] for b in w.encode()) for w in
             re.findall(r"\s?\S+|\s+", CORPUS)]
    merges = train(words, letters.values(), count)
    if name == "deepseek-llm":  # llama.cpp relies on a vocabulary without numbers of two digits
        merges = [m for m in merges if not re.search(r"\d\d", "".join(m))]
    if name == "falcon":  # ... and without a space before a digit
        merges = [m for m in merges if not re.search(r"Ġ\d", "".join(m))]
    tokens = [*letters.values(), *("".join(m) for m in merges)]
    if name in MORE_STEPS:
        expressions, ignore = MORE_STEPS[name]
        steps = [named_step(e) for e in expressions]
        steps += [] if "ByteLevel" in expressions else [byte_step(False)]
    else:
        steps, ignore = steps_of(name)
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(len(tokens) + i, t) for i, t in enumerate(special)],
        "normalizer": None,
        "pre_tokenizer": steps[0] if len(steps) == 1 else {"type": "Sequence",
                                                           "pretokenizers": steps},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
                           "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                    "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore,
                  "vocab": {t: i for i, t in enumerate(tokens)},
                  "merges": [list(m) if merges_as_lists else " ".join(m) for m in merges]},
    }


def byte_step(splits):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
            "use_regex": splits}


def named_step(text):
    word, _, how = text.partition(" ")
    if word == "Digits":
        return {"type": "Digits", "individual_digits": not how}
    if word == "Punctuation":
        return {"type": "Punctuation", "behavior": how}
    if word == "ByteLevel":
        return byte_step(True)
    return {"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated", "invert": False}


def steps_of(name):
    expressions, digits, ignore = STEPS[name]
    steps = [{"type": "Split", "pattern": {"Regex": e}, "behavior": "Isolated", "invert": False}
             for e in expressions]
    if digits:
        steps.append({"type": "Digits", "individual_digits": True})
    return [*steps, byte_step(not expressions)], ignore


def added(number, content, special=True):
    return {"id": number, "content": content, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": special}


def pieces(count=300):
    """Return pieces of SentencePiece with scores and kinds, and the merges that make them."""
    words = ["▁" + w for w in CORPUS.split()]
    base = sorted(set("".join(words)))
    merges = train(words, base, count)
    rows = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    rows += [(f"<0x{b:02X}>", 0.0, 6) for b in range(256)]
    rows += [("".join(m), -float(i), 1) for i, m in enumerate(merges)]
    rows += [(c, -float(len(merges) + i), 1) for i, c in enumerate(base)]
    return rows, merges


def bytes_and_pieces(prefix=True):
    """Return the tokenizer.json that transformers makes of a tokenizer.model of BPE."""
    rows, merges = pieces()
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prepend = [{"type": "Prepend", "prepend": "▁"}] if prefix else []
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(i, rows[i][0]) for i in range(3)],
        "normalizer": {"type": "Sequence", "normalizers": [*prepend, replace]},
        "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                      {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                    {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": None,
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>",
                  "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True,
                  "byte_fallback": True, "ignore_merges": False,
                  "vocab": {r[0]: i for i, r in enumerate(rows)},
                  "merges": [" ".join(m) for m in merges]},
    }


def unigram():
    """Return the tokenizer.json of a Unigram model, whose tokenizer.model unigram_pieces() has."""
    rows = unigram_pieces()
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(i, rows[i][0]) for i in range(3)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                          "split": True},
        "post_processor": None, "decoder": None,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [[t, s] for t, s, _ in rows],
                  "byte_fallback": False},
    }


REPLACED = {"\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "ﬁ": "fi", "½": "1/2", "Ω": "omega",
            "«": '"', "»": '"', "…": "...", "Ǆ": "DZ", "ß": "ss", "！": "!"}


def charsmap(replaced):
    """Return a table of characters: a double array of SentencePiece, and the replacements.

    The child of a node for a byte is at the base of the node, XOR the byte; a leaf is the child for
    the byte 0, and has an offset in the replacements."""
    texts, offsets, tree = b"", {}, {}
    for key, value in sorted(replaced.items()):
        offsets[key] = len(texts)
        texts += value.encode() + b"\0"
        node = tree
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = offsets[key]
    units, used = {}, {0}

    def place(node, at, label):
        base = next(b for b in range(1, 1 << 16)
                    if all(b ^ c not in used for c in node))
        used.update(base ^ c for c in node)
        units[at] = (base ^ at) << 10 | (0 in node) << 8 | label
        for byte, child in node.items():
            if byte:
                place(child, base ^ byte, byte)
            else:
                units[base] = 1 << 31 | child
    place(tree, 0, 0)
    count = -(-(max(used) + 1) // 256) * 256
    array = struct.pack(f"<{count}I", *(units.get(i, 0) for i in range(count)))
    return struct.pack("<I", len(array)) + array + texts


def unigram_with_characters(newer=False):
    """Return what transformers makes of a tokenizer.model with a table of characters."""
    made = unigram()
    table = base64.b64encode(charsmap(REPLACED)).decode()
    table = {"type": "Precompiled", "precompiled_charsmap": table}
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    if newer:
        made["normalizer"] = {"type": "Sequence", "normalizers": [
            table, {"type": "Strip", "strip_left": False, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}]}
        made["pre_tokenizer"] = space
    else:
        made["normalizer"] = table
        made["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁",
                                          "add_prefix_space": True}]}
    return made


def unigram_pieces():
    rows, _ = pieces()
    rows = [row for row in rows if row[2] != 6]
    return [(t, -2.0 - 0.03 * i if kind == 1 else 0.0, kind)
            for i, (t, _, kind) in enumerate(rows)]


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def message(*fields):
    """Encode (number, value) pairs: integers, floats, texts and bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def sentencepiece(rows, model=2, prefix=True):
    """Return a tokenizer.model."""
    return message(*((1, message((1, t), (2, s), (3, k))) for t, s, k in rows),
                   (2, message((3, model), (40, 0), (41, 1), (42, 2))),
                   (3, message((1, "identity"), (3, int(prefix)), (4, 0))))


def wordpiece(lower=True):
    words = sorted(set(re.findall(r"\w+|[^\w\s]", CORPUS.lower() if lower else CORPUS)))
    letters = sorted(set("".join(words)))
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters)]
    tokens += [w for w in words if len(w) > 1]
    tokens += ["##" + w[-3:] for w in words if len(w) > 5]
    tokens = list(dict.fromkeys(tokens))
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(i, tokens[i]) for i in range(5)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": lower},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                                      {"Sequence": {"id": "A", "type_id": 0}},
                                      {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                    {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]}
                                              for i, t in ((2, "[CLS]"), (3, "[SEP]"))}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(tokens)}},
    }


def texts(count=200, seed=1):
    """Return texts with words, numbers, spaces and letters of many scripts."""
    random_ = random.Random(seed)
    parts = CORPUS.split() + [" ", "  ", "\n", "\n\n", " \n ", "\t", "...", "?!", "3.14159",
                              "1000000", "it's", "IT'S", "WE'LL", "don't", "$5", "100%", "«ça»",
                              "Ω≈ç√", "ﬁ",
                              "ABCdef", "x1y22z333", "_id_", "#tag", "🚀", "👩‍🚀", "½", "٣٤٥", "ก็",
                              "<|endoftext|>", "-->", "\r\n", "a\u0301", "Ǆ", "ß", "İ"]
    out = []
    for _ in range(count):
        joins = random_.choice(["", " ", " ", " "])
        out.append(joins.join(random_.choice(parts) for _ in range(random_.randrange(1, 14))))
    return out


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(data, bytes):
        (folder / name).write_bytes(data)
    else:
        (folder / name).write_text(data if isinstance(data, str)
                                   else json.dumps(data, ensure_ascii=False), encoding="utf-8")



