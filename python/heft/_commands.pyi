# Made by tests/command_stubs.py --write from the table of options.
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

@dataclass(frozen=True)
class Message:
    kind: str
    text: str
    file: str | None = ...
    status: str | None = ...
    rule: str | None = ...
    tensor: str | None = ...
    offset: int | None = ...
    shard: str | None = ...
    severity: str | None = ...
    errno: int | None = ...
    count: int | None = ...
    second_text: str | None = ...
    second_tensor: str | None = ...

    def __str__(self) -> str:
        ...

@dataclass(frozen=True, kw_only=True)
class Result:
    messages: tuple[Message, ...] = ...

    @property
    def losses(self) -> tuple[Message, ...]:
        ...

@dataclass(frozen=True)
class Quality:
    max_abs: float
    rmse: float | None
    nmse: float | None
    cosine: float | None
    compared: int
    name: str | None = ...
    type_a: str | None = ...
    type_b: str | None = ...

@dataclass(frozen=True)
class Converted(Result):
    file: pathlib.Path
    format: str
    bytes: int
    dry_run: bool
    share: int | None = ...
    shares: int | None = ...
    missing: int = ...
    quality: tuple[Quality, ...] | None = ...
    total_quality: Quality | None = ...

@dataclass(frozen=True)
class Split(Result):
    folder: pathlib.Path
    format: str
    files: tuple[pathlib.Path, ...]

@dataclass(frozen=True)
class Edited(Result):
    file: pathlib.Path
    bytes: int
    copied: int
    changed: bool
    in_place: bool
    rolled_back: bool
    dry_run: bool

@dataclass(frozen=True)
class Appended(Edited):
    tensors: int

@dataclass(frozen=True)
class Delta(Result):
    tensors: dict[str, int]
    metadata: int
    changed_bytes: int | None
    dry_run: bool
    file: pathlib.Path | None = ...

@dataclass(frozen=True)
class Finding:
    severity: str
    rule: str
    text: str
    offset: int | None
    length: int
    tensor: str | None
    shard: str | None = ...
    path: str | None = ...

@dataclass(frozen=True)
class Report(Result):
    file: str
    format: str | None
    ok: bool
    findings: tuple[Finding, ...]
    bytes_checked: int
    payload_bytes: int = ...
    payload_checked: int = ...
    covers: str | None = ...
    algorithm: str | None = ...
    digest: str | None = ...

    def __bool__(self) -> bool:
        ...

@dataclass(frozen=True)
class Signed(Result):
    file: pathlib.Path
    files: int
    bytes: int

@dataclass(frozen=True)
class Bill(Result):
    file: str
    text: str
    document: dict[str, object]

@dataclass(frozen=True)
class Damage:
    severity: str
    kind: str
    text: str
    advice: str | None
    offset: int | None
    length: int
    tensor: str | None

@dataclass(frozen=True)
class LostTensor:
    name: str
    missing_bytes: int

@dataclass(frozen=True)
class Diagnosis(Result):
    file: str
    format: str | None
    ok: bool
    size: int
    expected_size: int | None
    findings: tuple[Damage, ...]
    tensors: int
    intact: int
    left_out: int
    lost: tuple[LostTensor, ...]
    salvaged: str | None

    def __bool__(self) -> bool:
        ...

@dataclass(frozen=True)
class PickleFinding:
    severity: str
    rule: str
    text: str
    member: str | None
    offset: int
    unpacked: bool
    module: str | None
    name: str | None

@dataclass(frozen=True)
class Scan(Result):
    file: str
    ok: bool
    pickles: int
    findings: tuple[PickleFinding, ...]

    def __bool__(self) -> bool:
        ...

@dataclass(frozen=True)
class Change:
    name: str
    what: str
    a: str | tuple[int, ...] | None = ...
    b: str | tuple[int, ...] | None = ...
    max_abs: float | None = ...
    max_rel: float | None = ...
    differing: int | None = ...
    mean_abs: float | None = ...
    rmse: float | None = ...
    nmse: float | None = ...
    cosine: float | None = ...
    compared: int | None = ...
    first: tuple[int, ...] | None = ...
    type_a: str | None = ...
    type_b: str | None = ...

@dataclass(frozen=True)
class Renamed:
    a: str
    b: str

@dataclass(frozen=True)
class Difference(Result):
    equal: bool
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    changed: tuple[Change, ...]
    renamed: tuple[Renamed, ...]
    summary: dict[str, int]
    metadata: dict[str, object] | None = ...
    left_out: str | None = ...

    def __bool__(self) -> bool:
        ...

