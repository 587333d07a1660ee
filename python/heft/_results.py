"""What the commands give: frozen dataclasses made from the JSON that the command prints."""
import dataclasses
import pathlib

from dataclasses import dataclass, field


def build(cls, members):
    """Make a cls of the members of a JSON object. Members that cls lacks are ignored."""
    values = {}
    for f in dataclasses.fields(cls):
        if f.name in members:
            convert = f.metadata.get("convert")
            values[f.name] = convert(members[f.name]) if convert else members[f.name]
    return cls(**values)


def _as(convert, **options):
    return field(metadata={"convert": convert}, **options)


def _all(cls):
    return lambda items: tuple(build(cls, item) for item in items)


def _real(value):
    """Numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity"."""
    return None if value is None else float(value)


def _quantiles(value):
    """Keys are percents."""
    return None if value is None else {int(k): _real(v) for k, v in value.items()}


def _shape_or_text(value):
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Message:
    """What a command said: kind is error, warning, note, fault, loss or info. count: number of
    messages of the same rule that this one stands for; verbose=True lists all."""
    kind: str
    text: str
    file: str | None = None
    status: str | None = None
    rule: str | None = None
    tensor: str | None = None
    offset: int | None = None
    shard: str | None = None
    severity: str | None = None
    errno: int | None = None
    count: int | None = None
    second_text: str | None = None
    second_tensor: str | None = None

    def __str__(self):
        place = [f"tensor {self.tensor!r}"] if self.tensor is not None else []
        place += [f"at byte {self.offset}"] if self.offset is not None else []
        file = f"{self.file}: " if self.file is not None else ""
        return f"{file}{self.text}{' (%s)' % ', '.join(place) if place else ''}"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What all results have: the messages of the command, in order."""
    messages: tuple[Message, ...] = field(default=(), repr=False)

    @property
    def losses(self):
        """What the target could not represent."""
        return tuple(m for m in self.messages if m.kind == "loss")


@dataclass(frozen=True)
class Quality:
    """How far quantised numbers are from those of the source. name: the tensor, or None for all.
    compared: number of elements. What is not defined, as the cosine of zeros, is None."""
    max_abs: float = _as(_real)
    rmse: float | None = _as(_real)
    nmse: float | None = _as(_real)
    cosine: float | None = _as(_real)
    compared: int
    name: str | None = None
    type_a: str | None = None
    type_b: str | None = None


@dataclass(frozen=True)
class Converted(Result):
    """A written file. bytes: its size.

    share, shares: number of the share that was written, and of all shares, or None. missing: shares
    that are not written yet; with 0 the file is complete.

    quality: with verify_quality, how far each quantised tensor is from that of the source, and
    total_quality, all of them together; else None."""
    file: pathlib.Path = _as(pathlib.Path)
    format: str
    bytes: int
    dry_run: bool
    share: int | None = None
    shares: int | None = None
    missing: int = 0
    quality: tuple[Quality, ...] | None = None
    total_quality: Quality | None = None


@dataclass(frozen=True)
class Split(Result):
    """A folder of shards. files: their paths, and that of the index if the format has one."""
    folder: pathlib.Path = _as(pathlib.Path)
    format: str
    files: tuple[pathlib.Path, ...]


@dataclass(frozen=True)
class Edited(Result):
    """An edited file. copied: bytes of data that were copied; changed is false if the file was
    already up to date, in_place if a new file replaced it. rolled_back: an interrupted edit was
    rolled back first."""
    file: pathlib.Path = _as(pathlib.Path)
    bytes: int
    copied: int
    changed: bool
    in_place: bool
    rolled_back: bool
    dry_run: bool


@dataclass(frozen=True)
class Appended(Edited):
    """As Edited; tensors: the number of tensors that were added."""
    tensors: int


@dataclass(frozen=True)
class Delta(Result):
    """What changes from one model to another. tensors: the number of tensors for each kind of
    change, none, sparse, xor, whole, added and removed. metadata: the number of keys that change.
    changed_bytes: bytes of the elements with new values, and all bytes of the kinds xor, whole and
    added; None for a delta of another program that is applied to a new file. file: what was written,
    or None."""
    tensors: dict[str, int]
    metadata: int
    changed_bytes: int | None
    dry_run: bool
    file: pathlib.Path | None = _as(lambda path: path and pathlib.Path(path), default=None)


@dataclass(frozen=True)
class Finding:
    """What verify found: severity is note, warning or fault; offset and length are bytes. path: the
    file that a finding of signature or hub is about."""
    severity: str
    rule: str
    text: str
    offset: int | None
    length: int
    tensor: str | None
    shard: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class Report(Result):
    """What verify says about a file; true if ok."""
    file: str
    format: str | None
    ok: bool
    findings: tuple[Finding, ...] = _as(_all(Finding))
    bytes_checked: int
    payload_bytes: int = 0
    payload_checked: int = 0
    covers: str | None = None
    algorithm: str | None = None
    digest: str | None = None

    def __bool__(self):
        return self.ok


@dataclass(frozen=True)
class Signed(Result):
    """A written signature. files, bytes: number and size of the signed files."""
    file: pathlib.Path = _as(pathlib.Path)
    files: int
    bytes: int


@dataclass(frozen=True)
class Bill(Result):
    """A bill of materials in CycloneDX 1.6. text: the JSON document; document: its members."""
    file: str
    text: str
    document: dict[str, object]


@dataclass(frozen=True)
class Damage:
    """What is wrong with a file, and what to do."""
    severity: str
    kind: str
    text: str
    advice: str | None
    offset: int | None
    length: int
    tensor: str | None


@dataclass(frozen=True)
class LostTensor:
    """A tensor of which bytes are missing, or that a checksum contradicts (0 bytes missing)."""
    name: str
    missing_bytes: int


@dataclass(frozen=True)
class Diagnosis(Result):
    """What doctor says about a file; true if ok. tensors, intact, left_out: numbers of tensors, of those
    that are intact, and of contents that are no tensors; salvaged: the new file."""
    file: str
    format: str | None
    ok: bool
    size: int
    expected_size: int | None
    findings: tuple[Damage, ...] = _as(_all(Damage))
    tensors: int
    intact: int
    left_out: int
    lost: tuple[LostTensor, ...] = _as(_all(LostTensor))
    salvaged: str | None

    def __bool__(self):
        return self.ok


@dataclass(frozen=True)
class PickleFinding:
    """What a pickle would do: import a name from a module, or what the rule says.

    member: path in the archive, or None. offset: in the file or, if unpacked, in the content of the
    compressed member or file."""
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
    """What scan says about a file; true if ok."""
    file: str
    ok: bool
    pickles: int
    findings: tuple[PickleFinding, ...] = _as(_all(PickleFinding))

    def __bool__(self):
        return self.ok


@dataclass(frozen=True)
class Change:
    """A difference of a tensor: what is dtype, shape, layout (a and b say which) or value.

    The numbers of a value are None for parts without numbers and where they are undefined. first:
    position of the first element that differs. type_a, type_b: of a quantised tensor and its
    partner, "fp8-block/bf16"."""
    name: str
    what: str
    a: str | tuple[int, ...] | None = _as(_shape_or_text, default=None)
    b: str | tuple[int, ...] | None = _as(_shape_or_text, default=None)
    max_abs: float | None = _as(_real, default=None)
    max_rel: float | None = _as(_real, default=None)
    differing: int | None = None
    mean_abs: float | None = _as(_real, default=None)
    rmse: float | None = _as(_real, default=None)
    nmse: float | None = _as(_real, default=None)
    cosine: float | None = _as(_real, default=None)
    compared: int | None = None
    first: tuple[int, ...] | None = _as(_shape_or_text, default=None)
    type_a: str | None = None
    type_b: str | None = None


@dataclass(frozen=True)
class Renamed:
    """Two tensors with the same content and different names."""
    a: str
    b: str


@dataclass(frozen=True)
class Difference(Result):
    """What diff found. There is no truth value: use .equal. summary: numbers of tensors, by
    "tensors", "equal", "differ", "renamed", "only_in_a" and "only_in_b". metadata: whether they are
    "equal", with keys "only_in_a", "only_in_b" and "changed"; None with ignore_metadata or patterns.
    left_out: "differs" or "unknown" if contents that are left out are not known to be equal."""
    equal: bool
    only_in_a: tuple[str, ...] = _as(tuple)
    only_in_b: tuple[str, ...] = _as(tuple)
    changed: tuple[Change, ...] = _as(_all(Change))
    renamed: tuple[Renamed, ...] = _as(_all(Renamed))
    summary: dict[str, int]
    metadata: dict[str, object] | None = None
    left_out: str | None = None

    def __bool__(self):
        raise TypeError("the truth of a Difference is ambiguous: use .equal")


@dataclass(frozen=True)
class Digests(Result):
    """Hexadecimal digests of the model and, by name, of its tensors."""
    file: str
    format: str
    model: str
    tensors: dict[str, str] = _as(lambda rows: {row["name"]: row["digest"] for row in rows})


@dataclass(frozen=True)
class TensorStats:
    """Statistics of the finite values of a tensor; None for a part without numbers. sparsity: the
    share of zeros; quantiles: percentiles by percent, {1: ..., 50: ...}; first_not_finite: position
    of the first NaN or infinity; type: of a quantised tensor, "fp8-block/bf16"."""
    name: str
    dtype: str | None
    shape: tuple[int, ...] = _as(tuple)
    count: int | None
    min: float | None = _as(_real)
    max: float | None = _as(_real)
    mean: float | None = _as(_real)
    std: float | None = _as(_real)
    zeros: int | None
    nan: int | None
    inf: int | None
    histogram: tuple[int, ...] = _as(tuple)
    sparsity: float | None
    quantiles: dict[int, float] | None = _as(_quantiles)
    first_not_finite: tuple[int, ...] | None = _as(_shape_or_text)
    type: str | None = None


@dataclass(frozen=True)
class ModuleStats:
    """Joint statistics of the tensors of a module; dtype: None if they have several."""
    name: str
    dtype: str | None
    tensors: int
    count: int | None
    min: float | None = _as(_real)
    max: float | None = _as(_real)
    mean: float | None = _as(_real)
    std: float | None = _as(_real)
    zeros: int | None
    nan: int | None
    inf: int | None
    sparsity: float | None


@dataclass(frozen=True)
class Stats(Result):
    """Statistics of the tensors, in the order of the file, and with tree=True of the modules."""
    file: str
    format: str
    version: str | None
    size: int
    tensors: tuple[TensorStats, ...] = _as(_all(TensorStats))
    modules: tuple[ModuleStats, ...] = _as(_all(ModuleStats), default=())

    def __getitem__(self, name):
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)


@dataclass(frozen=True)
class Part:
    """A part of the file itself, such as a vocabulary. Offsets and lengths are bytes."""
    role: str
    offset: int
    stored: int
    length: int | None
    encoding: str


@dataclass(frozen=True)
class Checksum:
    """A checksum that the file stores, and the range of bytes that it covers."""
    rule: str
    algorithm: str
    offset: int
    length: int
    shard: str | None = None


@dataclass(frozen=True)
class Shard:
    """A file of the model: state is present, another file, or missing."""
    name: str
    state: str
    size: int | None = None


@dataclass(frozen=True)
class TypeSum:
    """Sums over the tensors of an element type; tied tensors count once in parameters and bytes.
    type: of quantised tensors, "fp8-block/bf16"."""
    dtype: str | None
    tensors: int
    parameters: int
    bytes: int
    type: str | None = None


@dataclass(frozen=True)
class ModuleSum:
    """Sums over the tensors of a module; tied tensors count once in parameters and bytes."""
    name: str
    tensors: int
    parameters: int
    bytes: int


@dataclass(frozen=True)
class ModelKind:
    """The kind of a model; source is metadata, config or names, and evidence the key or name."""
    kind: str
    source: str
    evidence: str


@dataclass(frozen=True)
class Quantised:
    """Sums over quantised tensors of the same kind. scheme: "fp8", "awq"; bits: of a stored element,
    if known; block: rows and columns of the elements with the same scale, 0 for all; tensors: their
    number; parts: of the stored tensors that represent them; parameters: None if the scheme is not
    decoded."""
    scheme: str
    tensors: int
    parts: int
    variant: str | None = None
    bits: int | None = None
    block: tuple[int, ...] | None = _as(_shape_or_text, default=None)
    parameters: int | None = None


@dataclass(frozen=True)
class Info(Result):
    """Facts of a file. size: bytes of the file and its shards; tensors: their number; bytes: the
    decoded bytes of all tensors; parameters: elements of all tensors, of tied ones once; memory:
    bytes that the index uses, with verbose. quantised: what is quantised, and how."""
    file: str
    format: str
    version: str | None
    size: int
    tensors: int
    bytes: int
    parameters: int
    by_dtype: tuple[TypeSum, ...] = _as(_all(TypeSum))
    modules: tuple[ModuleSum, ...] = _as(_all(ModuleSum))
    alignment: int
    metadata: dict[str, object]
    parts: tuple[Part, ...] = _as(_all(Part))
    checksums: tuple[Checksum, ...] = _as(_all(Checksum))
    shards: tuple[Shard, ...] = _as(_all(Shard), default=())
    tied: dict[str, str] = _as(lambda rows: {row["name"]: row["with"] for row in rows},
                               default_factory=dict)
    generator: str | None = None
    model: ModelKind | None = _as(lambda members: build(ModelKind, members), default=None)
    vocabulary: dict[str, object] | None = None
    record: dict[str, object] | None = None
    memory: int | None = None
    quantised: tuple[Quantised, ...] = _as(_all(Quantised), default=())