@dataclass(frozen=True)
class Digests(Result):
    file: str
    format: str
    model: str
    tensors: dict[str, str] = ...

@dataclass(frozen=True)
class TensorStats:
    name: str
    dtype: str | None
    shape: tuple[int, ...]
    count: int | None
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: int | None
    nan: int | None
    inf: int | None
    histogram: tuple[int, ...]
    sparsity: float | None
    quantiles: dict[int, float] | None
    first_not_finite: tuple[int, ...] | None
    type: str | None = ...

@dataclass(frozen=True)
class ModuleStats:
    name: str
    dtype: str | None
    tensors: int
    count: int | None
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    zeros: int | None
    nan: int | None
    inf: int | None
    sparsity: float | None

@dataclass(frozen=True)
class Stats(Result):
    file: str
    format: str
    version: str | None
    size: int
    tensors: tuple[TensorStats, ...]
    modules: tuple[ModuleStats, ...] = ...

    def __getitem__(self, name) -> TensorStats:
        ...

@dataclass(frozen=True)
class Part:
    role: str
    offset: int
    stored: int
    length: int | None
    encoding: str

@dataclass(frozen=True)
class Checksum:
    rule: str
    algorithm: str
    offset: int
    length: int
    shard: str | None = ...

@dataclass(frozen=True)
class Shard:
    name: str
    state: str
    size: int | None = ...

@dataclass(frozen=True)
class TypeSum:
    dtype: str | None
    tensors: int
    parameters: int
    bytes: int
    type: str | None = ...

@dataclass(frozen=True)
class ModuleSum:
    name: str
    tensors: int
    parameters: int
    bytes: int

@dataclass(frozen=True)
class ModelKind:
    kind: str
    source: str
    evidence: str

@dataclass(frozen=True)
class Quantised:
    scheme: str
    tensors: int
    parts: int
    variant: str | None = ...
    bits: int | None = ...
    block: tuple[int, ...] | None = ...
    parameters: int | None = ...

@dataclass(frozen=True)
class Info(Result):
    file: str
    format: str
    version: str | None
    size: int
    tensors: int
    bytes: int
    parameters: int
    by_dtype: tuple[TypeSum, ...]
    modules: tuple[ModuleSum, ...]
    alignment: int
    metadata: dict[str, object]
    parts: tuple[Part, ...]
    checksums: tuple[Checksum, ...]
    shards: tuple[Shard, ...] = ...
    tied: dict[str, str] = ...
    generator: str | None = ...
    model: ModelKind | None = ...
    vocabulary: dict[str, object] | None = ...
    record: dict[str, object] | None = ...
    memory: int | None = ...
    quantised: tuple[Quantised, ...] = ...

class FileWarning(UserWarning):
    rule: str | None
    tensor: str | None

def append(
    file: str | os.PathLike[str],
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    no_sync: bool = ...,
    keep: str | Iterable[str] | None = ...,
    drop: str | Iterable[str] | None = ...,
    rename: str | Iterable[str] | Mapping[str, str] | None = ...,
    cast: str | Iterable[str] | Mapping[str, str] | None = ...,
    raw_tensors: bool = ...,
    dequantize: bool | str | None = ...,
    allow_nan: bool = ...,
    compress: str | Iterable[str] | Mapping[str, str] | None = ...,
    digest: str | Iterable[str] | Mapping[str, str] | None = ...,
    align: int | None = ...,
    strict: bool = ...,
    allow_loss: bool = ...,
    verbose: bool = ...,
    duplicates: str | None = ...,
    dry_run: bool = ...,
    key: str | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Appended: ...

def apply(
    old: str | os.PathLike[str],
    delta: str | os.PathLike[str],
    *,
    no_sync: bool = ...,
    strict: bool = ...,
    verbose: bool = ...,
    output: str | os.PathLike[str] | None = ...,
    in_place: bool = ...,
    verify: bool = ...,
    to: str | None = ...,
    allow_loss: bool = ...,
    dry_run: bool = ...,
    force: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Delta: ...

def blend(
    models: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    force: bool = ...,
    no_sync: bool = ...,
    dequantize: bool | str | None = ...,
    to: str | None = ...,
    format_version: str | None = ...,
    compress: str | Iterable[str] | Mapping[str, str] | None = ...,
    digest: str | Iterable[str] | Mapping[str, str] | None = ...,
    align: int | None = ...,
    strict: bool = ...,
    allow_loss: bool = ...,
    dry_run: bool = ...,
    verbose: bool = ...,
    settings: str | os.PathLike[str] | None = ...,
    method: str | None = ...,
    base: str | os.PathLike[str] | None = ...,
    weight: float | str | Iterable[float] | Mapping[str, float | Iterable[float]] | None = ...,
    density: float | str | Iterable[float] | Mapping[str, float | Iterable[float]] | None = ...,
    t: float | str | Iterable[float] | Mapping[str, float | Iterable[float]] | None = ...,
    factor: float | None = ...,
    normalize: bool | None = ...,
    seed: int | None = ...,
    missing: str | None = ...,
    tied: Mapping[str, str] | None = ...,
    untie: bool = ...,
    dtype: str | None = ...,
    allow_nan: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Converted: ...

def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    no_sync: bool = ...,
    keep: str | Iterable[str] | None = ...,
    drop: str | Iterable[str] | None = ...,
    rename: str | Iterable[str] | Mapping[str, str] | None = ...,
    map: str | os.PathLike[str] | None = ...,
    pre_tokenizer: str | None = ...,
    allow_unmatched: bool = ...,
    lora: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[str, float] | None = ...,
    peft_rounding: bool = ...,
    extract_lora: int | None = ...,
    base: str | os.PathLike[str] | None = ...,
    cast: str | Iterable[str] | Mapping[str, str] | None = ...,
    raw_tensors: bool = ...,
    dequantize: bool | str | None = ...,
    quantize: str | Iterable[str] | None = ...,
    requantize: bool = ...,
    allow_nan: bool = ...,
    verify_quality: bool = ...,
    tensor_type: str | Iterable[str] | None = ...,
    token_embedding_type: str | None = ...,
    output_tensor_type: str | None = ...,
    leave_output_tensor: bool = ...,
    pure: bool = ...,
    imatrix: str | os.PathLike[str] | None = ...,
    transpose: str | Iterable[str] | None = ...,
    densify: str | Iterable[str] | None = ...,
    sparsify: str | Iterable[str] | Mapping[str, str] | None = ...,
    requires_grad: bool | str | Mapping[str, bool | None] | None = ...,
    set_id: Mapping[str, int | str | None] | None = ...,
    new_ids: bool = ...,
    fill_ids: bool = ...,
    id_seed: int | None = ...,
    base_ids: str | None = ...,
    set: Mapping[str, object] | None = ...,
    set_file: Mapping[str, str | os.PathLike[str]] | None = ...,
    no_format_key: bool = ...,
    generator: str | None = ...,
    vocab: str | os.PathLike[str] | None = ...,
    special: Mapping[str, int | None] | None = ...,
    config: str | os.PathLike[str] | None = ...,
    to: str | None = ...,
    format_version: str | None = ...,
    compress: str | Iterable[str] | Mapping[str, str] | None = ...,
    digest: str | Iterable[str] | Mapping[str, str] | None = ...,
    external_data: str | None = ...,
    inline: bool = ...,
    align: int | None = ...,
    strict: bool = ...,
    allow_loss: bool = ...,
    dry_run: bool = ...,
    force: bool = ...,
    resume: bool = ...,
    verbose: bool = ...,
    share: str | tuple[int, int] | None = ...,
    finish: bool = ...,
    abort: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Converted | None: ...

def delta(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    no_sync: bool = ...,
    output: str | os.PathLike[str] | None = ...,
    compress: str | Iterable[str] | Mapping[str, str] | None = ...,
    disk: str | None = ...,
    checksum: str | None = ...,
    delta_version: int | None = ...,
    dry_run: bool = ...,
    force: bool = ...,
    strict: bool = ...,
    verbose: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Delta: ...

def diff(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    patterns: str | Iterable[str] = ...,
    *,
    raw_tensors: bool = ...,
    atol: float | None = ...,
    rtol: float | None = ...,
    ulp: int | None = ...,
    ignore_dtype: bool = ...,
    ignore_metadata: bool = ...,
    trust_digests: bool = ...,
    rename: str | Iterable[str] | Mapping[str, str] | None = ...,
    map: str | os.PathLike[str] | None = ...,
    allow_unmatched: bool = ...,
    verbose: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Difference: ...

def doctor(
    file: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = ...,
    to: str | None = ...,
    allow_loss: bool = ...,
    force: bool = ...,
    no_sync: bool = ...,
    threads: int | None = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Diagnosis: ...

def edit(
    file: str | os.PathLike[str],
    *,
    rename: str | Iterable[str] | Mapping[str, str] | None = ...,
    requires_grad: bool | str | Mapping[str, bool | None] | None = ...,
    set_id: Mapping[str, int | str | None] | None = ...,
    new_ids: bool = ...,
    fill_ids: bool = ...,
    id_seed: int | None = ...,
    base_ids: str | None = ...,
    set: Mapping[str, object] | None = ...,
    set_file: Mapping[str, str | os.PathLike[str]] | None = ...,
    vocab: str | os.PathLike[str] | None = ...,
    special: Mapping[str, int | None] | None = ...,
    config: str | os.PathLike[str] | None = ...,
    strict: bool = ...,
    dry_run: bool = ...,
    tensor: str | Iterable[str] | Mapping[str, str] | None = ...,
    round: bool = ...,
    allow_change: bool = ...,
    unset: str | Iterable[str] | None = ...,
    verbose: bool = ...,
    key: str | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Edited: ...

def hash(
    file: str | os.PathLike[str],
    *,
    logical: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Digests: ...

def info(
    file: str | os.PathLike[str],
    *,
    raw_tensors: bool = ...,
    verbose: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Info: ...

def merge(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    force: bool = ...,
    no_sync: bool = ...,
    dequantize: bool | str | None = ...,
    requires_grad: bool | str | Mapping[str, bool | None] | None = ...,
    set_id: Mapping[str, int | str | None] | None = ...,
    new_ids: bool = ...,
    fill_ids: bool = ...,
    id_seed: int | None = ...,
    base_ids: str | None = ...,
    no_format_key: bool = ...,
    to: str | None = ...,
    format_version: str | None = ...,
    compress: str | Iterable[str] | Mapping[str, str] | None = ...,
    digest: str | Iterable[str] | Mapping[str, str] | None = ...,
    align: int | None = ...,
    strict: bool = ...,
    allow_loss: bool = ...,
    share: str | tuple[int, int] | None = ...,
    finish: bool = ...,
    abort: bool = ...,
    verbose: bool = ...,
    duplicates: str | None = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Converted | None: ...

def sbom(
    file: str | os.PathLike[str],
    *,
    force: bool = ...,
    output: str | os.PathLike[str] | None = ...,
    no_sync: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Bill: ...

def scan(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    threads: int | None = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Scan | list[Scan]: ...

def sign(
    model: str | os.PathLike[str],
    *,
    no_sync: bool = ...,
    key: str | os.PathLike[str] | None = ...,
    password_file: str | os.PathLike[str] | None = ...,
    certificate: str | os.PathLike[str] | None = ...,
    chain: str | os.PathLike[str] | None = ...,
    output: str | os.PathLike[str] | None = ...,
    ignore: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = ...,
    force: bool = ...,
    threads: int | None = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Signed: ...

def split(
    source: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    no_sync: bool = ...,
    dequantize: bool | str | None = ...,
    no_format_key: bool = ...,
    compress: str | Iterable[str] | Mapping[str, str] | None = ...,
    digest: str | Iterable[str] | Mapping[str, str] | None = ...,
    strict: bool = ...,
    allow_loss: bool = ...,
    to: str | None = ...,
    max_size: int | str | None = ...,
    count: int | None = ...,
    name: str | None = ...,
    force: bool = ...,
    verbose: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Split: ...

def stats(
    file: str | os.PathLike[str],
    patterns: str | Iterable[str] = ...,
    *,
    raw_tensors: bool = ...,
    tree: bool = ...,
    depth: int | None = ...,
    finite: bool = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    no_verify: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Stats: ...

def verify(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    profile: str | os.PathLike[str] | None = ...,
    strict: bool = ...,
    quick: bool = ...,
    hub: bool = ...,
    signature: str | os.PathLike[str] | None = ...,
    public_key: str | os.PathLike[str] | None = ...,
    ca: str | os.PathLike[str] | None = ...,
    certificate: str | os.PathLike[str] | None = ...,
    share: str | tuple[int, int] | None = ...,
    output: str | os.PathLike[str] | None = ...,
    join: str | os.PathLike[str] | None = ...,
    key: str | None = ...,
    view: Mapping[str, str] | None = ...,
    access: str | None = ...,
    max_tensors: int | None = ...,
    max_bytes: int | str | None = ...,
    threads: int | None = ...,
    quiet: bool = ...,
    offline: bool = ...,
    follow_links: bool = ...,
    no_sandbox: bool = ...,
    progress: Callable[[int, int], object] | bool | None = ...,
) -> Report | list[Report] | None: ...
